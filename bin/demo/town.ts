import { type LoopbackCarrier, startLoopbackCarrier } from '../../test/softphone/loopback-carrier.ts';
import { type Softphone, startSoftphone } from '../../test/softphone/softphone.ts';

/** A town to call in, on this machine: a carrier and two telephones, real SIP over UDP and real RTP. */
export interface Town {
  carrier: LoopbackCarrier;
  agent: Softphone;
  customer: Softphone;
  stop(): Promise<void>;
}

/** What each party says: a tone of its own, so that it can be told who was heard. */
export const VOICES = { agent: { frequencyHz: 440 }, customer: { frequencyHz: 660 } } as const;

export const NUMBERS = { agent: '+919811111111', customer: '+919822222222' } as const;

export async function startTown({ autoHangupAfterMs }: { autoHangupAfterMs?: number } = {}): Promise<Town> {
  const agent = await startSoftphone({
    name: 'agent',
    user: NUMBERS.agent,
    ringForMs: 700,
    audio: { kind: 'tone', ...VOICES.agent },
  });
  const customer = await startSoftphone({
    name: 'customer',
    user: NUMBERS.customer,
    ringForMs: 1_500,
    audio: { kind: 'tone', ...VOICES.customer },
    ...(autoHangupAfterMs !== undefined && { autoHangupAfterMs }),
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
  seconds: number;
  packets: number;
  lost: number;
  /** Level of the other party's tone in what this one heard, over the last seconds of the call. */
  otherDbov: number;
  /** Level of its own tone: an echo, if it is there. */
  ownDbov: number;
  heardTheOther: boolean;
}

/** Measures, out of the RTP that reached each phone, whether it heard the other. */
export function measureHearing(town: Town): Hearing[] {
  return (['agent', 'customer'] as const).map((listener) => {
    const other = listener === 'agent' ? 'customer' : 'agent';
    const heard = town[listener].heard();
    const [otherDbov = -96, ownDbov = -96] = heard.toneLevels(
      [VOICES[other].frequencyHz, VOICES[listener].frequencyHz],
      3_000,
    );
    return {
      listener,
      seconds: heard.seconds,
      packets: heard.packets,
      lost: heard.continuity.lost,
      otherDbov,
      ownDbov,
      heardTheOther: otherDbov > AUDIBLE_DBOV && otherDbov > ownDbov + 20,
    };
  });
}

const AUDIBLE_DBOV = -30;
