import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { peerAvailable } from '../peers/programs.ts';
import { type CalledScenario, startSipp } from '../peers/sipp.ts';
import { type DialedLeg, dialLeg, trunkOf } from './dialing.ts';
import { TestNetwork } from './test-network.ts';

/** Outgoing calls to sipp, which checks each message against a scenario. */

let network: TestNetwork;
beforeAll(async () => {
  network = await TestNetwork.start();
});
afterAll(() => network.stop());

interface Expected {
  last: Record<string, unknown>;
  /** Types of all events without repeated ringing, where relevant. */
  events?: string[];
  act?: (leg: DialedLeg) => Promise<unknown> | unknown;
  after?: 'leg.answered' | 'leg.ringing';
}

const ENDED_BY_US = { type: 'leg.ended', by: 'local' };
const ENDED_BY_PEER = { type: 'leg.ended', by: 'peer', hangupCause: 'NORMAL_CLEARING' };
const hangUp = ({ leg }: DialedLeg) => leg.hangup('NORMAL_CLEARING');
const refused = (sipStatus: number, hangupCause: string): Expected => ({
  last: { type: 'leg.refused', sipStatus, hangupCause },
});
const hungUp: Expected = { last: ENDED_BY_US, act: hangUp };
const left: Expected = { last: ENDED_BY_PEER };

const EXPECTED: Record<CalledScenario, Expected> = {
  'answers-and-plays-tone': { ...hungUp, events: ['leg.ringing', 'leg.answered', 'leg.ended'] },
  'answers-at-once': { ...hungUp, events: ['leg.answered', 'leg.ended'] },
  'answers-without-sdp': refused(488, 'INCOMPATIBLE_DESTINATION'),
  'answers-without-contact': hungUp,
  'answers-in-compact-form': hungUp,
  'answers-with-unknown-codec': refused(488, 'INCOMPATIBLE_DESTINATION'),
  'answers-with-another-event-type': {
    last: ENDED_BY_US,
    act: async (dialed) => {
      const { media } = await dialed.log.until('leg.answered');
      expect(media.telephoneEventPayloadType).toBe(96);
      hangUp(dialed);
    },
  },
  'early-media': { ...hungUp, events: ['leg.ringing', 'leg.answered', 'leg.ended'] },
  'rings-as-several-phones': { ...hungUp, events: ['leg.ringing', 'leg.ringing', 'leg.answered', 'leg.ended'] },
  'queues-the-call': { ...hungUp, events: ['leg.ringing', 'leg.answered', 'leg.ended'] },
  busy: refused(486, 'USER_BUSY'),
  declines: refused(603, 'CALL_REJECTED'),
  'knows-no-such-number': refused(404, 'UNALLOCATED_NUMBER'),
  'is-not-available': refused(480, 'NO_USER_RESPONSE'),
  'finds-the-number-incomplete': refused(484, 'INVALID_NUMBER_FORMAT'),
  'is-forbidden': refused(403, 'CALL_REJECTED'),
  'fails-inside': refused(500, 'NORMAL_TEMPORARY_FAILURE'),
  'is-overloaded': refused(503, 'NORMAL_TEMPORARY_FAILURE'),
  'has-no-common-codec': refused(488, 'INCOMPATIBLE_DESTINATION'),
  'redirects-elsewhere': {
    last: {
      ...{ type: 'leg.refused', sipStatus: 302 },
      detail:
        'the carrier redirected the call to another address, which Tandem does not follow (302 Moved Temporarily)',
    },
  },
  'refuses-with-a-q850-cause': refused(480, 'UNALLOCATED_NUMBER'),
  'challenges-and-answers': hungUp,
  'challenges-for-ever': refused(401, 'CALL_REJECTED'),
  'challenges-the-bye': hungUp,
  'wants-a-longer-session': hungUp,
  'requires-prack': { ...hungUp, events: ['leg.ringing', 'leg.answered', 'leg.ended'] },
  'answers-although-cancelled': { last: ENDED_BY_US, act: hangUp, after: 'leg.ringing' },
  'never-answers': { ...refused(487, 'ORIGINATOR_CANCEL'), act: hangUp, after: 'leg.ringing' },
  'is-busy-when-cancelled': { ...refused(486, 'USER_BUSY'), act: hangUp, after: 'leg.ringing' },
  'hangs-up-after-answer': left,
  'hangs-up-with-a-reason': { last: { ...ENDED_BY_PEER, hangupCause: 'USER_BUSY' } },
  'holds-and-resumes': { ...left, events: ['leg.answered', 'leg.media', 'leg.media', 'leg.ended'] },
  'holds-with-inactive': { ...left, events: ['leg.answered', 'leg.media', 'leg.ended'] },
  'holds-with-a-null-address': { ...left, events: ['leg.answered', 'leg.media', 'leg.ended'] },
  'holds-with-port-zero': { ...left, events: ['leg.answered', 'leg.media', 'leg.media', 'leg.ended'] },
  'offers-an-unknown-codec-later': { ...left, events: ['leg.answered', 'leg.ended'] },
  'reinvites-without-offer': {
    last: ENDED_BY_US,
    act: async (dialed) => {
      expect((await dialed.log.until('leg.media')).media.direction).toBe('sendonly');
      hangUp(dialed);
    },
  },
  'refreshes-with-update': left,
  'wants-a-session-of-ten-seconds': left,
  'asks-for-options': left,
  'sends-a-message': left,
  'transfers-with-refer': left,
  'presses-a-key-by-info': { ...left, events: ['leg.answered', 'leg.pressed', 'leg.ended'] },
  'sends-an-unknown-info': left,
  'refuses-our-hold': { ...left, act: ({ leg }) => leg.hold(true), events: ['leg.answered', 'leg.ended'] },
  'reinvites-at-the-same-time': {
    last: ENDED_BY_US,
    act: async (dialed) => {
      dialed.leg.hold(true);
      await dialed.log.until('leg.glare');
      hangUp(dialed);
    },
  },
  'has-lost-the-dialog': {
    last: { type: 'leg.ended', by: 'local', hangupCause: 'RECOVERY_ON_TIMER_EXPIRE' },
    act: ({ leg }) => leg.hold(true),
  },
};

describe.skipIf(!peerAvailable('sipp'))('leg to sipp', () => {
  it.each(Object.entries(EXPECTED) as [CalledScenario, Expected][])(
    'passes scenario %s',
    async (scenario, { last, events, act, after = 'leg.answered' }) => {
      const peer = await startSipp({ scenario });
      try {
        const trunk = trunkOf(peer.sipUri, { username: 'tandem', password: 's3cret' });
        const dialed = dialLeg(network.gateway, { trunk });
        if (act !== undefined) {
          await dialed.log.until(after);
          await act(dialed);
        }
        expect(await dialed.over()).toMatchObject(last);
        if (events !== undefined) expect(dialed.log.all.map(({ type }) => type)).toEqual(events);
        await peer.succeeded();
      } finally {
        await peer.stop();
      }
    },
  );
});
