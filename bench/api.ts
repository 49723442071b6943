import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ApiContender, ApiContenderAnswer } from './api-contender.ts';

/**
 * What a `GET /dialer/click2call/{id}` costs with its key, limits, role, query and log line over the least that the
 * same framework does: answering the same bytes. Each contender is a process; the reference runs first and last.
 * Usage: node bench/api.ts [connections] [seconds]
 */

const CONNECTIONS = Number(process.argv[2] ?? 16);
const MEASURE_MS = 1000 * Number(process.argv[3] ?? 3);
const WARM_UP_MS = 1500;

interface Result {
  contender: ApiContender;
  requestsPerS: number;
  p50Ms: number;
  p99Ms: number;
  /** Of the server, per thousand requests. */
  cpuMsPerThousand: number;
}

const folder = mkdtempSync(join(tmpdir(), 'tandem-bench-'));
try {
  const results: Result[] = [];
  for (const contender of ['constant', 'tandem', 'constant'] as const) results.push(await measure(contender));
  report(results);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function measure(contender: ApiContender): Promise<Result> {
  const child = fork(join(import.meta.dirname, 'api-contender.ts'), [contender, folder], { execArgv: [] });
  const exited = once(child, 'exit');
  const { port, path, authorization } = await answerOf('listening');
  const request = Buffer.from(
    `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: ${authorization}\r\naccept: */*\r\n\r\n`,
  );
  await load({ port, request, durationMs: WARM_UP_MS });
  child.send('start');
  const tookMs = await load({ port, request, durationMs: MEASURE_MS });
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

/** Keeps every connection busy with one request after the other; how long each took. */
async function load(options: { port: number; request: Buffer; durationMs: number }): Promise<Float64Array> {
  const untilMs = performance.now() + options.durationMs;
  const each = await Promise.all(Array.from({ length: CONNECTIONS }, () => keepAsking({ ...options, untilMs })));
  return Float64Array.from(each.flat());
}

/** A client that does next to nothing, so that the servers are what is measured. */
async function keepAsking(options: { port: number; request: Buffer; untilMs: number }): Promise<number[]> {
  const socket = connect(options.port, '127.0.0.1').setNoDelay();
  await once(socket, 'connect');
  const tookMs: number[] = [];
  const done = Promise.withResolvers<void>();
  let received = '';
  let sentAtMs = performance.now();
  socket.on('error', done.reject);
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
    const headerEnd = received.indexOf('\r\n\r\n');
    if (headerEnd < 0) return;
    const bodyBytes = Number(/content-length: (\d+)/i.exec(received)?.[1]);
    if (received.length < headerEnd + 4 + bodyBytes) return;
    if (!received.startsWith('HTTP/1.1 200')) return done.reject(new Error(received.slice(0, 200)));
    received = '';
    const nowMs = performance.now();
    tookMs.push(nowMs - sentAtMs);
    if (nowMs >= options.untilMs) return done.resolve();
    sentAtMs = nowMs;
    socket.write(options.request);
  });
  socket.write(options.request);
  await done.promise;
  socket.destroy();
  return tookMs;
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
