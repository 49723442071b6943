import { describe, expect, it } from 'vitest';
import { talkRouting } from '../../actors/call-routing.ts';
import { type CallControl, OPEN_TALK, type Talk } from '../../machines/call-control.ts';
import type { CallOutcome } from '../../machines/call-events.ts';
import { AGENT_MEDIA, PATHS, startCall } from './call-bench.ts';

const TARGET = 'leg_t';

/** A call while both talk. */
function talking(options: Parameters<typeof startCall>[0] = {}) {
  const call = startCall(options);
  const refusals: (string | null)[] = [];
  call.actor.on('controlled', ({ refusal }) => refusals.push(refusal));
  for (const name of PATHS.bridged) call.tell(name);
  const ask = (control: CallControl) => call.actor.send({ type: 'control.requested', controlId: 'c', control });
  const dialogOf = (legId: string) => call.dialog(legId as never);
  return {
    ...call,
    refusals,
    ask,
    transfer(mode: 'blind' | 'attended', { leg = 'agent', target = TARGET } = {}) {
      ask({ type: 'transfer', leg, target, mode });
      call.actor.send({ type: 'guest.opened', legId: target, local: { host: '127.0.0.1', rtpPort: 10_004 } });
    },
    answer: (legId = TARGET) => dialogOf(legId)({ type: 'leg.answered', sipStatus: 200, media: AGENT_MEDIA }),
    refuse: (legId = TARGET) =>
      dialogOf(legId)({ type: 'leg.refused', sipStatus: 486, hangupCause: 'USER_BUSY', detail: 'busy' }),
    end: (legId: string) => dialogOf(legId)({ type: 'leg.ended', by: 'peer', hangupCause: 'NORMAL_CLEARING' }),
    events: () => call.moves.map(({ event }) => event).filter((event) => /^(transfer|leg)\./.test(event)),
    outcome: (): CallOutcome | null => call.actor.getSnapshot().context.outcome,
    isUp: () => call.actor.getSnapshot().matches({ active: { live: 'bridged' } }),
    /** What each leg hears by the routing that the media plane was told last. */
    hears() {
      const route = call.mediaCommands.findLast((command) => command.type === 'route');
      const { hears } = talkRouting((route as { talk: Talk }).talk);
      return Object.fromEntries(
        Object.entries(hears).map(([leg, heard]) => [
          leg,
          typeof heard === 'string' ? heard : heard.map(({ party }) => party).join(' '),
        ]),
      );
    },
  };
}

describe('a blind transfer', () => {
  it('lets the other party wait with music until the target answers, and hangs up who is replaced', () => {
    const call = talking();
    call.transfer('blind');
    expect(call.refusals).toEqual([null]);
    expect(call.hears()).toEqual({ agent: 'ringback', customer: 'hold-music' });
    expect(call.moves.at(-1)).toMatchObject({
      event: 'transfer.started',
      data: { leg_id: TARGET, replaces: 'agent', mode: 'blind', requested_by: 'api' },
    });
    call.answer();
    expect(call.hears()).toEqual({ customer: TARGET, [TARGET]: 'customer' });
    expect(call.hangups).toEqual([{ leg: 'agent', cause: 'BLIND_TRANSFER' }]);
    call.end('agent');
    expect(call.isUp()).toBe(true);
    expect(call.events()).toEqual(['leg.dialing', 'transfer.started', 'leg.joined', 'transfer.completed', 'leg.left']);
    expect(call.moves.at(-1)).toMatchObject({ event: 'leg.left', leg: 'agent' });
  });

  it('whose target is busy leaves both talking as before', () => {
    const call = talking();
    call.transfer('blind');
    call.refuse();
    expect(call.hears()).toEqual({ agent: 'customer', customer: 'agent' });
    expect(call.moves.at(-1)).toMatchObject({ event: 'transfer.failed', sipStatus: 486, hangupCause: 'USER_BUSY' });
    expect([call.isUp(), call.hangups]).toEqual([true, []]);
  });

  it('of the customer records and names the target in the place of the customer', () => {
    const call = talking();
    call.transfer('blind', { leg: 'customer' });
    expect(call.hears()).toEqual({ agent: 'hold-music', customer: 'ringback' });
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
  ] as const)(
    'records a target that answers a $mode transfer of the agent on channel $channel',
    ({ mode, channel }) => {
      const parties = { leaving: 'agent', staying: 'customer', target: TARGET } as const;
      const transfer = { ...parties, place: 'agent', mode, requestedBy: 'api' } as const;
      const talk = { ...OPEN_TALK, guests: { [TARGET]: null }, transfer };
      expect(talkRouting(talk).recordedBeside).toEqual({ [TARGET]: channel });
    },
  );

  it('goes on when who is replaced hangs up first, and ends the call if the target fails then', () => {
    for (const succeeds of [true, false]) {
      const call = talking();
      call.transfer('blind');
      call.end('agent');
      expect([call.isUp(), call.hears()]).toEqual([true, { customer: 'hold-music' }]);
      if (succeeds) call.answer();
      else call.refuse();
      expect(call.isUp()).toBe(succeeds);
      if (succeeds) expect(call.hears()).toEqual({ customer: TARGET, [TARGET]: 'customer' });
      else expect(call.outcome()).toMatchObject({ state: 'completed', hangupCause: 'USER_BUSY' });
    }
  });

  it('ends with the call when the waiting party hangs up', () => {
    const call = talking();
    call.transfer('blind');
    call.end('customer');
    expect(call.outcome()).toMatchObject({ state: 'completed', leg: 'customer' });
    expect(call.hangups.map(({ leg }) => leg)).toEqual(['agent', TARGET]);
  });

  it('can be followed by one of the target', () => {
    const call = talking();
    call.transfer('blind');
    call.answer();
    call.end('agent');
    call.transfer('blind', { leg: TARGET, target: 'leg_u' });
    expect(call.hears()).toEqual({ customer: 'hold-music', [TARGET]: 'ringback' });
    call.answer('leg_u');
    call.end(TARGET);
    expect([call.isUp(), call.hears()]).toEqual([true, { customer: 'leg_u', leg_u: 'customer' }]);
    call.end('leg_u');
    expect(call.outcome()).toMatchObject({ state: 'completed', leg: 'agent' });
  });
});

describe('an attended transfer', () => {
  it('lets the target consult with who is replaced, apart from the other, until it is completed', () => {
    const call = talking();
    call.transfer('attended');
    call.answer();
    expect(call.hears()).toEqual({ agent: TARGET, customer: 'hold-music', [TARGET]: 'agent' });
    expect(call.hangups).toEqual([]);
    call.ask({ type: 'transfer.complete' });
    expect(call.hears()).toEqual({ customer: TARGET, [TARGET]: 'customer' });
    expect(call.hangups).toEqual([{ leg: 'agent', cause: 'ATTENDED_TRANSFER' }]);
    expect(call.refusals).toEqual([null, null]);
  });

  it('is completed, too, when who is replaced hangs up', () => {
    const call = talking();
    call.transfer('attended');
    call.answer();
    call.end('agent');
    expect(call.hears()).toEqual({ customer: TARGET, [TARGET]: 'customer' });
    expect(call.events().slice(-2)).toEqual(['leg.left', 'transfer.completed']);
  });

  it('that is cancelled hangs up the target, and both talk again', () => {
    for (const answered of [true, false]) {
      const call = talking();
      call.transfer('attended');
      if (answered) call.answer();
      call.ask({ type: 'transfer.cancel' });
      expect(call.hangups).toEqual([{ leg: TARGET, cause: 'NORMAL_CLEARING' }]);
      expect(call.refusals).toEqual([null]);
      if (answered) call.end(TARGET);
      else call.refuse();
      expect(call.hears()).toEqual({ agent: 'customer', customer: 'agent' });
      expect(call.events().at(-1)).toBe('transfer.cancelled');
      expect(call.refusals).toEqual([null, null]);
    }
  });

  it('keeps third parties with the one who waits, and lets supervisors hear both sides', () => {
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
    expect(call.hears()).toEqual({
      agent: `leg_s ${TARGET}`,
      customer: 'leg_3',
      leg_3: 'customer',
      leg_s: `agent customer leg_3 ${TARGET}`,
      [TARGET]: 'agent',
    });
  });
});

describe('a request about transfers', () => {
  it('is refused where there is nothing to transfer, to complete or to cancel', () => {
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

  it('is forgotten when its target gets no port', () => {
    const call = talking();
    call.ask({ type: 'transfer', leg: 'agent', target: TARGET, mode: 'blind' });
    call.actor.send({ type: 'guest.unavailable', legId: TARGET, refusal: 'no_free_channel' });
    expect(call.refusals).toEqual(['no_free_channel']);
    expect(call.actor.getSnapshot().context.talk.transfer).toBeNull();
  });

  it('ends the call when its target gets no port after the leaving leg has hung up', () => {
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

  it('is refused for a leg that was replaced, as other controls are', () => {
    const call = talking();
    call.transfer('blind');
    call.answer();
    call.end('agent');
    call.ask({ type: 'transfer', leg: 'agent', target: 'leg_u', mode: 'blind' });
    call.ask({ type: 'mute', leg: 'agent' });
    expect(call.refusals.slice(1)).toEqual(['LEG_NOT_FOUND', 'LEG_NOT_FOUND']);
  });
});
