import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { apiClient } from '../bin/cli/api-client.ts';
import { connect, type Sql } from '../storage/database.ts';
import { runningDatabaseUrl } from '../storage/embedded/running.ts';
import { topUp } from '../storage/ledger.ts';
import { startAnsweringPeer } from './answering-peer.ts';
import { cpuMsOfFamily } from './process-family.ts';

/**
 * Places calls of one workspace on one server at rising rates: latency of `POST /dialer/click2call`, delay of the
 * agent's INVITE, rejections and their latency, and CPU time per call (server, its threads and Postgres). The agent is
 * busy, so each call ends at once. The reference is the smallest admission that excludes others: a transaction that
 * locks one row and inserts another, on the same Postgres in the same run.
 */
const { values } = parseArgs({
  options: {
    /** Placements per second, one run each. */
    rates: { type: 'string', default: '25,50,100' },
    /** Length of a run. */
    seconds: { type: 'string', default: '3' },
  },
});
const RATES = values.rates.split(',').map(Number);
const SECONDS = Number(values.seconds);
const HOST = '127.0.0.1';
const API_KEY = 'sk_bench_placements_0123456789abcdef';
const AGENT = '+919811111111';
const REFERENCE_MS = 2_000;
/** The server warms its speech engines ten seconds after its start, which takes a second of CPU time. */
const WARM_UP_SECONDS = 13;

const dataDir = await mkdtemp(join(tmpdir(), 'bench-placements-'));
/** Time of the agent's INVITE, by Call-ID. */
const invitedMs = new Map<string, number>();
const agent = await startAnsweringPeer(({ callId }) => {
  if (callId !== null && !invitedMs.has(callId)) invitedMs.set(callId, performance.now());
  return { status: '486 Busy Here' };
});
const server = spawn(process.execPath, [join(import.meta.dirname, '../main.ts')], {
  env: {
    PATH: process.env.PATH,
    TANDEM_DATA_DIR: dataDir,
    TANDEM_API_KEY: API_KEY,
    ...{ PORT: '0', SIP_PORT: '0', RTP_PORT_MIN: '43000', RTP_PORT_MAX: '46999', LOG_LEVEL: 'info' },
    PLACEMENTS_PER_MINUTE: '100000',
    LIMITS_ENTERPRISE_PER_MINUTE: '1000000',
    LIMITS_ENTERPRISE_PER_DAY: '100000000',
  },
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  const { url, workspaceId } = await whenReady();
  const api = apiClient({ url, apiKey: API_KEY });
  const trunk = { name: 'Bench', sip_uri: `sip:${HOST}:${agent.port}`, channels: 1_000, numbers: ['+911140000001'] };
  await api.post('/dialer/trunks', trunk);
  await api.post('/dialer/numbers', { e164: '+911140000001' });
  const sql = connect({ url: (await runningDatabaseUrl(dataDir)) ?? '', max: 8 });
  const amountNano = 1_000_000_000_000n;
  await topUp(sql, { workspaceId, amountNano, paymentType: 'one_time', operationKey: 'bench', description: '' });
  await place(url, 10, WARM_UP_SECONDS);
  const reference = await bareTransactions(sql);
  process.stdout.write(`bare transactions ${reference.toFixed(0)} a second, one after the other on one locked row\n`);
  for (const rate of RATES) report(rate, await place(url, rate, SECONDS), reference);
  await sql.end();
} finally {
  server.kill('SIGINT');
  server.kill('SIGTERM');
  await once(server, 'exit');
  agent.close();
  await rm(dataDir, { recursive: true, force: true });
}

interface Run {
  admittedMs: number[];
  refusedMs: number[];
  /** From the request to the first INVITE. */
  ringMs: number[];
  statuses: Map<string, number>;
  cpuMsPerCall: number;
  /** Admitted per second. */
  throughput: number;
}

/** Sends placements at a constant rate, without waiting for answers. */
async function place(url: string, perSecond: number, seconds: number): Promise<Run> {
  const run: Run = { admittedMs: [], refusedMs: [], ringMs: [], statuses: new Map(), cpuMsPerCall: 0, throughput: 0 };
  const cpuBefore = await cpuMsOfFamily(server.pid!);
  const startedMs = performance.now();
  const asked: Promise<void>[] = [];
  for (let index = 0; index < perSecond * seconds; index += 1) {
    const dueMs = startedMs + (index * 1000) / perSecond;
    const aheadMs = dueMs - performance.now();
    if (aheadMs > 1) await pause(aheadMs);
    asked.push(placeOne(url, run));
  }
  await Promise.all(asked);
  const tookS = (performance.now() - startedMs) / 1000;
  run.throughput = run.admittedMs.length / tookS;
  // Lets the calls end and settle.
  await pause(1_500);
  run.cpuMsPerCall = ((await cpuMsOfFamily(server.pid!)) - cpuBefore) / Math.max(1, run.admittedMs.length);
  return run;
}

async function placeOne(url: string, run: Run): Promise<void> {
  const sentMs = performance.now();
  const response = await fetch(`${url}/dialer/click2call`, {
    method: 'POST',
    headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ agent_number: AGENT, customer_number: '+919822222222' }),
  });
  const answer = (await response.json()) as { code?: string; data?: { call: { call_id: string } } };
  const tookMs = performance.now() - sentMs;
  const outcome = `${response.status}${answer.code === undefined ? '' : ` ${answer.code}`}`;
  run.statuses.set(outcome, (run.statuses.get(outcome) ?? 0) + 1);
  if (response.status !== 201) return void run.refusedMs.push(tookMs);
  run.admittedMs.push(tookMs);
  const rangMs = invitedMs.get(answer.data?.call.call_id ?? '');
  if (rangMs !== undefined) run.ringMs.push(rangMs - sentMs);
}

function report(rate: number, run: Run, reference: number): void {
  const { admittedMs, refusedMs, ringMs, statuses, cpuMsPerCall, throughput } = run;
  const outcomes = [...statuses].map(([outcome, count]) => `${count} x ${outcome}`).join(', ');
  const refused = refusedMs.length === 0 ? '' : `; refused after p99 ${percentile(refusedMs, 99)} ms`;
  process.stdout.write(
    `${String(rate).padStart(4)}/s asked: ${throughput.toFixed(0)}/s admitted, ${(throughput / reference).toFixed(3)} of the reference; p50 ${percentile(admittedMs, 50)} ms, p99 ${percentile(admittedMs, 99)} ms; INVITE after p50 ${percentile(ringMs, 50)} ms, p99 ${percentile(ringMs, 99)} ms${refused}; ${cpuMsPerCall.toFixed(1)} ms of CPU a call; ${outcomes}\n`,
  );
}

function percentile(valuesMs: number[], percent: number): string {
  const sorted = valuesMs.toSorted((a, b) => a - b);
  return (sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN).toFixed(1);
}

/** Transactions per second when two clients alternate at the lock. */
async function bareTransactions(sql: Sql): Promise<number> {
  await sql`create temporary table if not exists unused (id int)`;
  await sql`create table bench_lock (id int primary key, n int); insert into bench_lock values (1, 0)`.simple();
  await sql`create table bench_rows (id bigserial primary key, note text)`;
  const untilMs = performance.now() + REFERENCE_MS;
  let done = 0;
  const client = async () => {
    while (performance.now() < untilMs) {
      await sql.begin(async (tx) => {
        await tx`select n from bench_lock where id = 1 for update`;
        await tx`insert into bench_rows (note) values ('bench')`;
      });
      done += 1;
    }
  };
  await Promise.all([client(), client()]);
  return (done * 1000) / REFERENCE_MS;
}

async function whenReady(): Promise<{ url: string; workspaceId: string }> {
  const ready = Promise.withResolvers<{ url: string; workspaceId: string }>();
  let output = '';
  server.stdout.on('data', (chunk: Buffer) => {
    output += chunk;
    const line = output.split('\n').find((each) => each.includes('"Tandem is ready"'));
    if (line !== undefined) ready.resolve(JSON.parse(line));
  });
  server.once('exit', () => ready.reject(new Error(`the server ended: ${output}`)));
  return await ready.promise;
}
