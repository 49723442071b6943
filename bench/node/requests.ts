import { setTimeout as pause } from 'node:timers/promises';
import { getRequest, keepBusy } from '../http-load.ts';
import { beginFigures, type Figures, percentile } from './figures.ts';
import { AUTHORIZATION, post, type Servers } from './servers.ts';

/** Sends `GET /dialer/click2call/{id}` over more and more connections, one request at a time each. */

export interface RequestsStep {
  connections: number;
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
  figures: Figures;
}

/** p99 from which users notice that a page waits. */
export const MOST_ANSWER_MS = 100;
const WARM_UP_MS = 1_000;

export async function raiseRequests(options: {
  servers: Servers;
  ladder: readonly number[];
  measureMs: number;
  onProgress: (what: string) => void;
}): Promise<RequestsStep[]> {
  const { servers, ladder, measureMs, onProgress } = options;
  const request = getRequest(await pathOfCall(servers), AUTHORIZATION);
  const ports = servers.nodes.map(({ port }) => port);
  const steps: RequestsStep[] = [];
  await keepBusy({ ports, connections: ports.length, request, durationMs: WARM_UP_MS });
  for (const connections of ladder) {
    onProgress(`${connections} connections`);
    const figures = await beginFigures(servers);
    const tookMs = await keepBusy({ ports, connections, request, durationMs: measureMs });
    steps.push({
      connections,
      perSecond: (tookMs.length * 1000) / measureMs,
      p50Ms: percentile(tookMs, 50),
      p99Ms: percentile(tookMs, 99),
      figures: await figures(),
    });
    if (steps.at(-1)!.p99Ms > MOST_ANSWER_MS) break;
  }
  return steps;
}

/** A call that ended because its agent is busy. */
async function pathOfCall({ nodes, sql }: Servers): Promise<string> {
  const placed = { agent_number: '+919899999999', customer_number: '+919822222222' };
  const response = await post(nodes[0]!.url, '/dialer/click2call', placed);
  const answer = (await response.json()) as { data?: { call: { call_id: string } } };
  const callId = answer.data?.call.call_id;
  if (callId === undefined) throw new Error(`the call was not placed: ${JSON.stringify(answer)}`);
  for (;;) {
    const [live] = await sql`
      select 1 from calls where call_id = ${callId} and state in ('pending', 'initiated', 'bridged')`;
    if (live === undefined) return `/dialer/click2call/${callId}`;
    await pause(100);
  }
}
