import { describe, expect, it } from 'vitest';
import type { CallEvent } from '../../machines/call-events.ts';
import {
  fundingCheckDelayMs,
  LONGEST_SPEECH_MS,
  SPEECH_BEGIN_TIMEOUT_MS,
  TRANSCRIPT_TIMEOUT_MS,
} from '../../machines/call-setup.ts';
import type { RemoteMedia } from '../../machines/events.ts';
import { AGENT_MEDIA, CUSTOMER_MEDIA, EARLY_MEDIA, EVENTS, PATHS, segment, startCall } from './call-bench.ts';

/** State x event. An absent cell means no change. `state terminal_event CAUSE leg error` where the call ends. */
const TABLE: Record<keyof typeof PATHS, Partial<Record<keyof typeof EVENTS, string>>> = {
  preparing: {
    'media.opened': 'ringingAgent',
    'media.unavailable': 'settling rejected call.temporaryfailed SWITCH_CONGESTION - not_admitted',
    'media.lost': 'settling rejected call.temporaryfailed SWITCH_CONGESTION - not_admitted',
    'hangup.api': 'settling rejected call.temporaryfailed SWITCH_CONGESTION - not_admitted',
    'hangup.shutdown': 'settling rejected call.temporaryfailed SWITCH_CONGESTION - not_admitted',
  },
  ringingAgent: {
    'agent.answered': 'ringingCustomer',
    'agent.noanswer': 'finishing failed call.not_answered NO_ANSWER agent agent_no_answer',
    'agent.busy': 'finishing failed call.not_answered USER_BUSY agent agent_busy',
    'agent.decline': 'finishing failed call.not_answered CALL_REJECTED agent agent_declined',
    'agent.notfound': 'finishing failed call.failed UNALLOCATED_NUMBER agent agent_refused',
    'agent.unreachable': 'finishing failed call.temporaryfailed NORMAL_TEMPORARY_FAILURE agent agent_unreachable',
    'agent.bye': 'finishing failed call.not_answered ORIGINATOR_CANCEL agent agent_hung_up',
    'agent.lost': 'finishing failed call.temporaryfailed NETWORK_OUT_OF_ORDER agent agent_signalling_lost',
    'customer.noanswer': 'clearing failed call.not_answered NO_ANSWER customer customer_no_answer',
    'customer.busy': 'clearing failed call.not_answered USER_BUSY customer customer_busy',
    'customer.incomplete': 'clearing failed call.failed INVALID_NUMBER_FORMAT customer customer_refused',
    'customer.480': 'clearing failed call.temporaryfailed NO_USER_RESPONSE customer customer_unreachable',
    'customer.bye': 'clearing failed call.not_answered ORIGINATOR_CANCEL customer customer_hung_up',
    'customer.lost': 'clearing failed call.temporaryfailed NETWORK_OUT_OF_ORDER customer customer_signalling_lost',
    'media.lost': 'clearing failed call.temporaryfailed NORMAL_TEMPORARY_FAILURE - media_lost',
    'hangup.api': 'clearing failed call.not_answered ORIGINATOR_CANCEL - cancelled',
    'hangup.shutdown': 'clearing failed call.temporaryfailed SYSTEM_SHUTDOWN - shutdown',
  },
  announcing: {
    'announcement.finished': 'ringingCustomer',
    'announcement.failed': 'ringingCustomer',
    'agent.noanswer': 'finishing failed call.not_answered NO_ANSWER agent agent_no_answer',
    'agent.busy': 'finishing failed call.not_answered USER_BUSY agent agent_busy',
    'agent.decline': 'finishing failed call.not_answered CALL_REJECTED agent agent_declined',
    'agent.notfound': 'finishing failed call.failed UNALLOCATED_NUMBER agent agent_refused',
    'agent.unreachable': 'finishing failed call.temporaryfailed NORMAL_TEMPORARY_FAILURE agent agent_unreachable',
    'agent.bye': 'finishing failed call.not_answered ORIGINATOR_CANCEL agent agent_hung_up',
    'agent.lost': 'finishing failed call.temporaryfailed NETWORK_OUT_OF_ORDER agent agent_signalling_lost',
    'customer.noanswer': 'clearing failed call.not_answered NO_ANSWER customer customer_no_answer',
    'customer.busy': 'clearing failed call.not_answered USER_BUSY customer customer_busy',
    'customer.incomplete': 'clearing failed call.failed INVALID_NUMBER_FORMAT customer customer_refused',
    'customer.480': 'clearing failed call.temporaryfailed NO_USER_RESPONSE customer customer_unreachable',
    'customer.bye': 'clearing failed call.not_answered ORIGINATOR_CANCEL customer customer_hung_up',
    'customer.lost': 'clearing failed call.temporaryfailed NETWORK_OUT_OF_ORDER customer customer_signalling_lost',
    'media.lost': 'clearing failed call.temporaryfailed NORMAL_TEMPORARY_FAILURE - media_lost',
    'hangup.api': 'clearing failed call.not_answered ORIGINATOR_CANCEL - cancelled',
    'hangup.shutdown': 'clearing failed call.temporaryfailed SYSTEM_SHUTDOWN - shutdown',
  },
  ringingCustomer: {
    'customer.answered': 'bridged',
    'agent.noanswer': 'clearing failed call.not_answered NO_ANSWER agent agent_no_answer',
    'agent.busy': 'clearing failed call.not_answered USER_BUSY agent agent_busy',
    'agent.decline': 'clearing failed call.not_answered CALL_REJECTED agent agent_declined',
    'agent.notfound': 'clearing failed call.failed UNALLOCATED_NUMBER agent agent_refused',
    'agent.unreachable': 'clearing failed call.temporaryfailed NORMAL_TEMPORARY_FAILURE agent agent_unreachable',
    'agent.bye': 'clearing failed call.not_answered ORIGINATOR_CANCEL agent agent_hung_up',
    'agent.lost': 'clearing failed call.temporaryfailed NETWORK_OUT_OF_ORDER agent agent_signalling_lost',
    'customer.noanswer': 'clearing failed call.not_answered NO_ANSWER customer customer_no_answer',
    'customer.busy': 'clearing failed call.not_answered USER_BUSY customer customer_busy',
    'customer.incomplete': 'clearing failed call.failed INVALID_NUMBER_FORMAT customer customer_refused',
    'customer.480': 'clearing failed call.temporaryfailed NO_USER_RESPONSE customer customer_unreachable',
    'customer.bye': 'clearing failed call.not_answered ORIGINATOR_CANCEL customer customer_hung_up',
    'customer.lost': 'clearing failed call.temporaryfailed NETWORK_OUT_OF_ORDER customer customer_signalling_lost',
    'media.lost': 'clearing failed call.temporaryfailed NORMAL_TEMPORARY_FAILURE - media_lost',
    'hangup.api': 'clearing failed call.not_answered ORIGINATOR_CANCEL - cancelled',
    'hangup.shutdown': 'clearing failed call.temporaryfailed SYSTEM_SHUTDOWN - shutdown',
  },
  bridged: {
    'agent.noanswer': 'clearing completed call.completed NO_ANSWER agent -',
    'agent.busy': 'clearing completed call.completed USER_BUSY agent -',
    'agent.decline': 'clearing completed call.completed CALL_REJECTED agent -',
    'agent.notfound': 'clearing completed call.completed UNALLOCATED_NUMBER agent -',
    'agent.unreachable': 'clearing completed call.completed NORMAL_TEMPORARY_FAILURE agent -',
    'agent.bye': 'clearing completed call.completed NORMAL_CLEARING agent -',
    'agent.lost': 'clearing completed call.completed NETWORK_OUT_OF_ORDER agent -',
    'customer.noanswer': 'clearing completed call.completed NO_ANSWER customer -',
    'customer.busy': 'clearing completed call.completed USER_BUSY customer -',
    'customer.incomplete': 'clearing completed call.completed INVALID_NUMBER_FORMAT customer -',
    'customer.480': 'clearing completed call.completed NO_USER_RESPONSE customer -',
    'customer.bye': 'clearing completed call.completed NORMAL_CLEARING customer -',
    'customer.lost': 'clearing completed call.completed NETWORK_OUT_OF_ORDER customer -',
    'rtp.timeout': 'clearing completed call.completed MEDIA_TIMEOUT customer -',
    'media.lost': 'clearing completed call.completed NORMAL_TEMPORARY_FAILURE - -',
    'hangup.api': 'clearing completed call.completed NORMAL_CLEARING - -',
    'hangup.shutdown': 'clearing completed call.completed SYSTEM_SHUTDOWN - -',
  },
  clearing: {},
  finishing: { 'media.finished': 'settling', 'media.lost': 'settling' },
};

describe('call machine, state by event', () => {
  for (const state of Object.keys(TABLE) as (keyof typeof PATHS)[]) {
    for (const event of Object.keys(EVENTS)) {
      const cell = TABLE[state][event];
      const name =
        cell === undefined ? `in ${state}, ${event} changes nothing` : `in ${state}, ${event} leads to ${cell}`;
      it(name, () => {
        const call = startCall({ settle: 'never', announce: state === 'announcing' });
        for (const step of PATHS[state]) call.receive(step);
        expect(call.state()).toBe(state);
        const outcomeBefore = call.outcome();
        call.send(EVENTS[event] as CallEvent);
        if (cell === undefined) {
          expect(call.state()).toBe(state);
          expect(call.outcome()).toBe(outcomeBefore);
          return;
        }
        const [nextState, ...outcome] = cell.split(' ');
        expect(call.state()).toBe(nextState);
        if (outcome.length > 0) expect(call.outcome()).toBe(outcome.join(' '));
        else expect(call.outcome()).toBe(outcomeBefore);
      });
    }
  }
});

describe('placed call', () => {
  it("emits its moves in order from the agent's ringing to the bridge", () => {
    const call = startCall({ record: true });
    for (const step of ['media.opened', 'agent.ringing', 'agent.ringing', 'agent.answered', 'customer.ringing'])
      call.receive(step);
    for (const step of ['customer.ringing', 'customer.answered', 'recording.started']) call.receive(step);
    expect(call.moves.map(({ event, state }) => `${event} ${state}`)).toEqual([
      'call.initiated initiated',
      'agent.ringing initiated',
      'agent.answered initiated',
      'customer.dialing initiated',
      'customer.ringing initiated',
      'call.bridged bridged',
      'recording.started bridged',
    ]);
    expect(call.moves.at(-1)?.recordingId).toBe('rec-1');
  });

  it('dials the customer only after the agent has answered', () => {
    const call = startCall();
    call.receive('media.opened');
    expect(call.dialed).toEqual(['agent']);
    call.receive('agent.answered');
    expect(call.dialed).toEqual(['agent', 'customer']);
  });

  it('plays ringback to the agent while the customer rings without media of its own', () => {
    const call = startCall();
    for (const step of ['media.opened', 'agent.answered', 'customer.ringing', 'customer.ringing']) call.receive(step);
    expect(call.mediaCommands).toEqual([
      { type: 'connect', leg: 'agent', media: AGENT_MEDIA },
      { type: 'path', path: 'ringback' },
    ]);
  });

  it('passes early media to the agent, keeps it after a later 180, and follows it to another port', () => {
    const call = startCall();
    for (const step of ['media.opened', 'agent.answered', 'customer.ringing', 'customer.early', 'customer.ringing']) {
      call.receive(step);
    }
    const moved = { ...EARLY_MEDIA, rtpPort: 31_010 };
    call.send({ type: 'customer.ringing', sipStatus: 183, earlyMedia: moved });
    expect(call.mediaCommands.slice(1)).toEqual([
      { type: 'path', path: 'ringback' },
      { type: 'connect', leg: 'customer', media: EARLY_MEDIA },
      { type: 'path', path: 'early-media' },
      { type: 'connect', leg: 'customer', media: moved },
    ]);
    expect(call.moves.filter(({ event }) => event === 'customer.early_media')).toHaveLength(1);
  });

  it('reconnects the customer on answer, because ports may change between 183 and 200, then bridges and records', () => {
    const call = startCall({ record: true });
    for (const step of ['media.opened', 'agent.answered', 'customer.early', 'customer.answered']) call.receive(step);
    expect(call.mediaCommands.slice(3)).toEqual([
      { type: 'connect', leg: 'customer', media: CUSTOMER_MEDIA },
      { type: 'path', path: 'bridged' },
      { type: 'record' },
    ]);
  });

  it('records only on request', () => {
    const call = startCall({ record: false });
    for (const step of PATHS.bridged) call.receive(step);
    expect(call.mediaCommands).not.toContainEqual({ type: 'record' });
  });

  it('follows a leg that renegotiates its media while bridged', () => {
    const call = startCall();
    for (const step of PATHS.bridged) call.receive(step);
    const held: RemoteMedia = { ...AGENT_MEDIA, direction: 'sendonly' };
    call.send({ type: 'agent.media', media: held });
    expect(call.mediaCommands.at(-1)).toEqual({ type: 'connect', leg: 'agent', media: held });
  });

  it('hangs up the remaining leg with the cause of the end, and waits for it before finishing', () => {
    const call = startCall();
    for (const step of PATHS.bridged) call.receive(step);
    call.receive('agent.bye');
    expect(call.state()).toBe('clearing');
    expect(call.hangups).toEqual([{ leg: 'customer', cause: 'NORMAL_CLEARING' }]);
    call.receive('customer.bye');
    expect(call.state()).toBe('finishing');
    expect(call.mediaCommands.at(-1)).toEqual({ type: 'finish' });
  });

  it('cancels both legs when the API hangs up while the customer rings', () => {
    const call = startCall();
    for (const step of PATHS.ringingCustomer) call.receive(step);
    call.receive('hangup.api');
    expect(call.hangups).toEqual([
      { leg: 'agent', cause: 'ORIGINATOR_CANCEL' },
      { leg: 'customer', cause: 'ORIGINATOR_CANCEL' },
    ]);
  });

  it('reports the end of the conversation once, before clearing', () => {
    const call = startCall();
    for (const step of PATHS.finishing) call.receive(step);
    expect(call.clearings).toBe(1);
  });
});

describe('transcribed call', () => {
  it('listens to both legs from the bridge on, only on request', () => {
    const call = startCall({ transcribe: true });
    for (const step of PATHS.ringingCustomer) call.receive(step);
    expect(call.transcripts).toBe(0);
    call.receive('customer.answered');
    expect(call.transcripts).toBe(1);
    const other = startCall();
    for (const step of PATHS.bridged) other.receive(step);
    expect(other.transcripts).toBe(0);
  });

  it('emits transcripts as moves until its outcome is stored', () => {
    const call = startCall({ transcribe: true, settle: 'never' });
    for (const step of PATHS.bridged) call.receive(step);
    call.receive('transcript.started');
    call.receive('transcript.final');
    for (const step of ['hangup.api', 'agent.bye', 'customer.bye', 'media.finished']) call.receive(step);
    call.send({ type: 'transcript.final', segment: segment('goodbye') });
    call.receive('transcript.ended');
    expect(call.state()).toBe('settling');
    call.receive('transcript.final');
    expect(call.moves.slice(3).map(({ event, state, leg, segment: said }) => [event, state, leg, said?.text])).toEqual([
      ['call.bridged', 'bridged', 'customer', undefined],
      ['transcript.started', 'bridged', null, undefined],
      ['transcript.final', 'bridged', 'agent', 'hello'],
      ['transcript.final', 'bridged', 'agent', 'goodbye'],
    ]);
  });

  it('requests the last utterances after the conversation, and waits at most two seconds', () => {
    const call = startCall({ transcribe: true, settle: 'never' });
    for (const step of PATHS.finishing) call.receive(step);
    expect(call.transcriptCommands).toEqual([{ type: 'finish' }]);
    call.receive('media.finished');
    expect(call.state()).toBe('awaitingTranscript');
    call.clock.increment(TRANSCRIPT_TIMEOUT_MS - 1);
    expect(call.state()).toBe('awaitingTranscript');
    call.clock.increment(1);
    expect(call.state()).toBe('settling');
    expect(call.transcripts).toBe(0);
    expect(call.outcome()).toBe('completed call.completed NORMAL_CLEARING - -');
  });

  it('does not wait for an ended or failed transcript', () => {
    for (const end of ['transcript.ended', 'transcript.failed']) {
      const call = startCall({ transcribe: true, settle: 'never' });
      for (const step of PATHS.bridged) call.receive(step);
      call.receive(end);
      expect(call.state()).toBe('bridged');
      for (const step of ['hangup.api', 'agent.bye', 'customer.bye', 'media.finished']) call.receive(step);
      expect(call.state()).toBe('settling');
      expect(call.transcriptCommands).toEqual([]);
    }
  });

  it('reports why a transcript failed', () => {
    const call = startCall({ transcribe: true });
    for (const step of PATHS.bridged) call.receive(step);
    call.receive('transcript.failed');
    expect(call.moves.at(-1)).toMatchObject({ event: 'transcript.failed', state: 'bridged', detail: 'OVERLOADED' });
  });

  it("forwards the end of a leg's tap", () => {
    const call = startCall({ transcribe: true });
    for (const step of PATHS.bridged) call.receive(step);
    call.receive('tap.overrun');
    expect(call.transcriptCommands).toEqual([{ type: 'overrun', leg: 'agent' }]);
  });
});

describe('speech to the agent', () => {
  it('plays on answer, before the customer is dialed', () => {
    const call = startCall({ announce: true });
    for (const step of ['media.opened', 'agent.ringing', 'agent.answered']) call.receive(step);
    expect(call.mediaCommands).toEqual([
      { type: 'connect', leg: 'agent', media: AGENT_MEDIA },
      { type: 'say', speech: 'announcement' },
    ]);
    call.receive('announcement.started');
    expect(call.dialed).toEqual(['agent']);
    call.receive('announcement.finished');
    expect(call.dialed).toEqual(['agent', 'customer']);
    expect(call.moves.slice(2).map(({ event, state, leg }) => `${event} ${state} ${leg}`)).toEqual([
      'agent.answered initiated agent',
      'announcement.started initiated agent',
      'announcement.finished initiated agent',
      'customer.dialing initiated customer',
    ]);
  });

  it('takes no time when nothing is to be played', () => {
    const call = startCall();
    for (const step of PATHS.bridged) call.receive(step);
    expect(call.mediaCommands.filter(({ type }) => type === 'say')).toEqual([]);
  });

  it('gets skipped when it fails, and the reason is logged', () => {
    const call = startCall({ announce: true });
    for (const step of PATHS.announcing) call.receive(step);
    call.receive('announcement.failed');
    expect(call.moves.slice(-2)).toMatchObject([
      { event: 'announcement.failed', detail: 'no engine' },
      { event: 'customer.dialing' },
    ]);
  });

  it('times out when it does not start, and the customer is dialed', () => {
    const call = startCall({ announce: true });
    for (const step of PATHS.announcing) call.receive(step);
    call.clock.increment(SPEECH_BEGIN_TIMEOUT_MS - 1);
    expect(call.state()).toBe('announcing');
    call.clock.increment(1);
    expect(call.state()).toBe('ringingCustomer');
    expect(call.mediaCommands.at(-1)).toEqual({ type: 'path', path: 'idle' });
    expect(call.moves.at(-2)).toMatchObject({ event: 'announcement.failed', detail: 'it did not begin in time' });
    call.receive('announcement.started');
    call.receive('announcement.finished');
    expect(call.moves.at(-1)?.event).toBe('customer.dialing');
  });

  it('times out when it does not end, and the customer is dialed', () => {
    const call = startCall({ announce: true });
    for (const step of PATHS.announcing) call.receive(step);
    call.receive('announcement.started');
    call.clock.increment(LONGEST_SPEECH_MS);
    expect(call.state()).toBe('announcing');
    call.clock.increment(2_000);
    expect(call.state()).toBe('ringingCustomer');
    expect(call.mediaCommands.at(-1)).toEqual({ type: 'path', path: 'idle' });
    expect(call.moves.at(-2)).toMatchObject({ event: 'announcement.failed', detail: 'it did not end in time' });
  });

  it('ends when the agent hangs up, and the customer is not dialed', () => {
    const call = startCall({ announce: true });
    for (const step of PATHS.announcing) call.receive(step);
    call.receive('announcement.started');
    call.receive('agent.bye');
    expect(call.outcome()).toBe('failed call.not_answered ORIGINATOR_CANCEL agent agent_hung_up');
    expect(call.mediaCommands).toContainEqual({ type: 'path', path: 'idle' });
    expect(call.dialed).toEqual(['agent']);
  });

  it('includes a whisper after the bridge and the start of the recording', () => {
    const call = startCall({ whisper: true, record: true });
    for (const step of PATHS.bridged) call.receive(step);
    expect(call.mediaCommands.slice(-3)).toEqual([
      { type: 'path', path: 'bridged' },
      { type: 'record' },
      { type: 'say', speech: 'whisper' },
    ]);
    for (const step of ['whisper.started', 'whisper.finished']) call.receive(step);
    expect(call.moves.slice(-2).map(({ event, state, leg }) => `${event} ${state} ${leg}`)).toEqual([
      'whisper.started bridged agent',
      'whisper.finished bridged agent',
    ]);
    expect(call.state()).toBe('bridged');
  });

  it('leaves the call intact when the whisper fails, and the reason is logged', () => {
    const call = startCall({ whisper: true });
    for (const step of PATHS.bridged) call.receive(step);
    call.receive('whisper.failed');
    expect(call.moves.at(-1)).toMatchObject({ event: 'whisper.failed', state: 'bridged', detail: 'no engine' });
    expect(call.state()).toBe('bridged');
  });
});

describe('whisper that does not start in time', () => {
  it('gets cancelled, and the reason is logged', () => {
    const call = startCall({ whisper: true });
    for (const step of PATHS.bridged) call.receive(step);
    call.clock.increment(SPEECH_BEGIN_TIMEOUT_MS - 1);
    expect(call.moves.at(-1)?.event).toBe('call.bridged');
    call.clock.increment(1);
    expect(call.mediaCommands.at(-1)).toEqual({ type: 'stop-saying' });
    expect(call.moves.at(-1)).toMatchObject({
      event: 'whisper.failed',
      state: 'bridged',
      leg: 'agent',
      detail: 'it did not begin in time',
    });
    expect(call.state()).toBe('bridged');
  });

  for (const step of ['whisper.started', 'whisper.failed']) {
    it(`does not time out after ${step}`, () => {
      const call = startCall({ whisper: true });
      for (const each of [...PATHS.bridged, step]) call.receive(each);
      const moves = call.moves.length;
      call.clock.increment(SPEECH_BEGIN_TIMEOUT_MS);
      expect(call.moves).toHaveLength(moves);
      expect(call.mediaCommands.at(-1)).toEqual({ type: 'say', speech: 'whisper' });
    });
  }

  it('does not time out after the conversation', () => {
    const call = startCall({ whisper: true });
    for (const step of PATHS.finishing) call.receive(step);
    call.clock.increment(SPEECH_BEGIN_TIMEOUT_MS);
    expect(call.moves.map(({ event }) => event)).not.toContain('whisper.failed');
  });
});

describe('timers of a call', () => {
  it('cancel an agent who does not answer in time', () => {
    const call = startCall({ agentRingTimeoutMs: 30_000 });
    for (const step of ['media.opened', 'agent.ringing']) call.receive(step);
    call.clock.increment(29_999);
    expect(call.state()).toBe('ringingAgent');
    call.clock.increment(1);
    expect(call.hangups).toEqual([{ leg: 'agent', cause: 'NO_ANSWER' }]);
    expect(call.outcome()).toBe('failed call.not_answered NO_ANSWER agent agent_no_answer');
  });

  it('cancel a customer who does not answer in time, and hang up the agent', () => {
    const call = startCall({ customerRingTimeoutMs: 45_000 });
    for (const step of PATHS.ringingCustomer) call.receive(step);
    call.clock.increment(45_000);
    expect(call.hangups).toEqual([
      { leg: 'customer', cause: 'NO_ANSWER' },
      { leg: 'agent', cause: 'NO_ANSWER' },
    ]);
    expect(call.outcome()).toBe('failed call.not_answered NO_ANSWER customer customer_no_answer');
  });

  it('end a call at its maximum duration', async () => {
    const call = startCall({ maxDurationMs: 30_000, fundedForMs: 60_000 });
    for (const step of PATHS.bridged) call.receive(step);
    call.clock.increment(30_000);
    expect(call.outcome()).toBe('completed call.completed MAX_DURATION - -');
  });

  it('grow the hold before the funded time ends', async () => {
    const call = startCall({ fundedForMs: 60_000, funding: [{ fundedForMs: 75_000 }] });
    for (const step of PATHS.bridged) call.receive(step);
    call.clock.increment(45_000);
    await call.quiet();
    expect(call.fundingAsked).toBe(1);
    call.clock.increment(59_999);
    expect(call.fundingAsked).toBe(1);
    expect(call.state()).toBe('bridged');
  });

  it('end a call when the wallet is empty, at the last funded moment', async () => {
    const call = startCall({ fundedForMs: 60_000, funding: [{ fundedForMs: 15_000 }, { fundedForMs: 0 }] });
    for (const step of PATHS.bridged) call.receive(step);
    call.clock.increment(45_000);
    await call.quiet();
    call.clock.increment(14_999);
    expect(call.state()).toBe('bridged');
    call.clock.increment(1);
    await call.quiet();
    expect(call.outcome()).toBe('completed call.completed INSUFFICIENT_FUNDS - -');
  });

  it('retry a failed funding request, and end the call after the sixth failure', async () => {
    const call = startCall({ fundedForMs: 1_000, funding: Array.from({ length: 9 }, () => new Error('storage away')) });
    for (const step of PATHS.bridged) call.receive(step);
    call.clock.increment(1_000);
    await call.quiet();
    for (let failure = 1; failure <= 6; failure += 1) {
      expect(call.state()).toBe('bridged');
      call.clock.increment(5_000);
      await call.quiet();
    }
    expect(call.fundingAsked).toBe(7);
    expect(call.outcome()).toBe('completed call.completed NORMAL_TEMPORARY_FAILURE - -');
  });

  it('retry a silent funding request, and end the call after the sixth timeout', async () => {
    const call = startCall({ fundedForMs: 1_000, funding: Array.from({ length: 9 }, () => 'never' as const) });
    for (const step of PATHS.bridged) call.receive(step);
    call.clock.increment(1_000);
    for (let look = 1; look <= 7; look += 1) {
      expect(call.state()).toBe('bridged');
      expect(call.fundingAsked).toBe(look);
      call.clock.increment(5_000);
      await call.quiet();
    }
    expect(call.outcome()).toBe('completed call.completed NORMAL_TEMPORARY_FAILURE - -');
  });

  for (const state of ['clearing', 'finishing'] as const) {
    it(`keep a recording that started just as the conversation ended, when ${state}`, () => {
      const call = startCall({ record: true });
      for (const step of PATHS[state]) call.receive(step);
      call.receive('recording.started');
      expect(call.moves.at(-1)).toMatchObject({ event: 'recording.started', recordingId: 'rec-1' });
      expect(call.state()).toBe(state);
    });

    it(`report a recording that fails during its last write, when ${state}`, () => {
      const call = startCall({ record: true });
      for (const step of PATHS[state]) call.receive(step);
      call.receive('recording.failed');
      expect(call.moves.at(-1)).toMatchObject({ event: 'recording.failed', detail: 'disk full' });
      expect(call.state()).toBe(state);
    });
  }

  it('check very long funding within the maximum delay of a timer', () => {
    expect(fundingCheckDelayMs(Number.POSITIVE_INFINITY)).toBe(2 ** 31 - 1);
  });

  it('finish without a leg whose end is never reported', () => {
    const call = startCall();
    for (const step of PATHS.clearing) call.receive(step);
    call.clock.increment(5_000);
    expect(call.state()).toBe('finishing');
  });

  it('settle without measurements when the media does not finish in time', () => {
    const call = startCall({ settle: 'never' });
    for (const step of PATHS.finishing) call.receive(step);
    call.clock.increment(5_000);
    expect(call.state()).toBe('settling');
    expect(call.settled[0]?.report).toBeNull();
  });

  it('retry settlement with the same outcome until it succeeds', async () => {
    const call = startCall({ settle: 2 });
    for (const step of PATHS.finishing) call.receive(step);
    call.receive('media.finished');
    for (let turn = 0; turn < 3; turn += 1) {
      await call.quiet();
      call.clock.increment(30_000);
    }
    await call.quiet();
    expect(call.settled).toHaveLength(3);
    expect(new Set(call.settled.map((input) => JSON.stringify(input))).size).toBe(1);
    expect(call.actor.getSnapshot().status).toBe('done');
  });

  it('reject a call whose media ports do not open in time', () => {
    const call = startCall({ settle: 'never' });
    call.clock.increment(5_000);
    expect(call.outcome()).toBe('rejected call.temporaryfailed SWITCH_CONGESTION - not_admitted');
    expect(call.dialed).toEqual([]);
  });
});

describe('legs of a call', () => {
  it('report an answer that crosses the CANCEL of a ring timeout once', () => {
    const call = startCall({ agentRingTimeoutMs: 5_000, settle: 'never' });
    call.receive('media.opened');
    call.clock.increment(5_000);
    const outcome = call.outcome();
    call.dialog('agent')({ type: 'leg.answered', sipStatus: 200, media: AGENT_MEDIA });
    call.dialog('agent')({ type: 'leg.ended', by: 'local', hangupCause: 'NO_ANSWER' });
    expect(call.outcome()).toBe(outcome);
    expect(call.dialed).toEqual(['agent']);
  });

  it('map a 408 after ringing to no answer, and one before ringing to unreachable', () => {
    const rung = startCall();
    rung.receive('media.opened');
    rung.dialog('agent')({ type: 'leg.ringing', sipStatus: 180, earlyMedia: null });
    rung.dialog('agent')({ type: 'leg.refused', sipStatus: 408, hangupCause: 'RECOVERY_ON_TIMER_EXPIRE', detail: '' });
    expect(rung.outcome()).toBe('failed call.not_answered NO_ANSWER agent agent_no_answer');
    const silent = startCall();
    silent.receive('media.opened');
    silent.dialog('agent')({
      type: 'leg.refused',
      sipStatus: 408,
      hangupCause: 'RECOVERY_ON_TIMER_EXPIRE',
      detail: '',
    });
    expect(silent.outcome()).toBe('failed call.temporaryfailed RECOVERY_ON_TIMER_EXPIRE agent agent_unreachable');
  });

  it('fail the call when their dialog port throws', () => {
    const call = startCall({ brokenDialog: true });
    call.receive('media.opened');
    expect(call.outcome()).toBe('failed call.temporaryfailed NORMAL_TEMPORARY_FAILURE agent agent_signalling_lost');
  });
});

describe('machine detection', () => {
  const verdicts = ['human', 'machine', 'beep', 'fax', 'unknown'] as const;
  const detected = (result: (typeof verdicts)[number]): CallEvent => ({
    type: 'machine.detected',
    leg: 'customer',
    result,
    afterMs: 1_234,
  });

  it('starts after the bridge, only on request', () => {
    const call = startCall({ onMachine: 'continue' });
    for (const step of PATHS.bridged) call.receive(step);
    expect(call.mediaCommands.slice(-2)).toEqual([{ type: 'path', path: 'bridged' }, { type: 'detect-machine' }]);
    const other = startCall();
    for (const step of PATHS.bridged) other.receive(step);
    expect(other.mediaCommands).not.toContainEqual({ type: 'detect-machine' });
  });

  it.each(verdicts)('keeps the call after the result %s with on_machine continue', (result) => {
    const call = startCall({ onMachine: 'continue' });
    for (const step of PATHS.bridged) call.receive(step);
    call.send(detected(result));
    expect(call.state()).toBe('bridged');
    expect(call.moves.at(-1)).toMatchObject({
      event: 'machine.detected',
      state: 'bridged',
      leg: 'customer',
      data: { result, after_ms: 1_234 },
    });
  });

  it('logs the beep after a machine', () => {
    const call = startCall({ onMachine: 'continue' });
    for (const step of PATHS.bridged) call.receive(step);
    call.send(detected('machine'));
    call.send(detected('beep'));
    expect(call.moves.slice(-2).map(({ data }) => data?.result)).toEqual(['machine', 'beep']);
  });

  it.each([
    ['machine', 'an answering machine answered'],
    ['beep', 'an answering machine answered'],
    ['fax', 'a fax machine answered'],
  ] as const)('ends the call after the result %s with on_machine hangup', (result, errorDetail) => {
    const call = startCall({ onMachine: 'hangup', settle: 'never' });
    for (const step of PATHS.bridged) call.receive(step);
    call.send(detected(result));
    expect(call.state()).toBe('clearing');
    expect(call.moves.at(-1)).toMatchObject({ event: 'machine.detected', data: { result } });
    expect(call.outcome()).toBe('completed call.completed NORMAL_CLEARING - -');
    expect(call.hangups.map(({ leg }) => leg)).toEqual(['agent', 'customer']);
    for (const step of ['agent.bye', 'customer.bye', 'media.finished']) call.receive(step);
    expect(call.settled).toMatchObject([{ outcome: { error: null, errorDetail } }]);
  });

  it.each(['human', 'unknown'] as const)('never ends the call after the result %s', (result) => {
    const call = startCall({ onMachine: 'hangup' });
    for (const step of PATHS.bridged) call.receive(step);
    call.send(detected(result));
    expect(call.state()).toBe('bridged');
    expect(call.outcome()).toBeNull();
  });

  it('ignores a result after the conversation', () => {
    const call = startCall({ onMachine: 'hangup', settle: 'never' });
    for (const step of PATHS.clearing) call.receive(step);
    call.send(detected('machine'));
    expect(call.moves.map(({ event }) => event)).not.toContain('machine.detected');
    expect(call.outcome()).toBe('completed call.completed NORMAL_CLEARING - -');
    expect(call.actor.getSnapshot().context.outcome?.errorDetail).toBeNull();
  });
});
