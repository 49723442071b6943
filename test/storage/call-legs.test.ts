import { describe, expect, it } from 'vitest';
import type { CallLeg } from '../../machines/events.ts';
import { endedLegs, guestSecondsOf, legsAfter } from '../../storage/queries/call-legs.ts';

describe('the legs of a call, as its log tells them', () => {
  const at = (seconds: number) => new Date(1_700_000_000_000 + seconds * 1000);
  const told = (event: string, seconds: number, rest: object = {}) => ({
    event,
    leg: null,
    hangupCause: null,
    at: at(seconds),
    ...rest,
  });
  const LOG = [
    told('call.initiated', 0, { leg: 'agent' }),
    told('agent.ringing', 1, { leg: 'agent' }),
    told('agent.answered', 2, { leg: 'agent' }),
    told('customer.dialing', 2, { leg: 'customer' }),
    told('customer.ringing', 3, { leg: 'customer' }),
    told('call.bridged', 5, { leg: 'customer' }),
    told('leg.dialing', 6, { data: { leg_id: 'leg_1', role: 'supervisor', mode: 'listen' } }),
    told('leg.joined', 8, { data: { leg_id: 'leg_1' } }),
    told('supervision.changed', 9, { data: { leg_id: 'leg_1', mode: 'barge' } }),
    told('call.muted', 10, { leg: 'agent' }),
    told('call.held', 11, { data: { leg_id: 'leg_1' } }),
    told('call.resumed', 12, { data: { leg_id: 'leg_1' } }),
    told('leg.left', 13.5, { data: { leg_id: 'leg_1' }, hangupCause: 'NORMAL_CLEARING' }),
  ];
  const endpointOf = () => ({ type: 'phone', number: '+919833333333' }) as const;
  const legs = LOG.reduce<readonly CallLeg[]>((before, move) => legsAfter(before, move as never, endpointOf), []);

  it('are in the order in which they were dialed, each as the last event left it', () => {
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

  it('all end with the call, those that left before as they left', () => {
    const ended = endedLegs(legs, { at: at(20), hangupCause: 'MEDIA_TIMEOUT' });
    expect(ended.map(({ state, hangupCause }) => `${state} ${hangupCause}`)).toEqual([
      'ended MEDIA_TIMEOUT',
      'ended MEDIA_TIMEOUT',
      'ended NORMAL_CLEARING',
    ]);
  });

  it('take the role of the leg that they replace by a transfer, and are billed all the same', () => {
    const data = { leg_id: 'leg_2', replaces: 'agent', mode: 'blind' };
    const transferred = [
      told('leg.dialing', 5, { data: { leg_id: 'leg_2', role: 'party' } }),
      told('leg.joined', 6, { data: { leg_id: 'leg_2' } }),
      told('transfer.completed', 6, { data }),
      told('leg.left', 7, { leg: 'agent', hangupCause: 'BLIND_TRANSFER' }),
    ].reduce<readonly CallLeg[]>((before, move) => legsAfter(before, move as never, endpointOf), legs.slice(0, 2));
    expect(transferred.map(({ legId, role, state }) => [legId, role, state])).toEqual([
      ['agent', 'agent', 'ended'],
      ['customer', 'customer', 'answered'],
      ['leg_2', 'agent', 'answered'],
    ]);
    expect(guestSecondsOf(transferred, { from: at(5), to: at(20) })).toBe(14);
  });

  it('are billed by every second begun, for those that were added, within the talk', () => {
    expect(guestSecondsOf(legs, { from: at(5), to: at(20) })).toBe(6);
    expect(guestSecondsOf(legs, { from: at(5), to: at(10) })).toBe(2);
    expect(guestSecondsOf(legs, { from: at(5), to: at(7) })).toBe(0);
    expect(guestSecondsOf(legs, { from: null, to: at(20) })).toBe(0);
  });
});
