import { setTimeout as pause } from 'node:timers/promises';
import type { Invitation, InvitationAnswer } from '../answering-peer.ts';
import { Phones, type PhonesResult } from '../media-relay/phones.ts';
import { beginFigures, type Figures } from './figures.ts';
import { post, type Servers } from './servers.ts';

/** Adds bridged, recorded calls with speech in both directions, until the servers reject them or quality falls. */

export interface CallsOptions {
  servers: Servers;
  phones: { program: string; speech: string };
  /** Numbers of calls to try, in order. */
  ladder: readonly number[];
  perSecond: number;
  measureMs: number;
  onProgress: (what: string) => void;
}

export interface CallsStep {
  calls: number;
  /** The servers reject more calls. */
  isFull: boolean;
  /** Rejections by outcome, such as `429 no_free_channel`. */
  refused: ReadonlyMap<string, number>;
  /** As phones see it: both directions of all calls. */
  heard: PhonesResult;
  figures: Figures;
}

/** Packet loss that a listener starts to notice (ITU-T G.113 Appendix I). */
export const MOST_LOST = 0.005;
/** From phone to phone, p99: what a usual jitter buffer compensates. */
export const MOST_DELAY_MS = 60;
/** A server that rejects this many in a row, for seconds, is full. A single rejection may come from a busy moment. */
const REFUSED_IN_A_ROW = 60;
const BRIDGED_WITHIN_MS = 15_000;

export async function raiseCalls(options: CallsOptions): Promise<CallsStep[]> {
  const { servers, ladder, perSecond, measureMs, onProgress } = options;
  const phones = await Phones.open(ladder.at(-1)!, options.phones, { pin: [], isSteered: true });
  servers.answerBy(carrierOf(phones));
  const free = Array.from(phones.ports.keys());
  const steps: CallsStep[] = [];
  try {
    for (const rung of ladder) {
      const refused = new Map<string, number>();
      let inARow = 0;
      const asking = new Set<Promise<void>>();
      const ask = async (call: number): Promise<void> => {
        const outcome = await place(servers, call);
        if (outcome === null) {
          inARow = 0;
          return;
        }
        inARow += 1;
        refused.set(outcome, (refused.get(outcome) ?? 0) + 1);
        free.push(call);
      };
      const placed = () => phones.ports.length - free.length;
      while (placed() < rung && inARow < REFUSED_IN_A_ROW) {
        onProgress(`${placed()} of ${rung} calls`);
        const asked: Promise<void> = ask(free.shift()!).finally(() => asking.delete(asked));
        asking.add(asked);
        if (placed() === rung) await Promise.all(asking);
        await pause(1000 / perSecond);
      }
      await Promise.all(asking);
      await untilBridged(servers, placed());
      onProgress(`${placed()} calls talk`);
      const figures = await beginFigures(servers);
      const heard = await phones.measure(measureMs);
      const isFull = inARow >= REFUSED_IN_A_ROW;
      steps.push({ calls: placed(), isFull, refused, heard, figures: await figures() });
      if (isFull || !isGood(steps.at(-1)!)) break;
    }
  } finally {
    await phones.close();
  }
  return steps;
}

export function lostOf({ heard }: CallsStep): number {
  return heard.sent === 0 ? 0 : Math.max(0, heard.sent - heard.received) / heard.sent;
}

/** Loss and delay are within limits. */
export function isGood(step: CallsStep): boolean {
  return lostOf(step) <= MOST_LOST && step.heard.p99Ms <= MOST_DELAY_MS;
}

/** A carrier where each number is a phone: `+9198<party><call>`. */
function carrierOf(phones: Phones): (invitation: Invitation) => InvitationAnswer {
  const targets = phones.ports.map((): [number, number] => [0, 0]);
  return ({ user, rtpPort }) => {
    const [, party, digits] = /^\+?9198([12])(\d{7})$/.exec(user) ?? [];
    const call = Number(digits);
    const ports = phones.ports[call];
    if (party === undefined || ports === undefined || rtpPort === null) return { status: '486 Busy Here' };
    const index = party === '1' ? 0 : 1;
    targets[call]![index] = rtpPort;
    phones.retarget(call, targets[call]!);
    return { status: '200 OK', rtpPort: ports[index] };
  };
}

function numberOf(party: 1 | 2, call: number): string {
  return `+9198${party}${String(call).padStart(7, '0')}`;
}

async function place({ nodes }: Servers, call: number): Promise<string | null> {
  const body = { agent_number: numberOf(1, call), customer_number: numberOf(2, call), record: true };
  const response = await post(nodes[call % nodes.length]!.url, '/dialer/click2call', body).catch(String);
  if (typeof response === 'string') return response;
  const { code = '' } = (await response.json()) as { code?: string };
  // 200: another node had already placed it under this reference.
  return response.status === 201 || response.status === 200 ? null : `${response.status} ${code}`;
}

async function untilBridged({ sql }: Servers, calls: number): Promise<void> {
  const untilMs = performance.now() + BRIDGED_WITHIN_MS;
  while (performance.now() < untilMs) {
    const [row] = await sql<{ count: number }[]>`select count(*)::int from calls where state = 'bridged'`;
    if (row!.count >= calls) return;
    await pause(200);
  }
}
