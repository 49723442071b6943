import { describe, expect, it } from 'vitest';
import type { CallControl } from '../../machines/call-control.ts';
import { MOST_GUESTS } from '../../machines/call-setup.ts';
import { AGENT_MEDIA, EVENTS, PATHS, startCall } from './call-bench.ts';

/** A bridged call, with reports about added legs. */
function talking(options: Parameters<typeof startCall>[0] = {}) {
  const call = startCall(options);
  const controlled: { controlId: string; refusal: string | null }[] = [];
  call.actor.on('controlled', ({ controlId, refusal }) => controlled.push({ controlId, refusal }));
  for (const name of PATHS.bridged) call.receive(name);
  let asked = 0;
  const ask = (control: CallControl): string => {
    asked += 1;
    call.actor.send({ type: 'control.requested', controlId: `${asked}`, control });
    return `${asked}`;
  };
  const local = { host: '127.0.0.1', rtpPort: 10_004 };
  const dialogOf = (legId: string) => call.dialog(legId);
  return {
    ...call,
    get fundingAsked() {
      return call.fundingAsked;
    },
    controlled,
    ask,
    dialogOf,
    add: (legId: string, mode: 'listen' | 'whisper' | 'barge' | null = null) => {
      ask({ type: 'leg.add', leg: legId, role: mode === null ? 'party' : 'supervisor', mode });
      call.actor.send({ type: 'guest.opened', legId, local });
    },
    answer: (legId: string) => dialogOf(legId)({ type: 'leg.answered', sipStatus: 200, media: AGENT_MEDIA }),
    end: (legId: string) => dialogOf(legId)({ type: 'leg.ended', by: 'peer', hangupCause: 'NORMAL_CLEARING' }),
    since: () => call.moves.slice(call.moves.findIndex(({ event }) => event === 'call.bridged') + 1),
    state: () => call.actor.getSnapshot(),
  };
}

describe('added leg', () => {
  it('gets dialed once it has a port, and joins when it answers', () => {
    const call = talking();
    const controlId = call.ask({ type: 'leg.add', leg: 'leg_1', role: 'party', mode: null });
    expect(call.mediaCommands.at(-1)).toEqual({ type: 'add-party', leg: 'leg_1' });
    expect([call.controlled, call.dialed]).toEqual([[], ['agent', 'customer']]);
    call.actor.send({ type: 'guest.opened', legId: 'leg_1', local: { host: '127.0.0.1', rtpPort: 10_004 } });
    expect(call.controlled).toEqual([{ controlId, refusal: null }]);
    call.dialogOf('leg_1')({ type: 'leg.ringing', sipStatus: 180, earlyMedia: null });
    call.dialogOf('leg_1')({ type: 'leg.ringing', sipStatus: 183, earlyMedia: null });
    call.answer('leg_1');
    expect(call.mediaCommands.slice(-2)).toMatchObject([
      { type: 'connect', leg: 'leg_1' },
      { type: 'route', talk: { guests: { leg_1: null } } },
    ]);
    expect(call.since().map(({ event, leg, data }) => [event, leg, data])).toEqual([
      ['leg.dialing', null, { leg_id: 'leg_1', role: 'party' }],
      ['leg.ringing', null, { leg_id: 'leg_1' }],
      ['leg.joined', null, { leg_id: 'leg_1' }],
    ]);
  });

  it('gets transcribed as a third party or a barging supervisor of a transcribed call', () => {
    const call = talking({ transcribe: true });
    call.actor.send({ type: 'transcript.started' });
    for (const [leg, mode] of [
      ['leg_1', null],
      ['leg_s', 'barge'],
      ['leg_w', 'whisper'],
    ] as const) {
      call.add(leg, mode);
      call.answer(leg);
      call.actor.send({ type: 'guest.connected', legId: leg });
    }
    expect(call.transcriptCommands.splice(0)).toEqual([
      { type: 'join', leg: 'leg_1' },
      { type: 'join', leg: 'leg_s' },
    ]);
    for (const mode of ['listen', 'barge'] as const) {
      const control: CallControl = { type: 'supervise', leg: 'leg_w', mode };
      call.actor.send({ type: 'control.done', controlId: call.ask(control), control });
    }
    expect(call.transcriptCommands.splice(0)).toEqual([{ type: 'join', leg: 'leg_w' }]);
    call.end('leg_1');
    call.end('leg_s');
    expect(call.transcriptCommands).toEqual([
      { type: 'leave', leg: 'leg_1' },
      { type: 'leave', leg: 'leg_s' },
    ]);
  });

  it('fails and disappears when it gets no port', () => {
    const call = talking();
    const controlId = call.ask({ type: 'leg.add', leg: 'leg_1', role: 'party', mode: null });
    call.actor.send({ type: 'guest.unavailable', legId: 'leg_1', refusal: 'no_free_channel' });
    expect(call.controlled).toEqual([{ controlId, refusal: 'no_free_channel' }]);
    expect([call.since(), call.state().context.guests]).toEqual([[], {}]);
  });

  it('counts towards the limit of eight', () => {
    const call = talking();
    for (let n = 0; n < MOST_GUESTS; n += 1) call.add(`leg_${n}`);
    call.ask({ type: 'leg.add', leg: 'leg_more', role: 'party', mode: null });
    expect(call.controlled.at(-1)).toMatchObject({ refusal: 'TOO_MANY_LEGS' });
    expect(Object.keys(call.state().context.guests)).toHaveLength(MOST_GUESTS);
  });

  it('fails by its own ring timeout without ending the call', () => {
    const call = talking({ customerRingTimeoutMs: 20_000 });
    call.add('leg_1');
    call.clock.increment(20_000);
    expect(call.since().at(-1)).toMatchObject({ event: 'leg.failed', hangupCause: 'NO_ANSWER', leg: null });
    expect(call.state().matches({ active: { live: 'bridged' } })).toBe(true);
    expect(call.mediaCommands.at(-1)).toEqual({ type: 'remove-party', leg: 'leg_1' });
  });

  it('hangs up when dropped, and confirms the request once it ended', () => {
    const call = talking();
    call.add('leg_1');
    call.answer('leg_1');
    const controlId = call.ask({ type: 'leg.drop', leg: 'leg_1' });
    expect(call.hangups).toEqual([{ leg: 'leg_1', cause: 'NORMAL_CLEARING' }]);
    expect(call.controlled.map((outcome) => outcome.controlId)).not.toContain(controlId);
    call.end('leg_1');
    expect(call.controlled.at(-1)).toEqual({ controlId, refusal: null });
    expect(call.since().at(-1)).toMatchObject({ event: 'leg.left', data: { leg_id: 'leg_1' } });
    expect(call.state().context.talk.guests).toEqual({});
  });

  it('hangs up after too long a silence without ending the call', () => {
    const call = talking();
    call.add('leg_1');
    call.answer('leg_1');
    call.actor.send({ type: 'rtp.timeout', leg: 'leg_1', silentForMs: 20_000 });
    expect(call.hangups).toEqual([{ leg: 'leg_1', cause: 'MEDIA_TIMEOUT' }]);
    expect(call.state().matches({ active: { live: 'bridged' } })).toBe(true);
  });

  it('cannot end the call by a late silence report after leaving', () => {
    const call = talking();
    call.add('leg_1');
    call.answer('leg_1');
    call.end('leg_1');
    call.actor.send({ type: 'rtp.timeout', leg: 'leg_1', silentForMs: 20_000 });
    expect(call.state().matches({ active: { live: 'bridged' } })).toBe(true);
    expect(call.hangups).toEqual([]);
  });

  it('rejects its pending controls when it leaves', () => {
    const call = talking();
    call.add('leg_s', 'listen');
    call.answer('leg_s');
    const control: CallControl = { type: 'supervise', leg: 'leg_s', mode: 'barge', from: 'listen' };
    const done = call.ask(control);
    const hold: CallControl = { type: 'hold', leg: 'leg_s', music: true };
    const failed = call.ask(hold);
    call.end('leg_s');
    call.actor.send({ type: 'control.done', controlId: done, control });
    call.actor.send({ type: 'control.failed', controlId: failed, control: hold, refusal: 'INTERNAL' });
    expect(call.controlled.slice(-2).map(({ refusal }) => refusal)).toEqual(['LEG_NOT_FOUND', 'INTERNAL']);
    expect(call.since().at(-1)).toMatchObject({ event: 'leg.left' });
    expect(call.state().context.talk).toMatchObject({ held: { agent: null, customer: null }, guests: {} });
    expect(call.state().context.talk.held).not.toHaveProperty('leg_s');
  });

  it('hangs up without ending the call when its media address cannot be reached', () => {
    const call = talking();
    call.add('leg_1');
    call.answer('leg_1');
    call.actor.send({ type: 'guest.unconnected', legId: 'leg_1' });
    expect(call.hangups).toEqual([{ leg: 'leg_1', cause: 'INCOMPATIBLE_DESTINATION' }]);
  });

  it('extends the wallet hold when it joins and when it leaves', () => {
    const call = talking();
    call.add('leg_1');
    expect(call.fundingAsked).toBe(0);
    call.answer('leg_1');
    expect(call.fundingAsked).toBe(1);
    call.end('leg_1');
    expect(call.fundingAsked).toBe(2);
  });

  it('hangs up with the call, which waits for its end', () => {
    const call = talking();
    call.add('leg_1');
    call.answer('leg_1');
    call.add('leg_2');
    call.ask({ type: 'leg.add', leg: 'leg_3', role: 'party', mode: null });
    call.receive('hangup.api');
    expect(call.hangups.map(({ leg }) => leg).sort()).toEqual(['agent', 'customer', 'leg_1', 'leg_2']);
    call.receive('agent.bye');
    call.receive('customer.bye');
    call.end('leg_2');
    expect(call.state().matches({ active: 'clearing' })).toBe(true);
    call.end('leg_1');
    expect(call.state().matches({ active: 'finishing' })).toBe(true);
    expect(call.since().map(({ event }) => event)).toEqual([
      'leg.dialing',
      'leg.joined',
      'leg.dialing',
      'leg.failed',
      'leg.left',
    ]);
  });

  it('can be muted and held once answered, and its controls end with it', () => {
    const call = talking();
    call.add('leg_1');
    call.ask({ type: 'mute', leg: 'leg_1' });
    expect(call.controlled.at(-1)).toMatchObject({ refusal: 'LEG_NOT_FOUND' });
    call.answer('leg_1');
    const control: CallControl = { type: 'hold', leg: 'leg_1', music: true };
    call.actor.send({ type: 'control.done', controlId: call.ask(control), control });
    expect(call.holds).toEqual(['leg_1 true']);
    expect(call.since().at(-1)).toMatchObject({
      event: 'call.held',
      leg: null,
      data: { leg_id: 'leg_1', music: true },
    });
    call.end('leg_1');
    expect(call.state().context.talk.held).toEqual({ agent: null, customer: null });
  });
});

describe('supervisor leg', () => {
  it('starts supervision on answer, changes the mode, and ends by leaving', () => {
    const call = talking();
    call.add('leg_s', 'listen');
    call.answer('leg_s');
    const control: CallControl = { type: 'supervise', leg: 'leg_s', mode: 'whisper' };
    const controlId = call.ask(control);
    expect(call.mediaCommands.at(-1)).toMatchObject({
      type: 'control',
      control: { ...control, from: 'listen' },
      talk: { guests: { leg_s: 'whisper' } },
    });
    call.actor.send({ type: 'control.done', controlId, control });
    call.end('leg_s');
    expect(call.since().map(({ event, data }) => [event, data?.mode])).toEqual([
      ['leg.dialing', 'listen'],
      ['leg.joined', undefined],
      ['supervision.started', 'listen'],
      ['supervision.changed', 'whisper'],
      ['supervision.ended', undefined],
      ['leg.left', undefined],
    ]);
  });

  it('keeps its mode when the media cannot change it', () => {
    const call = talking();
    call.add('leg_s', 'listen');
    call.answer('leg_s');
    const control: CallControl = { type: 'supervise', leg: 'leg_s', mode: 'barge', from: 'listen' };
    const controlId = call.ask({ type: 'supervise', leg: 'leg_s', mode: 'barge' });
    call.actor.send({ type: 'control.failed', controlId, control, refusal: 'INTERNAL' });
    expect(call.state().context.talk.guests).toEqual({ leg_s: 'listen' });
  });

  it('cannot be a leg that was added as a party', () => {
    const call = talking();
    call.add('leg_1');
    call.answer('leg_1');
    call.ask({ type: 'supervise', leg: 'leg_1', mode: 'listen' });
    expect(call.controlled.at(-1)).toMatchObject({ refusal: 'LEG_NOT_FOUND' });
  });
});

describe('added leg outside a conversation', () => {
  for (const state of ['ringingCustomer', 'clearing'] as const) {
    it(`fails while the call is ${state}`, () => {
      const call = startCall();
      const refusals: (string | null)[] = [];
      call.actor.on('controlled', ({ refusal }) => refusals.push(refusal));
      for (const name of PATHS[state]) call.receive(name);
      const control = { type: 'leg.add', leg: 'leg_1', role: 'party', mode: null } as const;
      call.actor.send({ type: 'control.requested', controlId: '1', control });
      expect(refusals).toEqual(['CALL_NOT_LIVE']);
      expect(call.actor.getSnapshot().context.guests).toEqual({});
    });
  }

  it('ignores events for unknown legs', () => {
    const call = talking();
    call.actor.send({ type: 'guest.opened', legId: 'leg_x', local: { host: '127.0.0.1', rtpPort: 10_004 } });
    call.actor.send({ type: 'guest.unavailable', legId: 'leg_x', refusal: 'INTERNAL' });
    call.actor.send({ type: 'guest.unconnected', legId: 'leg_x' });
    call.actor.send(EVENTS['rtp.started']!);
    expect([call.since(), call.controlled]).toEqual([[], []]);
  });
});
