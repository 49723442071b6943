import type { MediaEncryption } from '../../machines/events.ts';
import { type LoopbackCarrier, startLoopbackCarrier } from '../../test/softphone/loopback-carrier.ts';
import { type Softphone, startSoftphone } from '../../test/softphone/softphone.ts';
import type { Conversation } from './conversation.ts';
import { FOREIGN_LIKENESS, likenessOf, SAME_LIKENESS } from './likeness.ts';

/** A town to call in, on this machine: a carrier and two telephones, real SIP over UDP and real RTP. */
export interface Town {
  carrier: LoopbackCarrier;
  agent: Softphone;
  customer: Softphone;
  stop(): Promise<void>;
}

export const NUMBERS = { agent: '+919811111111', customer: '+919822222222' } as const;

const AGENT_RINGS_MS = 700;
const CUSTOMER_RINGS_MS = 1_500;
const LONGEST_SETUP_MS = 60_000;

export async function startTown({
  conversation,
  encryption,
  autoHangupAfterMs,
}: {
  conversation: Conversation;
  encryption: MediaEncryption;
  autoHangupAfterMs?: number;
}): Promise<Town> {
  const customer = await startSoftphone({
    name: 'customer',
    user: NUMBERS.customer,
    ringForMs: CUSTOMER_RINGS_MS,
    encryption,
    audio: { kind: 'samples', samples: conversation.trackOf('customer', { leadMs: 0 }) },
    ...(autoHangupAfterMs !== undefined && { autoHangupAfterMs }),
  });
  const agent = await startSoftphone({
    name: 'agent',
    user: NUMBERS.agent,
    ringForMs: AGENT_RINGS_MS,
    encryption,
    audio: {
      kind: 'samples',
      samples: conversation.trackOf('agent', { leadMs: 0 }),
      // Who answers first speaks to nobody until the customer has answered, however long that takes.
      after() {
        const former = new Set(customer.calls.map(({ callId }) => callId));
        return customer.until('confirmed', ({ callId }) => !former.has(callId), LONGEST_SETUP_MS);
      },
    },
  });
  const carrier = await startLoopbackCarrier({
    recordRoute: true,
    routes: new Map([
      [NUMBERS.agent, agent.address],
      [NUMBERS.customer, customer.address],
    ]),
  });
  return {
    carrier,
    agent,
    customer,
    async stop() {
      await Promise.all([agent.stop(), customer.stop(), carrier.stop()]);
    },
  };
}

export interface Hearing {
  listener: 'agent' | 'customer';
  packets: number;
  lost: number;
  /** Likeness of what was heard to what the other said: of the sentence that came over worst. */
  otherLikeness: number;
  /** Likeness to what the listener itself said, which an echo would have. */
  ownLikeness: number;
  heardTheOther: boolean;
}

/** Compares what reached each phone, as RTP, with what was said to it. */
export function measureHearing(town: Town, { sentences }: Conversation): Hearing[] {
  return (['agent', 'customer'] as const).map((listener) => {
    const heard = town[listener].heard();
    const likenesses = (own: boolean) =>
      sentences
        .filter(({ speaker }) => (speaker === listener) === own)
        .map(({ samples }) => likenessOf(heard.pcm, samples));
    const otherLikeness = Math.min(...likenesses(false));
    const ownLikeness = Math.max(...likenesses(true));
    return {
      listener,
      packets: heard.packets,
      lost: heard.continuity.lost,
      otherLikeness,
      ownLikeness,
      heardTheOther: otherLikeness > SAME_LIKENESS && ownLikeness < FOREIGN_LIKENESS,
    };
  });
}
