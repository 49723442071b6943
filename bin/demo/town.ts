import type { MediaEncryption } from '../../machines/events.ts';
import { type LoopbackCarrier, startLoopbackCarrier } from '../../test/softphone/loopback-carrier.ts';
import { type Softphone, startSoftphone } from '../../test/softphone/softphone.ts';
import type { Conversation } from './conversation.ts';
import { FOREIGN_LIKENESS, likenessOf, SAME_LIKENESS } from './likeness.ts';

/** Loopback telephony: a carrier and two telephones, with real SIP over UDP and real RTP. */
export interface Town {
  carrier: LoopbackCarrier;
  agent: Softphone;
  customer: Softphone;
  /** From the next call, both phones repeat their sentences. */
  repeatSpeech(): void;
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
  const customerSpeech = {
    kind: 'samples' as const,
    samples: conversation.trackOf('customer', { leadMs: 0 }),
    loop: false,
  };
  const customer = await startSoftphone({
    name: 'customer',
    user: NUMBERS.customer,
    ringForMs: CUSTOMER_RINGS_MS,
    encryption,
    audio: customerSpeech,
    ...(autoHangupAfterMs !== undefined && { autoHangupAfterMs }),
  });
  const agentSpeech = {
    kind: 'samples' as const,
    samples: conversation.trackOf('agent', { leadMs: 0 }),
    loop: false,
    // The agent answers first and starts to speak when the customer has answered.
    after() {
      const former = new Set(customer.calls.map(({ callId }) => callId));
      return customer.until('confirmed', ({ callId }) => !former.has(callId), LONGEST_SETUP_MS);
    },
  };
  const agent = await startSoftphone({
    name: 'agent',
    user: NUMBERS.agent,
    ringForMs: AGENT_RINGS_MS,
    encryption,
    audio: agentSpeech,
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
    repeatSpeech() {
      agentSpeech.loop = true;
      customerSpeech.loop = true;
    },
    async stop() {
      await Promise.all([agent.stop(), customer.stop(), carrier.stop()]);
    },
  };
}

export interface ReceptionCheck {
  listener: 'agent' | 'customer';
  packets: number;
  lost: number;
  /** Lowest similarity of the received audio to a sentence of the other party. */
  otherLikeness: number;
  /** Similarity to the listener's own speech, which an echo would raise. */
  ownLikeness: number;
  receivedOther: boolean;
}

/** Compares the RTP audio at each phone with what was sent to it. */
export function checkReception(town: Town, { sentences }: Conversation): ReceptionCheck[] {
  return (['agent', 'customer'] as const).map((listener) => {
    const received = town[listener].received();
    const likenesses = (own: boolean) =>
      sentences
        .filter(({ speaker }) => (speaker === listener) === own)
        .map(({ samples }) => likenessOf(received.pcm, samples));
    const otherLikeness = Math.min(...likenesses(false));
    const ownLikeness = Math.max(...likenesses(true));
    return {
      listener,
      packets: received.packets,
      lost: received.continuity.lost,
      otherLikeness,
      ownLikeness,
      receivedOther: otherLikeness > SAME_LIKENESS && ownLikeness < FOREIGN_LIKENESS,
    };
  });
}
