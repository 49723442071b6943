import { describe, expect, it } from 'vitest';
import { talkRouting } from '../../actors/call-routing.ts';
import { type CallControl, OPEN_TALK, type Talk } from '../../machines/call-control.ts';
import type { CallOutcome } from '../../machines/call-events.ts';
import type { LegId } from '../../machines/events.ts';
import { AGENT_MEDIA, PATHS, startCall } from './call-bench.ts';

const TARGET = 'leg_t';

function talking(options: Parameters<typeof startCall>[0] = {}) {
  const call = startCall(options);
  const refusals: (string | null)[] = [];
  call.actor.on('controlled', ({ refusal }) => refusals.push(refusal));
  for (const name of PATHS.bridged) call.receive(name);
  const ask = (control: CallControl) => call.actor.send({ type: 'control.requested', controlId: 'c', control });
  const dialogOf = (legId: string) => call.dialog(legId);
  return {
    ...call,
    refusals,
    ask,
    transfer(mode: 'blind' | 'attended', { leg = 'agent', target = TARGET } = {}) {
      ask({ type: 'transfer', leg, target, mode });
      call.actor.send({ type: 'guest.opened', legId: target, local: { host: '127.0.0.1', rtpPort: 10_004 } });
    },
    answer(legId = TARGET, { isConnected = true } = {}) {
      dialogOf(legId)({ type: 'leg.answered', sipStatus: 200, media: AGENT_MEDIA });
      call.actor.send({ type: isConnected ? 'guest.connected' : 'guest.unconnected', legId });
    },
    refuse: (legId = TARGET) =>
      dialogOf(legId)({ type: 'leg.refused', sipStatus: 486, hangupCause: 'USER_BUSY', detail: 'busy' }),
    end: (legId: string) => dialogOf(legId)({ type: 'leg.ended', by: 'peer', hangupCause: 'NORMAL_CLEARING' }),
    events: () => call.moves.map(({ event }) => event).filter((event) => /^(transfer|leg)\./.test(event)),
    outcome: (): CallOutcome | null => call.actor.getSnapshot().context.outcome,
    isUp: () => call.actor.getSnapshot().matches({ active: { live: 'bridged' } }),
    /** Audio sources of each leg by the last routing of the media plane. */
    sources() {
      const route = call.mediaCommands.findLast((command) => command.type === 'route');
      const { receives } = talkRouting((route as { talk: Talk }).talk);
      return Object.fromEntries(
        Object.entries(receives).map(([leg, sources]) => [
          leg,
          typeof sources === 'string' ? sources : sources.map(({ party }) => party).join(' '),
        ]),
      );
    },
  };
}

function hold({ ask, actor }: Pick<ReturnType<typeof talking>, 'ask' | 'actor'>, leg: LegId) {
  const control = { type: 'hold', leg, music: true } as const;
  ask(control);
  actor.send({ type: 'control.done', controlId: 'c', control });
}

describe('blind transfer', () => {
  it('plays hold music to the other party until the target answers, then hangs up the replaced leg', () => {
    const call = talking();
    call.transfer('blind');
    expect(call.refusals).toEqual([null]);
    expect(call.sources()).toEqual({ agent: 'ringback', customer: 'hold-music' });
    expect(call.moves.at(-1)).toMatchObject({
      event: 'transfer.started',
      data: { leg_id: TARGET, replaces: 'agent', mode: 'blind', requested_by: 'api' },
    });
    call.answer();
    expect(call.sources()).toEqual({ customer: TARGET, [TARGET]: 'customer' });
    expect(call.hangups).toEqual([{ leg: 'agent', cause: 'BLIND_TRANSFER' }]);
    call.end('agent');
    expect(call.isUp()).toBe(true);
    expect(call.events()).toEqual(['leg.dialing', 'transfer.started', 'leg.joined', 'transfer.completed', 'leg.left']);
    expect(call.moves.at(-1)).toMatchObject({ event: 'leg.left', leg: 'agent' });
  });

  it('restores the conversation when its target is busy', () => {
    const call = talking();
    call.transfer('blind');
    call.refuse();
    expect(call.sources()).toEqual({ agent: 'customer', customer: 'agent' });
    expect(call.moves.at(-1)).toMatchObject({ event: 'transfer.failed', sipStatus: 486, hangupCause: 'USER_BUSY' });
    expect([call.isUp(), call.hangups]).toEqual([true, []]);
  });

  it('restores the conversation when nothing can be sent to the answering target', () => {
    const call = talking();
    call.transfer('blind');
    call.answer(TARGET, { isConnected: false });
    expect(call.hangups).toEqual([{ leg: TARGET, cause: 'INCOMPATIBLE_DESTINATION' }]);
    call.end(TARGET);
    expect([call.isUp(), call.sources()]).toEqual([true, { agent: 'customer', customer: 'agent' }]);
    expect(call.moves.at(-1)).toMatchObject({ event: 'transfer.failed' });
  });

  it('records and reports the target in place of the customer', () => {
    const call = talking();
    call.transfer('blind', { leg: 'customer' });
    expect(call.sources()).toEqual({ agent: 'hold-music', customer: 'ringback' });
    call.answer();
    call.end('customer');
    const { talk } = call.actor.getSnapshot().context;
    expect(talkRouting(talk)).toMatchObject({ recordedBeside: { [TARGET]: 1 }, watched: ['agent', TARGET] });
    call.end(TARGET);
    expect(call.outcome()).toMatchObject({ state: 'completed', hangupCause: 'NORMAL_CLEARING', leg: 'customer' });
  });

  it.each([
    { mode: 'blind', channel: 0 },
    { mode: 'attended', channel: 1 },
  ] as const)('records the target of a $mode transfer of the agent on channel $channel', ({ mode, channel }) => {
    const parties = { leaving: 'agent', staying: 'customer', target: TARGET } as const;
    const transfer = { ...parties, place: 'agent', mode, requestedBy: 'api' } as const;
    const talk = { ...OPEN_TALK, guests: { [TARGET]: null }, transfer };
    expect(talkRouting(talk).recordedBeside).toEqual({ [TARGET]: channel });
  });

  it.each(['agent', 'customer'])('ends the sound that plays to the replaced %s', (leg) => {
    const call = talking();
    call.transfer('blind', { leg });
    call.answer();
    call.end(leg);
    expect(call.mediaCommands.at(-1)).toEqual({ type: 'end-playback', leg });
  });

  it('continues when the replaced leg hangs up first, and ends the call if the target fails then', () => {
    for (const succeeds of [true, false]) {
      const call = talking();
      call.transfer('blind');
      call.end('agent');
      expect([call.isUp(), call.sources()]).toEqual([true, { customer: 'hold-music' }]);
      if (succeeds) call.answer();
      else call.refuse();
      expect(call.isUp()).toBe(succeeds);
      if (succeeds) expect(call.sources()).toEqual({ customer: TARGET, [TARGET]: 'customer' });
      else expect(call.outcome()).toMatchObject({ state: 'completed', hangupCause: 'USER_BUSY' });
      expect(call.events().at(-1)).toBe(succeeds ? 'transfer.completed' : 'transfer.failed');
    }
  });

  it('continues when the replaced leg falls silent first', () => {
    const call = talking();
    call.transfer('blind');
    call.actor.send({ type: 'rtp.timeout', leg: 'agent', silentForMs: 20_000 });
    expect(call.hangups).toEqual([{ leg: 'agent', cause: 'MEDIA_TIMEOUT' }]);
    call.end('agent');
    expect([call.isUp(), call.sources()]).toEqual([true, { customer: 'hold-music' }]);
    call.answer();
    expect(call.events().at(-1)).toBe('transfer.completed');
  });

  it('ends with the call when the waiting party hangs up', () => {
    const call = talking();
    call.transfer('blind');
    call.end('customer');
    expect(call.outcome()).toMatchObject({ state: 'completed', leg: 'customer' });
    expect(call.hangups.map(({ leg }) => leg)).toEqual(['agent', TARGET]);
    expect(call.events()).toEqual(['leg.dialing', 'transfer.started', 'transfer.cancelled']);
  });

  it('can be followed by a transfer from the target', () => {
    const call = talking();
    call.transfer('blind');
    call.answer();
    call.end('agent');
    call.transfer('blind', { leg: TARGET, target: 'leg_u' });
    expect(call.sources()).toEqual({ customer: 'hold-music', [TARGET]: 'ringback' });
    call.answer('leg_u');
    call.end(TARGET);
    expect([call.isUp(), call.sources()]).toEqual([true, { customer: 'leg_u', leg_u: 'customer' }]);
    call.end('leg_u');
    expect(call.outcome()).toMatchObject({ state: 'completed', leg: 'agent' });
  });
});

describe('attended transfer', () => {
  it('connects the target to the transferring leg alone until completed', () => {
    const call = talking();
    call.transfer('attended');
    call.answer();
    expect(call.sources()).toEqual({ agent: TARGET, customer: 'hold-music', [TARGET]: 'agent' });
    expect(call.hangups).toEqual([]);
    call.ask({ type: 'transfer.complete' });
    expect(call.sources()).toEqual({ customer: TARGET, [TARGET]: 'customer' });
    expect(call.hangups).toEqual([{ leg: 'agent', cause: 'ATTENDED_TRANSFER' }]);
    expect(call.refusals).toEqual([null, null]);
  });

  it('completes when the transferring leg hangs up', () => {
    const call = talking();
    call.transfer('attended');
    call.answer();
    call.end('agent');
    expect(call.sources()).toEqual({ customer: TARGET, [TARGET]: 'customer' });
    expect(call.events().slice(-2)).toEqual(['leg.left', 'transfer.completed']);
  });

  it('hangs up the target and restores the conversation when cancelled', () => {
    for (const answered of [true, false]) {
      const call = talking();
      call.transfer('attended');
      if (answered) call.answer();
      call.ask({ type: 'transfer.cancel' });
      expect(call.hangups).toEqual([{ leg: TARGET, cause: 'NORMAL_CLEARING' }]);
      expect(call.refusals).toEqual([null]);
      if (answered) call.end(TARGET);
      else call.refuse();
      expect(call.sources()).toEqual({ agent: 'customer', customer: 'agent' });
      expect(call.events().at(-1)).toBe('transfer.cancelled');
      expect(call.refusals).toEqual([null, null]);
    }
  });

  it('cannot be completed once it is being cancelled', () => {
    const call = talking();
    call.transfer('attended');
    call.answer();
    call.ask({ type: 'transfer.cancel' });
    call.ask({ type: 'transfer.complete' });
    expect(call.refusals).toEqual([null, 'TRANSFER_NOT_FOUND']);
    call.end(TARGET);
    expect([call.isUp(), call.sources()]).toEqual([true, { agent: 'customer', customer: 'agent' }]);
    expect(call.events().at(-1)).toBe('transfer.cancelled');
    expect(call.refusals).toEqual([null, 'TRANSFER_NOT_FOUND', null]);
  });

  it('can be completed and cancelled by the leg_id of its target, and no other', () => {
    const call = talking();
    call.transfer('attended');
    call.answer();
    call.ask({ type: 'transfer.complete', target: 'agent' });
    call.ask({ type: 'transfer.cancel', target: 'agent' });
    expect(call.refusals).toEqual([null, 'TRANSFER_NOT_FOUND', 'TRANSFER_NOT_FOUND']);
    call.ask({ type: 'transfer.cancel', target: TARGET });
    call.end(TARGET);
    expect(call.events().at(-1)).toBe('transfer.cancelled');
  });

  it('cannot be completed once its silent target is being hung up', () => {
    const call = talking();
    call.transfer('attended');
    call.answer();
    call.actor.send({ type: 'rtp.timeout', leg: TARGET, silentForMs: 20_000 });
    call.ask({ type: 'transfer.complete' });
    expect(call.refusals).toEqual([null, 'TRANSFER_NOT_FOUND']);
    call.end(TARGET);
    expect([call.isUp(), call.sources()]).toEqual([true, { agent: 'customer', customer: 'agent' }]);
    expect(call.events().at(-1)).toBe('transfer.failed');
  });

  it('ends the call when the transferring leg hangs up while it is being cancelled', () => {
    const call = talking();
    call.transfer('attended');
    call.answer();
    call.ask({ type: 'transfer.cancel' });
    call.end('agent');
    call.end(TARGET);
    expect(call.isUp()).toBe(false);
    expect(call.events()).not.toContain('transfer.completed');
  });

  it('takes the waiting party off hold when completed', () => {
    for (const mode of ['blind', 'attended'] as const) {
      const call = talking();
      hold(call, 'customer');
      call.transfer(mode);
      call.answer();
      if (mode === 'attended') call.ask({ type: 'transfer.complete' });
      expect(call.sources()).toEqual({ customer: TARGET, [TARGET]: 'customer' });
      expect(call.holds).toEqual(['customer true', 'customer false']);
      const resumed = call.moves.findIndex(({ event }) => event === 'call.resumed');
      expect(call.moves[resumed]).toMatchObject({ leg: 'customer' });
      expect(resumed).toBeGreaterThan(call.moves.findIndex(({ event }) => event === 'transfer.completed'));
    }
  });

  it('takes a target off hold that the transferring leg put on hold', () => {
    const call = talking();
    call.transfer('attended');
    call.answer();
    hold(call, TARGET);
    call.ask({ type: 'transfer.complete' });
    expect(call.sources()).toEqual({ customer: TARGET, [TARGET]: 'customer' });
    expect(call.holds).toEqual([`${TARGET} true`, `${TARGET} false`]);
  });

  it('does not log a hold of the waiting party that the media reports after the completion', () => {
    const call = talking();
    call.transfer('blind');
    const control = { type: 'hold', leg: 'customer', music: true } as const;
    call.actor.send({ type: 'control.requested', controlId: 'h', control });
    call.answer();
    call.actor.send({ type: 'control.done', controlId: 'h', control });
    expect(call.holds).toEqual(['customer true', 'customer false']);
    expect(call.moves.map(({ event }) => event)).not.toContain('call.held');
    expect(call.refusals).toEqual([null, null]);
    hold(call, 'customer');
    expect(call.moves.at(-1)).toMatchObject({ event: 'call.held', leg: 'customer' });
  });

  it('takes the transferring leg off hold, so that it hears the target', () => {
    const call = talking();
    hold(call, 'agent');
    call.transfer('attended');
    expect(call.sources()).toEqual({ agent: 'ringback', customer: 'hold-music' });
    expect(call.moves.slice(-2)).toMatchObject([
      { event: 'transfer.started' },
      { event: 'call.resumed', leg: 'agent' },
    ]);
    call.answer();
    expect(call.sources()).toEqual({ agent: TARGET, customer: 'hold-music', [TARGET]: 'agent' });
    expect(call.holds).toEqual(['agent true', 'agent false']);
  });

  it('leaves the waiting party on hold when cancelled', () => {
    const call = talking();
    hold(call, 'customer');
    call.transfer('attended');
    call.refuse();
    expect(call.sources()).toEqual({ agent: 'silence', customer: 'hold-music' });
    expect(call.holds).toEqual(['customer true']);
  });

  it('keeps third parties with the waiting party, and lets supervisors hear both sides', () => {
    const call = talking();
    for (const [leg, mode] of [
      ['leg_3', null],
      ['leg_s', 'whisper'],
    ] as const) {
      call.ask({ type: 'leg.add', leg, role: mode === null ? 'party' : 'supervisor', mode });
      call.actor.send({ type: 'guest.opened', legId: leg, local: { host: '127.0.0.1', rtpPort: 10_006 } });
      call.answer(leg);
    }
    call.transfer('attended');
    call.answer();
    expect(call.sources()).toEqual({
      agent: `leg_s ${TARGET}`,
      customer: 'leg_3',
      leg_3: 'customer',
      leg_s: `agent customer leg_3 ${TARGET}`,
      [TARGET]: 'agent',
    });
  });
});

describe('request about a transfer', () => {
  it('fails without a leg or transfer that it could affect', () => {
    const call = talking();
    call.ask({ type: 'transfer.complete' });
    call.ask({ type: 'transfer.cancel' });
    call.ask({ type: 'transfer', leg: 'leg_x', target: TARGET, mode: 'blind' });
    expect(call.refusals.splice(0)).toEqual(['TRANSFER_NOT_FOUND', 'TRANSFER_NOT_FOUND', 'LEG_NOT_FOUND']);
    call.transfer('attended');
    call.ask({ type: 'transfer', leg: 'customer', target: 'leg_u', mode: 'blind' });
    call.ask({ type: 'transfer.complete' });
    expect(call.refusals.splice(0)).toEqual([null, 'TRANSFER_IN_PROGRESS', 'TRANSFER_NOT_ANSWERED']);
  });

  it('keeps a sound for both parties that began as one of them left', () => {
    const call = talking();
    const playing = { playbackId: 'play_1', isLooped: true, characters: null } as const;
    const play: CallControl = { type: 'play', legs: ['agent', 'customer'], ...playing };
    call.transfer('blind');
    call.ask(play);
    call.end('agent');
    call.actor.send({ type: 'control.done', controlId: 'c', control: play });
    expect(call.refusals).toEqual([null, null]);
    expect(call.moves.at(-1)).toMatchObject({ event: 'playback.started', data: { playback_id: 'play_1' } });
    call.ask({ type: 'play.stop', playbackId: 'play_1' });
    expect(call.mediaCommands.at(-1)).toMatchObject({ control: { type: 'play.stop' } });
  });

  it('ends without a transfer when its target gets no port', () => {
    const call = talking();
    call.ask({ type: 'transfer', leg: 'agent', target: TARGET, mode: 'blind' });
    call.actor.send({ type: 'guest.unavailable', legId: TARGET, refusal: 'no_free_channel' });
    expect(call.refusals).toEqual(['no_free_channel']);
    expect(call.actor.getSnapshot().context.talk.transfer).toBeNull();
  });

  it('restores the conversation when its target gets no port after another control', () => {
    const call = talking();
    call.ask({ type: 'transfer', leg: 'agent', target: TARGET, mode: 'blind' });
    call.ask({ type: 'mute', leg: 'agent' });
    call.actor.send({ type: 'guest.unavailable', legId: TARGET, refusal: 'no_free_channel' });
    expect(call.sources()).toEqual({ agent: 'customer', customer: 'silence' });
  });

  it('ends the call when its target gets no port after the leaving leg hung up', () => {
    const call = talking();
    call.ask({ type: 'transfer', leg: 'agent', target: TARGET, mode: 'blind' });
    call.end('agent');
    expect(call.isUp()).toBe(true);
    call.actor.send({ type: 'guest.unavailable', legId: TARGET, refusal: 'no_free_channel' });
    expect(call.refusals).toEqual(['no_free_channel']);
    expect(call.isUp()).toBe(false);
    expect(call.outcome()).toMatchObject({ state: 'completed', hangupCause: 'SWITCH_CONGESTION' });
    expect(call.hangups).toEqual([{ leg: 'customer', cause: 'SWITCH_CONGESTION' }]);
  });

  it('fails for a replaced leg, like other controls', () => {
    const call = talking();
    call.transfer('blind');
    call.answer();
    call.end('agent');
    call.ask({ type: 'transfer', leg: 'agent', target: 'leg_u', mode: 'blind' });
    call.ask({ type: 'mute', leg: 'agent' });
    expect(call.refusals.slice(1)).toEqual(['LEG_NOT_FOUND', 'LEG_NOT_FOUND']);
  });
});
