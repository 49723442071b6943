import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LegEvent } from '../../machines/events.ts';
import type { InboundCall, LegDialog } from '../../sip/sip-gateway.ts';
import { peerAvailable } from '../peers/programs.ts';
import { type CallingScenario, callWithSipp } from '../peers/sipp.ts';
import { EventLog } from '../softphone/event-log.ts';
import { trunkOf } from './dialing.ts';
import { TestNetwork } from './test-network.ts';

/** Incoming calls from sipp, which checks each message against a scenario. */

const NUMBER = '+911140000001';

let network: TestNetwork;
let take: (call: InboundCall) => void;
beforeAll(async () => {
  network = await TestNetwork.start();
  network.gateway.onCall((call) => take(call));
});
afterAll(() => network.stop());

interface Taken {
  log: EventLog<LegEvent>;
  leg: LegDialog;
}

function answer(call: InboundCall): Taken {
  const log = new EventLog<LegEvent>();
  call.ring();
  const leg = call.answer({
    trunk: trunkOf('sip:127.0.0.1'),
    localMedia: { host: '127.0.0.1', rtpPort: 40_000 },
    callId: 'call-1',
    leg: 'customer',
    signal: new AbortController().signal,
    onEvent: (event) => log.add(event),
  });
  return { log, leg };
}

interface Expected {
  take?: (call: InboundCall) => Taken | null;
  act?: (taken: Taken) => void;
  events?: LegEvent['type'][];
  /** Media directions that the peer offered later. */
  directions?: string[];
}

const NOBODY_IS_CALLED: Expected = { take: () => expect.unreachable('no call may come of it') };

/** Expected outcome of the leg per scenario; no events without a leg. */
const EXPECTED: Record<CallingScenario, Expected> = {
  'calls-and-hangs-up': { events: ['leg.answered', 'leg.ended'] },
  'calls-and-is-hung-up': {
    act: ({ leg }) => leg.hangup('NORMAL_CLEARING'),
    events: ['leg.answered', 'leg.ended'],
  },
  'hangs-up-ahead-of-its-ack': { events: ['leg.answered', 'leg.ended'] },
  'calls-without-offer': { events: ['leg.answered', 'leg.ended'] },
  'calls-with-unknown-codec': { events: ['leg.refused'] },
  'is-refused-as-busy': {
    take: (call) => {
      call.refuse('USER_BUSY');
      return null;
    },
  },
  'requires-an-unknown-extension': NOBODY_IS_CALLED,
  'calls-on-the-last-hop': { events: ['leg.answered', 'leg.ended'] },
  'wants-a-session-of-ten-seconds': NOBODY_IS_CALLED,
  'cancels-while-it-rings': {
    take: (call) => {
      call.ring();
      return null;
    },
  },
  'holds-and-resumes': {
    events: ['leg.answered', 'leg.media', 'leg.media', 'leg.ended'],
    directions: ['sendonly', 'sendrecv'],
  },
  'holds-with-update': { events: ['leg.answered', 'leg.media', 'leg.ended'], directions: ['inactive'] },
  'asks-for-options': NOBODY_IS_CALLED,
  'tries-to-register': NOBODY_IS_CALLED,
  'tries-to-subscribe': NOBODY_IS_CALLED,
  'hangs-up-a-call-that-nobody-knows': NOBODY_IS_CALLED,
  'waits-before-it-hangs-up': { events: ['leg.answered', 'leg.ended'] },
};

const cases = Object.entries(EXPECTED) as [CallingScenario, Expected][];

describe.skipIf(!peerAvailable('sipp'))('leg from sipp', () => {
  describe.each(['udp', 'tcp'] as const)('over %s', (transport) => {
    it.each(cases)('passes scenario %s', async (scenario, { take: takeCall = answer, act, events, directions }) => {
      let taken: Taken | null = null;
      take = (call) => {
        taken = takeCall(call);
        if (taken !== null && act !== undefined) void taken.log.until('leg.answered').then(() => act(taken!));
      };
      const target = network.sipAddress;
      await callWithSipp({ scenario, target, number: NUMBER, transport });
      const { log } = (taken ?? { log: new EventLog<LegEvent>() }) as Taken;
      if (events !== undefined) await log.untilAny(({ type }) => type === events.at(-1), 'last event');
      expect(log.all.map(({ type }) => type)).toEqual(events ?? []);
      const offered = log.ofType('leg.media').map(({ media }) => media.direction);
      expect(offered).toEqual(directions ?? []);
    });
  });
});
