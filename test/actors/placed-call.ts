import { expect } from 'vitest';
import type { PlaceCallRequest } from '../../actors/dialer.ts';
import { eventually } from '../eventually.ts';
import { NOW } from '../storage/seed.ts';
import { acceptsHangup, type DialerOptions, openDialer } from './dialer-fixture.ts';
import { quiet, remoteMedia } from './fakes.ts';

/** A call with a dialed agent; the test plays the peers. */
export async function placeCallOn(options: DialerOptions, wanted: Partial<PlaceCallRequest> = {}) {
  const dialer = await openDialer(options);
  dialer.sip.onDial = acceptsHangup;
  const { call } = await dialer.dialer.place(dialer.request(wanted));
  await eventually(() => expect(dialer.sip.legs).toHaveLength(1));
  const live = dialer.registry.get(call.call_id)!;
  const leg = (index: number) => {
    const found = dialer.sip.legs[index];
    if (!found) throw new Error('the leg was not dialed');
    return found;
  };
  return {
    ...dialer,
    callId: call.call_id,
    agent: () => leg(0),
    customer: () => leg(1),
    async bridge() {
      leg(0).emit({ type: 'leg.ringing', sipStatus: 180, earlyMedia: null });
      leg(0).emit({ type: 'leg.answered', sipStatus: 200, media: remoteMedia(20_000) });
      await eventually(() => expect(dialer.sip.legs).toHaveLength(2));
      leg(1).emit({ type: 'leg.ringing', sipStatus: 180, earlyMedia: null });
      leg(1).emit({ type: 'leg.answered', sipStatus: 200, media: remoteMedia(30_000) });
      await live.journal.drained();
      expect(live.journal.bridgedAt()?.at).toEqual(NOW);
    },
    /** Resolves with the leg_id once the leg answered and its event is stored. */
    async addThirdParty(): Promise<string> {
      const { callId } = live.row;
      const added = await dialer.dialer.addLeg(
        { workspaceId: dialer.caller.workspaceId, callId },
        { role: 'party', mode: null, endpoint: { type: 'phone', number: '+919833333333' } },
      );
      await eventually(() => expect(dialer.sip.legs).toHaveLength(3));
      leg(2).emit({ type: 'leg.answered', sipStatus: 200, media: remoteMedia(40_000) });
      await live.journal.drained();
      return added.leg_id;
    },
    async hangup() {
      leg(0).emit({ type: 'leg.ended', by: 'peer', hangupCause: 'NORMAL_CLEARING' });
      await quiet();
    },
    /** Waits until the call is settled and removed from this process. */
    async over() {
      await live.settled;
      expect(dialer.registry.list()).toEqual([]);
    },
  };
}
