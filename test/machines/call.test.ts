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

/**
 * State x event. A cell that is absent means: the event is ignored there, state and outcome stay as they are.
 * `state terminal_event CAUSE leg error` where it ends the call.
 */
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

describe('the call machine, state by event', () => {
  for (const state of Object.keys(TABLE) as (keyof typeof PATHS)[]) {
    for (const event of Object.keys(EVENTS)) {
      const cell = TABLE[state][event];
      const name =
        cell === undefined ? `in ${state}, ${event} changes nothing` : `in ${state}, ${event} leads to ${cell}`;
      it(name, () => {
        const call = startCall({ settle: 'never', announce: state === 'announcing' });
        for (const step of PATHS[state]) call.tell(step);
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

describe('a call that is placed', () => {
  it('tells its moves in order from the agent ringing to the bridge', () => {
    const call = startCall({ record: true });
    for (const step of ['media.opened', 'agent.ringing', 'agent.ringing', 'agent.answered', 'customer.ringing'])
      call.tell(step);
    for (const step of ['customer.ringing', 'customer.answered', 'recording.started']) call.tell(step);
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
    call.tell('media.opened');
    expect(call.dialed).toEqual(['agent']);
    call.tell('agent.answered');
    expect(call.dialed).toEqual(['agent', 'customer']);
  });

  it('plays ringback to the agent while the customer rings without media of its own', () => {
    const call = startCall();
    for (const step of ['media.opened', 'agent.answered', 'customer.ringing', 'customer.ringing']) call.tell(step);
    expect(call.mediaCommands).toEqual([
      { type: 'connect', leg: 'agent', media: AGENT_MEDIA },
      { type: 'path', path: 'ringback' },
    ]);
  });

  it('lets the agent hear early media, keeps it through a later 180, and follows it to another port', () => {
    const call = startCall();
    for (const step of ['media.opened', 'agent.answered', 'customer.ringing', 'customer.early', 'customer.ringing']) {
      call.tell(step);
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

  it('connects the customer again on answer, because ports may change between 183 and 200, then bridges and records', () => {
    const call = startCall({ record: true });
    for (const step of ['media.opened', 'agent.answered', 'customer.early', 'customer.answered']) call.tell(step);
    expect(call.mediaCommands.slice(3)).toEqual([
      { type: 'connect', leg: 'customer', media: CUSTOMER_MEDIA },
      { type: 'path', path: 'bridged' },
      { type: 'record' },
    ]);
  });

  it('does not record unless asked to', () => {
    const call = startCall({ record: false });
    for (const step of PATHS.bridged) call.tell(step);
    expect(call.mediaCommands).not.toContainEqual({ type: 'record' });
  });

  it('follows a leg that re-negotiates its media during the talk', () => {
    const call = startCall();
    for (const step of PATHS.bridged) call.tell(step);
    const held: RemoteMedia = { ...AGENT_MEDIA, direction: 'sendonly' };
    call.send({ type: 'agent.media', media: held });
    expect(call.mediaCommands.at(-1)).toEqual({ type: 'connect', leg: 'agent', media: held });
  });

  it('hangs up the leg that is still up, with the cause of the end, and waits for it before it finishes', () => {
    const call = startCall();
    for (const step of PATHS.bridged) call.tell(step);
    call.tell('agent.bye');
    expect(call.state()).toBe('clearing');
    expect(call.hangups).toEqual([{ leg: 'customer', cause: 'NORMAL_CLEARING' }]);
    call.tell('customer.bye');
    expect(call.state()).toBe('finishing');
    expect(call.mediaCommands.at(-1)).toEqual({ type: 'finish' });
  });

  it('cancels both legs when the API hangs up while the customer rings', () => {
    const call = startCall();
    for (const step of PATHS.ringingCustomer) call.tell(step);
    call.tell('hangup.api');
    expect(call.hangups).toEqual([
      { leg: 'agent', cause: 'ORIGINATOR_CANCEL' },
      { leg: 'customer', cause: 'ORIGINATOR_CANCEL' },
    ]);
  });

  it('announces the end of the talk once, before anything is cleared', () => {
    const call = startCall();
    for (const step of PATHS.finishing) call.tell(step);
    expect(call.clearings).toBe(1);
  });
});

describe('a call that is transcribed', () => {
  it('has both legs listened to from the bridge on, and only when that was asked for', () => {
    const call = startCall({ transcribe: true });
    for (const step of PATHS.ringingCustomer) call.tell(step);
    expect(call.transcripts).toBe(0);
    call.tell('customer.answered');
    expect(call.transcripts).toBe(1);
    const other = startCall();
    for (const step of PATHS.bridged) other.tell(step);
    expect(other.transcripts).toBe(0);
  });

  it('tells what was said as moves, until its outcome is stored', () => {
    const call = startCall({ transcribe: true, settle: 'never' });
    for (const step of PATHS.bridged) call.tell(step);
    call.tell('transcript.started');
    call.tell('transcript.final');
    for (const step of ['hangup.api', 'agent.bye', 'customer.bye', 'media.finished']) call.tell(step);
    call.send({ type: 'transcript.final', segment: segment('goodbye') });
    call.tell('transcript.ended');
    expect(call.state()).toBe('settling');
    call.tell('transcript.final');
    expect(call.moves.slice(3).map(({ event, state, leg, segment: said }) => [event, state, leg, said?.text])).toEqual([
      ['call.bridged', 'bridged', 'customer', undefined],
      ['transcript.started', 'bridged', null, undefined],
      ['transcript.final', 'bridged', 'agent', 'hello'],
      ['transcript.final', 'bridged', 'agent', 'goodbye'],
    ]);
  });

  it('asks for the last words when the talk is over, and waits for them for two seconds at the most', () => {
    const call = startCall({ transcribe: true, settle: 'never' });
    for (const step of PATHS.finishing) call.tell(step);
    expect(call.transcriptCommands).toEqual([{ type: 'finish' }]);
    call.tell('media.finished');
    expect(call.state()).toBe('awaitingTranscript');
    call.clock.increment(TRANSCRIPT_TIMEOUT_MS - 1);
    expect(call.state()).toBe('awaitingTranscript');
    call.clock.increment(1);
    expect(call.state()).toBe('settling');
    expect(call.transcripts).toBe(0);
    expect(call.outcome()).toBe('completed call.completed NORMAL_CLEARING - -');
  });

  it('does not wait for a transcript that is over, and goes on without one that failed', () => {
    for (const end of ['transcript.ended', 'transcript.failed']) {
      const call = startCall({ transcribe: true, settle: 'never' });
      for (const step of PATHS.bridged) call.tell(step);
      call.tell(end);
      expect(call.state()).toBe('bridged');
      for (const step of ['hangup.api', 'agent.bye', 'customer.bye', 'media.finished']) call.tell(step);
      expect(call.state()).toBe('settling');
      expect(call.transcriptCommands).toEqual([]);
    }
  });

  it('tells why a transcript failed', () => {
    const call = startCall({ transcribe: true });
    for (const step of PATHS.bridged) call.tell(step);
    call.tell('transcript.failed');
    expect(call.moves.at(-1)).toMatchObject({ event: 'transcript.failed', state: 'bridged', detail: 'OVERLOADED' });
  });

  it('passes on that the tap of a leg has ended', () => {
    const call = startCall({ transcribe: true });
    for (const step of PATHS.bridged) call.tell(step);
    call.tell('tap.overrun');
    expect(call.transcriptCommands).toEqual([{ type: 'overrun', leg: 'agent' }]);
  });
});

describe('what the agent of a call is told', () => {
  it('is said on answering, and the customer is dialed when it has been said', () => {
    const call = startCall({ announce: true });
    for (const step of ['media.opened', 'agent.ringing', 'agent.answered']) call.tell(step);
    expect(call.mediaCommands).toEqual([
      { type: 'connect', leg: 'agent', media: AGENT_MEDIA },
      { type: 'say', speech: 'announcement' },
    ]);
    call.tell('announcement.started');
    expect(call.dialed).toEqual(['agent']);
    call.tell('announcement.finished');
    expect(call.dialed).toEqual(['agent', 'customer']);
    expect(call.moves.slice(2).map(({ event, state, leg }) => `${event} ${state} ${leg}`)).toEqual([
      'agent.answered initiated agent',
      'announcement.started initiated agent',
      'announcement.finished initiated agent',
      'customer.dialing initiated customer',
    ]);
  });

  it('is nothing, and takes no time, where nothing is to be said', () => {
    const call = startCall();
    for (const step of PATHS.bridged) call.tell(step);
    expect(call.mediaCommands.filter(({ type }) => type === 'say')).toEqual([]);
  });

  it('is left out when it cannot be said, and the log says why', () => {
    const call = startCall({ announce: true });
    for (const step of PATHS.announcing) call.tell(step);
    call.tell('announcement.failed');
    expect(call.moves.slice(-2)).toMatchObject([
      { event: 'announcement.failed', detail: 'no engine' },
      { event: 'customer.dialing' },
    ]);
  });

  it('is given up when it does not begin in time, and the customer is dialed', () => {
    const call = startCall({ announce: true });
    for (const step of PATHS.announcing) call.tell(step);
    call.clock.increment(SPEECH_BEGIN_TIMEOUT_MS - 1);
    expect(call.state()).toBe('announcing');
    call.clock.increment(1);
    expect(call.state()).toBe('ringingCustomer');
    expect(call.mediaCommands.at(-1)).toEqual({ type: 'path', path: 'idle' });
    expect(call.moves.at(-2)).toMatchObject({ event: 'announcement.failed', detail: 'it did not begin in time' });
    call.tell('announcement.started');
    call.tell('announcement.finished');
    expect(call.moves.at(-1)?.event).toBe('customer.dialing');
  });

  it('is given up when it does not end in time, and the customer is dialed', () => {
    const call = startCall({ announce: true });
    for (const step of PATHS.announcing) call.tell(step);
    call.tell('announcement.started');
    call.clock.increment(LONGEST_SPEECH_MS);
    expect(call.state()).toBe('announcing');
    call.clock.increment(2_000);
    expect(call.state()).toBe('ringingCustomer');
    expect(call.mediaCommands.at(-1)).toEqual({ type: 'path', path: 'idle' });
    expect(call.moves.at(-2)).toMatchObject({ event: 'announcement.failed', detail: 'it did not end in time' });
  });

  it('ends with an agent who hangs up meanwhile, and the customer is never dialed', () => {
    const call = startCall({ announce: true });
    for (const step of PATHS.announcing) call.tell(step);
    call.tell('announcement.started');
    call.tell('agent.bye');
    expect(call.outcome()).toBe('failed call.not_answered ORIGINATOR_CANCEL agent agent_hung_up');
    expect(call.mediaCommands).toContainEqual({ type: 'path', path: 'idle' });
    expect(call.dialed).toEqual(['agent']);
  });

  it('is whispered once they are bridged, after the recording has begun, and told of', () => {
    const call = startCall({ whisper: true, record: true });
    for (const step of PATHS.bridged) call.tell(step);
    expect(call.mediaCommands.slice(-3)).toEqual([
      { type: 'path', path: 'bridged' },
      { type: 'record' },
      { type: 'say', speech: 'whisper' },
    ]);
    for (const step of ['whisper.started', 'whisper.finished']) call.tell(step);
    expect(call.moves.slice(-2).map(({ event, state, leg }) => `${event} ${state} ${leg}`)).toEqual([
      'whisper.started bridged agent',
      'whisper.finished bridged agent',
    ]);
    expect(call.state()).toBe('bridged');
  });

  it('lets the talk go on without a whisper that cannot be said, and the log says why', () => {
    const call = startCall({ whisper: true });
    for (const step of PATHS.bridged) call.tell(step);
    call.tell('whisper.failed');
    expect(call.moves.at(-1)).toMatchObject({ event: 'whisper.failed', state: 'bridged', detail: 'no engine' });
    expect(call.state()).toBe('bridged');
  });
});

describe('a whisper that does not begin in time', () => {
  it('is given up, so that it is not heard minutes later, and the log says why', () => {
    const call = startCall({ whisper: true });
    for (const step of PATHS.bridged) call.tell(step);
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

  for (const heard of ['whisper.started', 'whisper.failed']) {
    it(`is no matter after ${heard}`, () => {
      const call = startCall({ whisper: true });
      for (const step of [...PATHS.bridged, heard]) call.tell(step);
      const told = call.moves.length;
      call.clock.increment(SPEECH_BEGIN_TIMEOUT_MS);
      expect(call.moves).toHaveLength(told);
      expect(call.mediaCommands.at(-1)).toEqual({ type: 'say', speech: 'whisper' });
    });
  }

  it('is no matter once the talk is over', () => {
    const call = startCall({ whisper: true });
    for (const step of PATHS.finishing) call.tell(step);
    call.clock.increment(SPEECH_BEGIN_TIMEOUT_MS);
    expect(call.moves.map(({ event }) => event)).not.toContain('whisper.failed');
  });
});

describe('the timers of a call', () => {
  it('gives up an agent who does not answer in time, and sends a CANCEL', () => {
    const call = startCall({ agentRingTimeoutMs: 30_000 });
    for (const step of ['media.opened', 'agent.ringing']) call.tell(step);
    call.clock.increment(29_999);
    expect(call.state()).toBe('ringingAgent');
    call.clock.increment(1);
    expect(call.hangups).toEqual([{ leg: 'agent', cause: 'NO_ANSWER' }]);
    expect(call.outcome()).toBe('failed call.not_answered NO_ANSWER agent agent_no_answer');
  });

  it('gives up a customer who does not answer in time, cancels that leg and hangs up the agent', () => {
    const call = startCall({ customerRingTimeoutMs: 45_000 });
    for (const step of PATHS.ringingCustomer) call.tell(step);
    call.clock.increment(45_000);
    expect(call.hangups).toEqual([
      { leg: 'customer', cause: 'NO_ANSWER' },
      { leg: 'agent', cause: 'NO_ANSWER' },
    ]);
    expect(call.outcome()).toBe('failed call.not_answered NO_ANSWER customer customer_no_answer');
  });

  it('ends a talk at its maximum duration', async () => {
    const call = startCall({ maxDurationMs: 30_000, fundedForMs: 60_000 });
    for (const step of PATHS.bridged) call.tell(step);
    call.clock.increment(30_000);
    expect(call.outcome()).toBe('completed call.completed MAX_DURATION - -');
  });

  it('lets the hold grow before the paid talk is over, and goes on', async () => {
    const call = startCall({ fundedForMs: 60_000, funding: [{ fundedForMs: 75_000 }] });
    for (const step of PATHS.bridged) call.tell(step);
    call.clock.increment(45_000);
    await call.quiet();
    expect(call.fundingAsked).toBe(1);
    call.clock.increment(59_999);
    expect(call.fundingAsked).toBe(1);
    expect(call.state()).toBe('bridged');
  });

  it('ends the talk when the wallet has run dry, not before the last paid moment', async () => {
    const call = startCall({ fundedForMs: 60_000, funding: [{ fundedForMs: 15_000 }, { fundedForMs: 0 }] });
    for (const step of PATHS.bridged) call.tell(step);
    call.clock.increment(45_000);
    await call.quiet();
    call.clock.increment(14_999);
    expect(call.state()).toBe('bridged');
    call.clock.increment(1);
    await call.quiet();
    expect(call.outcome()).toBe('completed call.completed INSUFFICIENT_FUNDS - -');
  });

  it('retries a failed look at the wallet, and gives the call up after the sixth', async () => {
    const call = startCall({ fundedForMs: 1_000, funding: Array.from({ length: 9 }, () => new Error('storage away')) });
    for (const step of PATHS.bridged) call.tell(step);
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

  it('looks again at a wallet that does not answer, and gives the call up after the sixth look', async () => {
    const call = startCall({ fundedForMs: 1_000, funding: Array.from({ length: 9 }, () => 'never' as const) });
    for (const step of PATHS.bridged) call.tell(step);
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
    it(`keeps a recording that began just as the talk ended, when ${state}`, () => {
      const call = startCall({ record: true });
      for (const step of PATHS[state]) call.tell(step);
      call.tell('recording.started');
      expect(call.moves.at(-1)).toMatchObject({ event: 'recording.started', recordingId: 'rec-1' });
      expect(call.state()).toBe(state);
    });

    it(`reports a recording that fails while its last bytes are written, when ${state}`, () => {
      const call = startCall({ record: true });
      for (const step of PATHS[state]) call.tell(step);
      call.tell('recording.failed');
      expect(call.moves.at(-1)).toMatchObject({ event: 'recording.failed', detail: 'disk full' });
      expect(call.state()).toBe(state);
    });
  }

  it('checks a very long funding no later than a timer can wait', () => {
    expect(fundingCheckDelayMs(Number.POSITIVE_INFINITY)).toBe(2 ** 31 - 1);
  });

  it('finishes without a leg whose end is never reported', () => {
    const call = startCall();
    for (const step of PATHS.clearing) call.tell(step);
    call.clock.increment(5_000);
    expect(call.state()).toBe('finishing');
  });

  it('settles without measurements when the media does not finish in time', () => {
    const call = startCall({ settle: 'never' });
    for (const step of PATHS.finishing) call.tell(step);
    call.clock.increment(5_000);
    expect(call.state()).toBe('settling');
    expect(call.settled[0]?.report).toBeNull();
  });

  it('settles until it has succeeded, with the same outcome each time', async () => {
    const call = startCall({ settle: 2 });
    for (const step of PATHS.finishing) call.tell(step);
    call.tell('media.finished');
    for (let turn = 0; turn < 3; turn += 1) {
      await call.quiet();
      call.clock.increment(30_000);
    }
    await call.quiet();
    expect(call.settled).toHaveLength(3);
    expect(new Set(call.settled.map((input) => JSON.stringify(input))).size).toBe(1);
    expect(call.actor.getSnapshot().status).toBe('done');
  });

  it('rejects a call whose media ports do not open in time', () => {
    const call = startCall({ settle: 'never' });
    call.clock.increment(5_000);
    expect(call.outcome()).toBe('rejected call.temporaryfailed SWITCH_CONGESTION - not_admitted');
    expect(call.dialed).toEqual([]);
  });
});

describe('a leg of a call', () => {
  it('ends an answer that crosses the CANCEL of a ring timeout without telling the call twice', () => {
    const call = startCall({ agentRingTimeoutMs: 5_000, settle: 'never' });
    call.tell('media.opened');
    call.clock.increment(5_000);
    const outcome = call.outcome();
    call.dialog('agent')({ type: 'leg.answered', sipStatus: 200, media: AGENT_MEDIA });
    call.dialog('agent')({ type: 'leg.ended', by: 'local', hangupCause: 'NO_ANSWER' });
    expect(call.outcome()).toBe(outcome);
    expect(call.dialed).toEqual(['agent']);
  });

  it('takes a 408 after ringing for no answer and one before it for an unreachable party', () => {
    const rung = startCall();
    rung.tell('media.opened');
    rung.dialog('agent')({ type: 'leg.ringing', sipStatus: 180, earlyMedia: null });
    rung.dialog('agent')({ type: 'leg.refused', sipStatus: 408, hangupCause: 'RECOVERY_ON_TIMER_EXPIRE', detail: '' });
    expect(rung.outcome()).toBe('failed call.not_answered NO_ANSWER agent agent_no_answer');
    const silent = startCall();
    silent.tell('media.opened');
    silent.dialog('agent')({
      type: 'leg.refused',
      sipStatus: 408,
      hangupCause: 'RECOVERY_ON_TIMER_EXPIRE',
      detail: '',
    });
    expect(silent.outcome()).toBe('failed call.temporaryfailed RECOVERY_ON_TIMER_EXPIRE agent agent_unreachable');
  });

  it('fails the call when its dialog port breaks', () => {
    const call = startCall({ brokenDialog: true });
    call.tell('media.opened');
    expect(call.outcome()).toBe('failed call.temporaryfailed NORMAL_TEMPORARY_FAILURE agent agent_signalling_lost');
  });
});

describe('the machine detection of a call', () => {
  const verdicts = ['human', 'machine', 'beep', 'fax', 'unknown'] as const;
  const detected = (result: (typeof verdicts)[number]): CallEvent => ({
    type: 'machine.detected',
    leg: 'customer',
    result,
    afterMs: 1_234,
  });

  it('starts once both are bridged, and only when requested', () => {
    const call = startCall({ onMachine: 'continue' });
    for (const step of PATHS.bridged) call.tell(step);
    expect(call.mediaCommands.slice(-2)).toEqual([{ type: 'path', path: 'bridged' }, { type: 'detect-machine' }]);
    const other = startCall();
    for (const step of PATHS.bridged) other.tell(step);
    expect(other.mediaCommands).not.toContainEqual({ type: 'detect-machine' });
  });

  it.each(verdicts)('keeps the call after the result %s, if it is to continue', (result) => {
    const call = startCall({ onMachine: 'continue' });
    for (const step of PATHS.bridged) call.tell(step);
    call.send(detected(result));
    expect(call.state()).toBe('bridged');
    expect(call.moves.at(-1)).toMatchObject({
      event: 'machine.detected',
      state: 'bridged',
      leg: 'customer',
      data: { result, after_ms: 1_234 },
    });
  });

  it('logs the beep that follows a machine', () => {
    const call = startCall({ onMachine: 'continue' });
    for (const step of PATHS.bridged) call.tell(step);
    call.send(detected('machine'));
    call.send(detected('beep'));
    expect(call.moves.slice(-2).map(({ data }) => data?.result)).toEqual(['machine', 'beep']);
  });

  it.each([
    ['machine', 'an answering machine answered'],
    ['beep', 'an answering machine answered'],
    ['fax', 'a fax machine answered'],
  ] as const)('ends the call after the result %s, if it is to hang up', (result, errorDetail) => {
    const call = startCall({ onMachine: 'hangup', settle: 'never' });
    for (const step of PATHS.bridged) call.tell(step);
    call.send(detected(result));
    expect(call.state()).toBe('clearing');
    expect(call.moves.at(-1)).toMatchObject({ event: 'machine.detected', data: { result } });
    expect(call.outcome()).toBe('completed call.completed NORMAL_CLEARING - -');
    expect(call.hangups.map(({ leg }) => leg)).toEqual(['agent', 'customer']);
    for (const step of ['agent.bye', 'customer.bye', 'media.finished']) call.tell(step);
    expect(call.settled).toMatchObject([{ outcome: { error: null, errorDetail } }]);
  });

  it.each(['human', 'unknown'] as const)('never ends the call after the result %s', (result) => {
    const call = startCall({ onMachine: 'hangup' });
    for (const step of PATHS.bridged) call.tell(step);
    call.send(detected(result));
    expect(call.state()).toBe('bridged');
    expect(call.outcome()).toBeNull();
  });

  it('ignores a result that comes after the talk', () => {
    const call = startCall({ onMachine: 'hangup', settle: 'never' });
    for (const step of PATHS.clearing) call.tell(step);
    call.send(detected('machine'));
    expect(call.moves.map(({ event }) => event)).not.toContain('machine.detected');
    expect(call.outcome()).toBe('completed call.completed NORMAL_CLEARING - -');
    expect(call.actor.getSnapshot().context.outcome?.errorDetail).toBeNull();
  });
});
