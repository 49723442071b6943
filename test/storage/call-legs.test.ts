import { describe, expect, it } from 'vitest';
import type { CallLeg } from '../../machines/events.ts';
import { endedLegs, guestSecondsOf, legsAfter } from '../../storage/queries/call-legs.ts';

describe('legs of a call from its event log', () => {
  const at = (seconds: number) => new Date(1_700_000_000_000 + seconds * 1000);
  type Move = Parameters<typeof legsAfter>[1];
  const move = (event: string, seconds: number, rest: Partial<Move> = {}): Move => ({
    event,
    leg: null,
    hangupCause: null,
    at: at(seconds),
    ...rest,
  });
  const LOG = [
    move('call.initiated', 0, { leg: 'agent' }),
    move('agent.ringing', 1, { leg: 'agent' }),
    move('agent.answered', 2, { leg: 'agent' }),
    move('customer.dialing', 2, { leg: 'customer' }),
    move('customer.ringing', 3, { leg: 'customer' }),
    move('call.bridged', 5, { leg: 'customer' }),
    move('leg.dialing', 6, { data: { leg_id: 'leg_1', role: 'supervisor', mode: 'listen' } }),
    move('leg.joined', 8, { data: { leg_id: 'leg_1' } }),
    move('supervision.changed', 9, { data: { leg_id: 'leg_1', mode: 'barge' } }),
    move('call.muted', 10, { leg: 'agent' }),
    move('call.held', 11, { data: { leg_id: 'leg_1' } }),
    move('call.resumed', 12, { data: { leg_id: 'leg_1' } }),
    move('leg.left', 13.5, { data: { leg_id: 'leg_1' }, hangupCause: 'NORMAL_CLEARING' }),
  ];
  const endpointOf = () => ({ type: 'phone', number: '+919833333333' }) as const;
  const legs = LOG.reduce<readonly CallLeg[]>((before, move) => legsAfter(before, move, endpointOf), []);

  it('appear in dialing order with their last state', () => {
    expect(legs).toMatchObject([
      { legId: 'agent', role: 'agent', state: 'answered', muted: true, joinedAt: at(2).toISOString(), number: null },
      { legId: 'customer', state: 'answered', joinedAt: at(5).toISOString(), leftAt: null },
      {
        legId: 'leg_1',
        role: 'supervisor',
        mode: 'barge',
        number: '+919833333333',
        state: 'ended',
        joinedAt: at(8).toISOString(),
        leftAt: at(13.5).toISOString(),
        hangupCause: 'NORMAL_CLEARING',
      },
    ]);
  });

  it('all end with the call, except those that ended before', () => {
    const ended = endedLegs(legs, { at: at(20), hangupCause: 'MEDIA_TIMEOUT' });
    expect(ended.map(({ state, hangupCause }) => `${state} ${hangupCause}`)).toEqual([
      'ended MEDIA_TIMEOUT',
      'ended MEDIA_TIMEOUT',
      'ended NORMAL_CLEARING',
    ]);
  });

  it('inherit the role of a transferred leg and remain billable', () => {
    const data = { leg_id: 'leg_2', replaces: 'agent', mode: 'blind' };
    const transferred = [
      move('leg.dialing', 5, { data: { leg_id: 'leg_2', role: 'party' } }),
      move('leg.joined', 6, { data: { leg_id: 'leg_2' } }),
      move('transfer.completed', 6, { data }),
      move('leg.left', 7, { leg: 'agent', hangupCause: 'BLIND_TRANSFER' }),
    ].reduce<readonly CallLeg[]>((before, move) => legsAfter(before, move, endpointOf), legs.slice(0, 2));
    expect(transferred.map(({ legId, role, state }) => [legId, role, state])).toEqual([
      ['agent', 'agent', 'ended'],
      ['customer', 'customer', 'answered'],
      ['leg_2', 'agent', 'answered'],
    ]);
    expect(guestSecondsOf(transferred, { from: at(5), to: at(20) })).toBe(14);
  });

  it('count billed seconds of added legs within the talk, rounded up', () => {
    expect(guestSecondsOf(legs, { from: at(5), to: at(20) })).toBe(6);
    expect(guestSecondsOf(legs, { from: at(5), to: at(10) })).toBe(2);
    expect(guestSecondsOf(legs, { from: at(5), to: at(7) })).toBe(0);
    expect(guestSecondsOf(legs, { from: null, to: at(20) })).toBe(0);
  });
});
