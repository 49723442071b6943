import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { ApiContender, ApiContenderAnswer } from './api-contender.ts';
import { getRequest, keepBusy } from './http-load.ts';

/**
 * Compares `GET /dialer/click2call/{id}`, with key, limits, role, query and log line, with the same framework returning
 * a constant. Each contender is a process; the reference runs first and last. Usage: node bench/api.ts [connections]
 * [seconds]
 */

const CONNECTIONS = Number(process.argv[2] ?? 16);
const MEASURE_MS = 1000 * Number(process.argv[3] ?? 3);
const WARM_UP_MS = 1500;

interface Result {
  contender: ApiContender;
  requestsPerS: number;
  p50Ms: number;
  p99Ms: number;
  /** CPU of the server. */
  cpuMsPerThousand: number;
}

const results: Result[] = [];
for (const contender of ['constant', 'tandem', 'constant'] as const) results.push(await measure(contender));
report(results);

async function measure(contender: ApiContender): Promise<Result> {
  const child = fork(join(import.meta.dirname, 'api-contender.ts'), [contender], { execArgv: [] });
  const exited = once(child, 'exit');
  const { port, path, authorization } = await answerOf('listening');
  const request = getRequest(path, authorization);
  await keepBusy({ ports: [port], connections: CONNECTIONS, request, durationMs: WARM_UP_MS });
  child.send('start');
  const tookMs = await keepBusy({ ports: [port], connections: CONNECTIONS, request, durationMs: MEASURE_MS });
  const answer = answerOf('measured');
  child.send('stop');
  const { cpuMs } = await answer;
  await exited;
  const sorted = tookMs.sort();
  return {
    contender,
    requestsPerS: (sorted.length * 1000) / MEASURE_MS,
    p50Ms: sorted[Math.floor(sorted.length * 0.5)]!,
    p99Ms: sorted[Math.floor(sorted.length * 0.99)]!,
    cpuMsPerThousand: (cpuMs * 1000) / sorted.length,
  };

  async function answerOf<Type extends ApiContenderAnswer['type']>(
    type: Type,
  ): Promise<Extract<ApiContenderAnswer, { type: Type }>> {
    const [answer] = (await Promise.race([
      once(child, 'message'),
      exited.then(() => Promise.reject(new Error(`the contender ${contender} ended`))),
    ])) as [ApiContenderAnswer];
    if (answer.type !== type) throw new RangeError(`the contender answered ${answer.type} instead of ${type}`);
    return answer as Extract<ApiContenderAnswer, { type: Type }>;
  }
}

function report(results: Result[]): void {
  const references = results.filter(({ contender }) => contender === 'constant');
  const reference = references.reduce((sum, { cpuMsPerThousand }) => sum + cpuMsPerThousand, 0) / references.length;
  console.log(`${CONNECTIONS} connections; CPU of the server per request, and the ratio to a constant answer`);
  for (const { contender, requestsPerS, p50Ms, p99Ms, cpuMsPerThousand } of results) {
    console.log(
      [
        contender.padEnd(9),
        `${cpuMsPerThousand.toFixed(0).padStart(5)} us x${(cpuMsPerThousand / reference).toFixed(2)}`,
        `${requestsPerS.toFixed(0).padStart(6)} requests/s`,
        `p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`,
      ].join('  '),
    );
  }
}
