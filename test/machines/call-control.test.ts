import { describe, expect, it } from 'vitest';
import type { CallControl } from '../../machines/call-control.ts';
import type { CallEvent } from '../../machines/call-events.ts';
import { EVENTS, PATHS, startCall } from './call-bench.ts';

const MUTE: CallControl = { type: 'mute', leg: 'agent' };
const HOLD: CallControl = { type: 'hold', leg: 'customer', music: true };
const PRESS: CallControl = { type: 'dtmf', leg: 'customer', digits: '12#', durationMs: 160 };
const PAUSE: CallControl = { type: 'recording.pause' };
const PLAY = {
  type: 'play',
  playbackId: 'play_1',
  legs: ['agent', 'customer'],
  isLooped: false,
  characters: 12,
} as const satisfies CallControl;
const STOP: CallControl = { type: 'play.stop', playbackId: 'play_1' };
const CONTROLS: readonly CallControl[] = [
  MUTE,
  { type: 'unmute', leg: 'agent' },
  HOLD,
  { type: 'resume', leg: 'customer' },
  PRESS,
  PAUSE,
  { type: 'recording.resume' },
  PLAY,
  STOP,
];

function callIn(state: keyof typeof PATHS, options: Parameters<typeof startCall>[0] = {}) {
  const call = startCall(options);
  const controlled: { controlId: string; refusal: string | null }[] = [];
  call.actor.on('controlled', ({ controlId, refusal }) => controlled.push({ controlId, refusal }));
  for (const name of PATHS[state]) call.receive(name);
  let asked = 0;
  return {
    ...call,
    controlled,
    ask(control: CallControl): string {
      asked += 1;
      call.actor.send({ type: 'control.requested', controlId: `${asked}`, control });
      return `${asked}`;
    },
    movesAfterBridge: () =>
      call.moves.slice(call.moves.findIndex(({ event }) => event === 'call.bridged') + 1).map(({ event }) => event),
  };
}

describe('control of a call', () => {
  for (const state of Object.keys(PATHS) as (keyof typeof PATHS)[]) {
    if (state === 'bridged') continue;
    it(`fails with CALL_NOT_LIVE and without effect while the call is ${state}`, () => {
      const call = callIn(state, { announce: state === 'announcing' });
      const commands = call.mediaCommands.length;
      const moves = call.moves.length;
      for (const control of CONTROLS) call.ask(control);
      expect(call.controlled).toEqual(
        CONTROLS.map((_, index) => ({ controlId: `${index + 1}`, refusal: 'CALL_NOT_LIVE' })),
      );
      expect([call.mediaCommands.length, call.moves.length]).toEqual([commands, moves]);
    });
  }

  it('goes to the media, and is confirmed and logged afterwards', () => {
    const call = callIn('bridged');
    const controlId = call.ask(MUTE);
    expect(call.mediaCommands.at(-1)).toMatchObject({
      type: 'control',
      controlId,
      control: MUTE,
      talk: { muted: { agent: true, customer: false } },
    });
    expect([call.controlled, call.movesAfterBridge()]).toEqual([[], []]);
    call.actor.send({ type: 'control.done', controlId, control: MUTE });
    expect(call.controlled).toEqual([{ controlId, refusal: null }]);
    expect(call.moves.at(-1)).toMatchObject({ event: 'call.muted', state: 'bridged', leg: 'agent' });
    expect(call.actor.getSnapshot().context.talk.muted).toEqual({ agent: true, customer: false });
  });

  it('confirms a control already in effect without repeating or logging it', () => {
    const call = callIn('bridged');
    call.actor.send({ type: 'control.done', controlId: call.ask(MUTE), control: MUTE });
    const commands = call.mediaCommands.length;
    call.ask(MUTE);
    expect(call.mediaCommands).toHaveLength(commands);
    expect(call.controlled.map(({ refusal }) => refusal)).toEqual([null, null]);
    expect(call.movesAfterBridge()).toEqual(['call.muted']);
  });

  it('logs two simultaneous requests once', () => {
    const call = callIn('bridged');
    const [first] = [call.ask(MUTE), call.ask(MUTE)];
    call.actor.send({ type: 'control.done', controlId: first, control: MUTE });
    expect(call.controlled.map(({ refusal }) => refusal)).toEqual([null, null]);
    expect(call.movesAfterBridge()).toEqual(['call.muted']);
  });

  it('fails without effect when the media cannot apply it', () => {
    const call = callIn('bridged');
    const controlId = call.ask(MUTE);
    call.actor.send({ type: 'control.failed', controlId, control: MUTE, refusal: 'INTERNAL' });
    expect(call.controlled).toEqual([{ controlId, refusal: 'INTERNAL' }]);
    expect(call.actor.getSnapshot().context.talk.muted.agent).toBe(false);
    expect(call.movesAfterBridge()).toEqual([]);
  });

  it('fails and is not logged when the media applies it after the conversation', () => {
    const call = callIn('bridged');
    const controlId = call.ask(PRESS);
    call.actor.send(EVENTS['hangup.api'] as CallEvent);
    call.actor.send({ type: 'control.done', controlId, control: PRESS });
    expect(call.controlled).toEqual([{ controlId, refusal: 'CALL_NOT_LIVE' }]);
    expect(call.movesAfterBridge()).not.toContain('dtmf.sent');
  });

  it('includes the effects of pending controls', () => {
    const call = callIn('bridged');
    const other: CallControl = { type: 'mute', leg: 'customer' };
    const ids = [call.ask(MUTE), call.ask(other)] as const;
    expect(call.mediaCommands.at(-1)).toMatchObject({ talk: { muted: { agent: true, customer: true } } });
    call.actor.send({ type: 'control.done', controlId: ids[0], control: MUTE });
    call.actor.send({ type: 'control.done', controlId: ids[1], control: other });
    expect(call.movesAfterBridge()).toEqual(['call.muted', 'call.muted']);
  });

  it('queues an opposite control behind a pending one', () => {
    const call = callIn('bridged');
    call.ask(MUTE);
    call.ask({ type: 'unmute', leg: 'agent' });
    const talks = call.mediaCommands.flatMap((command) =>
      command.type === 'control' ? [command.talk.muted.agent] : [],
    );
    expect(talks).toEqual([true, false]);
  });

  it('preserves a later control when an earlier one fails', () => {
    const call = callIn('bridged');
    const first = call.ask(MUTE);
    call.ask({ type: 'unmute', leg: 'agent' });
    call.actor.send({ type: 'control.failed', controlId: first, control: MUTE, refusal: 'INTERNAL' });
    expect(call.actor.getSnapshot().context.talk.muted.agent).toBe(false);
  });

  it('preserves the effects of other controls', () => {
    const call = callIn('bridged');
    for (const control of [MUTE, { type: 'mute', leg: 'customer' }, { type: 'unmute', leg: 'agent' }] as const) {
      call.actor.send({ type: 'control.done', controlId: call.ask(control), control });
    }
    expect(call.mediaCommands.at(-1)).toMatchObject({ talk: { muted: { agent: false, customer: true } } });
    expect(call.movesAfterBridge()).toEqual(['call.muted', 'call.muted', 'call.unmuted']);
  });
});

describe('leg on hold', () => {
  it("notifies the leg's peer of hold, audio and resume", () => {
    const call = callIn('bridged');
    for (const control of [HOLD, { ...HOLD, music: false }, { type: 'resume', leg: 'customer' }] as const) {
      call.actor.send({ type: 'control.done', controlId: call.ask(control), control });
    }
    const held = call.mediaCommands.flatMap((command) => (command.type === 'control' ? [command.talk.held] : []));
    expect(held).toEqual([
      { agent: null, customer: 'music' },
      { agent: null, customer: 'silence' },
      { agent: null, customer: null },
    ]);
    expect(call.holds).toEqual(['customer true', 'customer true', 'customer false']);
    expect(call.moves.slice(-3).map(({ event, leg, data }) => ({ event, leg, data }))).toEqual([
      { event: 'call.held', leg: 'customer', data: { music: true } },
      { event: 'call.held', leg: 'customer', data: { music: false } },
      { event: 'call.resumed', leg: 'customer', data: null },
    ]);
  });
});

describe('hold that the media cannot start', () => {
  it('resumes the peer of the leg', () => {
    const call = callIn('bridged');
    const controlId = call.ask(HOLD);
    call.actor.send({ type: 'control.failed', controlId, control: HOLD, refusal: 'INTERNAL' });
    expect(call.holds).toEqual(['customer true', 'customer false']);
    expect(call.actor.getSnapshot().context.talk.held.customer).toBeNull();
  });
});

describe('resume that the media cannot apply', () => {
  for (const music of [true, false]) {
    it(`keeps the leg on hold with ${music ? 'music' : 'silence'}`, () => {
      const call = callIn('bridged');
      const hold: CallControl = { type: 'hold', leg: 'customer', music };
      call.actor.send({ type: 'control.done', controlId: call.ask(hold), control: hold });
      const controlId = call.ask({ type: 'resume', leg: 'customer' });
      const command = call.mediaCommands.at(-1);
      if (command?.type !== 'control') throw new Error('the media was not asked');
      call.actor.send({ type: 'control.failed', controlId, control: command.control, refusal: 'INTERNAL' });
      expect(call.actor.getSnapshot().context.talk.held.customer).toBe(music ? 'music' : 'silence');
      expect(call.holds.at(-1)).toBe('customer true');
    });
  }
});

describe('recording of a call', () => {
  it('can be paused and resumed only while it runs', () => {
    const call = callIn('bridged', { record: true });
    call.ask(PAUSE);
    expect(call.controlled).toEqual([{ controlId: '1', refusal: 'RECORDING_UNAVAILABLE' }]);
    call.actor.send(EVENTS['recording.started'] as CallEvent);
    for (const control of [PAUSE, { type: 'recording.resume' }] as const) {
      call.actor.send({ type: 'control.done', controlId: call.ask(control), control });
    }
    call.actor.send(EVENTS['recording.failed'] as CallEvent);
    call.ask(PAUSE);
    expect(call.controlled.map(({ refusal }) => refusal)).toEqual([
      'RECORDING_UNAVAILABLE',
      null,
      null,
      'RECORDING_UNAVAILABLE',
    ]);
    expect(call.movesAfterBridge()).toEqual([
      'recording.started',
      'recording.paused',
      'recording.resumed',
      'recording.failed',
    ]);
  });
});

describe('key press of a party', () => {
  it('becomes an event with leg and digit', () => {
    const call = callIn('bridged');
    call.actor.send(EVENTS['dtmf.pressed'] as CallEvent);
    expect(call.moves.at(-1)).toMatchObject({ event: 'dtmf.received', leg: 'agent', data: { digit: '5' } });
  });

  it('stops being logged after a thousand presses', () => {
    const call = callIn('bridged');
    for (let pressed = 0; pressed < 1_100; pressed++) call.actor.send(EVENTS['dtmf.pressed'] as CallEvent);
    expect(call.movesAfterBridge()).toHaveLength(1_000);
  });
});

describe('playback into a call', () => {
  it('logs its start with the number of characters, and its end', () => {
    const call = callIn('bridged');
    const controlId = call.ask(PLAY);
    expect(call.mediaCommands.at(-1)).toMatchObject({ type: 'control', controlId, control: PLAY });
    call.actor.send({ type: 'control.done', controlId, control: PLAY });
    call.actor.send({ type: 'playback.ended', playbackId: 'play_1', end: 'played' });
    expect(call.controlled).toEqual([{ controlId, refusal: null }]);
    expect(call.moves.slice(-2).map(({ event, data }) => ({ event, data }))).toEqual([
      { event: 'playback.started', data: { playback_id: 'play_1', legs: ['agent', 'customer'], characters: 12 } },
      { event: 'playback.finished', data: { playback_id: 'play_1', reason: 'played' } },
    ]);
  });

  it('can be stopped once', () => {
    const call = callIn('bridged');
    call.actor.send({ type: 'control.done', controlId: call.ask(PLAY), control: PLAY });
    call.actor.send({ type: 'control.done', controlId: call.ask(STOP), control: STOP });
    const commands = call.mediaCommands.length;
    call.ask(STOP);
    expect(call.mediaCommands).toHaveLength(commands);
    expect(call.controlled.map(({ refusal }) => refusal)).toEqual([null, null, 'PLAYBACK_NOT_FOUND']);
    expect(call.moves.at(-1)?.data).toEqual({ playback_id: 'play_1', reason: 'stopped' });
  });

  it('rejects a stop and ignores an end when nothing plays', () => {
    const call = callIn('bridged');
    call.ask(STOP);
    call.actor.send({ type: 'playback.ended', playbackId: 'play_1', end: 'played' });
    expect(call.controlled.map(({ refusal }) => refusal)).toEqual(['PLAYBACK_NOT_FOUND']);
    expect(call.movesAfterBridge()).toEqual([]);
  });

  it('ends with the call, and logs that', () => {
    const call = callIn('bridged');
    call.actor.send({ type: 'control.done', controlId: call.ask(PLAY), control: PLAY });
    call.receive('hangup.api');
    call.actor.send({ type: 'playback.ended', playbackId: 'play_1', end: 'stopped' });
    expect(call.movesAfterBridge()).toEqual(['playback.started', 'playback.finished']);
    expect(call.moves.at(-1)?.data).toEqual({ playback_id: 'play_1', reason: 'stopped' });
  });

  it('fails for an unanswered leg, and forwards a refusal of the media', () => {
    const call = callIn('bridged');
    call.ask({ ...PLAY, legs: ['leg_1'] });
    const controlId = call.ask(PLAY);
    call.actor.send({ type: 'control.failed', controlId, control: PLAY, refusal: 'LEG_NOT_LISTENING' });
    expect(call.controlled.map(({ refusal }) => refusal)).toEqual(['LEG_NOT_FOUND', 'LEG_NOT_LISTENING']);
    expect(call.movesAfterBridge()).toEqual([]);
  });
});
