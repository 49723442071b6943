import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildPhones } from './media-relay/phones.ts';
import { type CallsStep, isGood, lostOf, raiseCalls } from './node/calls.ts';
import { percent, percentile, scarcestOf } from './node/figures.ts';
import { isInTime, type LiveStep, raiseLive } from './node/live.ts';
import { MOST_ANSWER_MS, type RequestsStep, raiseRequests } from './node/requests.ts';
import { startServers } from './node/servers.ts';
import { LATE_FROM_MS } from './stt-load.ts';
import { telephoneLine } from './stt-session.ts';

const USAGE = `Usage: node bench/node.ts [--quick] [--only LIST] [--processes LIST] [--most-calls N] [--most-sessions N]

What this machine holds before quality falls or requests are refused: bridged and recorded calls, sessions of /ws/stt, and
API requests. Starts server processes with a Postgres of their own; phones and clients run on the same machine and take
their share of it.

  --quick            fewer and shorter steps, and one process only: about a minute and a half
  --only LIST        of calls, live, requests (default: all)
  --processes LIST   numbers of server processes, one run for each (default: 1,2,3)
  --most-calls N     the last number of calls that is tried (default: 900)
  --most-sessions N  the last number of live sessions that is tried (default: 16)
`;

/**
 * Increases the load on server processes step by step until phones or clients see packet loss, delay or late results.
 * The servers' metrics show the bottleneck. On a busy machine all figures are too low.
 */
const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: 'requests,live,calls' },
    processes: { type: 'string' },
    'most-calls': { type: 'string', default: '900' },
    'most-sessions': { type: 'string', default: '16' },
    help: { type: 'boolean', default: false },
  },
});
if (flags.help) {
  process.stdout.write(USAGE);
  process.exit();
}
const isQuick = flags.quick;
const parts = flags.only.split(',');
const processes = (flags.processes ?? (isQuick ? '1' : '1,2,3')).split(',').map(Number);
const MOST_CALLS = Number(flags['most-calls']);
const CALLS_EVERY = isQuick ? 150 : 100;

interface Held {
  servers: number;
  calls: CallsStep | null;
  live: LiveStep | null;
  requests: RequestsStep | null;
}

console.log(
  `${availableParallelism()} processors, load ${loadavg()[0]!.toFixed(1)} before the run; phones and clients are on the same machine`,
);
const folder = mkdtempSync(join(tmpdir(), 'tandem-bench-node-'));
const phones = parts.includes('calls') ? buildPhones(folder) : null;
const held: Held[] = [];
try {
  for (const count of processes) held.push(await measure(count));
} finally {
  rmSync(folder, { recursive: true });
}
summarise();

async function measure(count: number): Promise<Held> {
  const result: Held = { servers: count, calls: null, live: null, requests: null };
  await using servers = await startServers(count);
  const onProgress = (what: string): void => {
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${count} x ${what}`);
  };
  const done = (): void => onProgress('');
  console.log(`\n== ${count} server ${count === 1 ? 'process' : 'processes'}`);
  if (parts.includes('requests')) {
    const ladder = isQuick ? [4, 32] : [1, 4, 16, 64, 256];
    const steps = await raiseRequests({ servers, ladder, measureMs: isQuick ? 2_000 : 4_000, onProgress });
    done();
    printRequests(steps);
    const inTime = steps.filter(({ p99Ms }) => p99Ms <= MOST_ANSWER_MS);
    result.requests = inTime.toSorted((a, b) => b.perSecond - a.perSecond)[0] ?? null;
  }
  if (parts.includes('live')) {
    const most = isQuick ? Math.min(6, Number(flags['most-sessions'])) : Number(flags['most-sessions']);
    const steps = await raiseLive({
      ...{ servers, most, stepMs: isQuick ? 10_000 : 15_000, onProgress },
      line: telephoneLine(),
    });
    done();
    printLive(steps);
    result.live = steps.findLast(isInTime) ?? null;
  }
  if (phones !== null) {
    const rungs = Math.ceil(MOST_CALLS / CALLS_EVERY);
    const ladder = Array.from({ length: rungs }, (_, index) => Math.min(MOST_CALLS, (index + 1) * CALLS_EVERY));
    const measureMs = isQuick ? 2_000 : 4_000;
    const steps = await raiseCalls({ servers, phones, ladder, perSecond: 20, measureMs, onProgress });
    done();
    printCalls(steps);
    result.calls = steps.findLast(isGood) ?? null;
  }
  return result;
}

function printCalls(steps: readonly CallsStep[]): void {
  console.log('\nbridged and recorded calls');
  console.log('calls  refused  lost %   p50 ms  p99 ms  worker     late  load  main thread     servers     machine');
  for (const step of steps) {
    const { heard, figures, refused } = step;
    const columns = [
      String(step.calls).padStart(5),
      String([...refused.values()].reduce((sum, count) => sum + count, 0)).padStart(7),
      (100 * lostOf(step)).toFixed(2).padStart(6),
      heard.p50Ms.toFixed(1).padStart(8),
      heard.p99Ms.toFixed(1).padStart(6),
      percent(figures.workerBusy).padStart(7),
      `${figures.workerLateMs.toFixed(0)} ms`.padStart(6),
      figures.mediaLoad.toFixed(2).padStart(5),
      `${figures.loopLagMs.toFixed(0)} ms late`.padStart(11),
      `${figures.serverCores.toFixed(2)} cores`.padStart(10),
      `${percent(figures.machineBusy)} busy`.padStart(10),
    ];
    console.log(columns.join('  '));
  }
  const last = steps.at(-1)!;
  for (const { calls, refused } of steps) {
    const codes = [...refused].map(([code, count]) => `${count} x ${code}`).join(', ');
    if (codes !== '') console.log(`refused on the way to ${calls} calls: ${codes}`);
  }
  if (last.isFull) console.log(`full; ${isGood(last) ? 'the calls stayed good' : 'LATE: quality fell first'}`);
  else if (!isGood(last)) console.log('LATE: quality fell, and the servers were not full');
  if (last.isFull || !isGood(last)) console.log(`scarce by then: ${scarcestOf(last.figures)}`);
  const late = Math.max(...steps.map(({ heard }) => heard.generatorLateMs));
  if (late > 20) console.log(`the phones themselves sent up to ${late.toFixed(0)} ms late: the machine was busy`);
}

function printLive(steps: readonly LiveStep[]): void {
  console.log('\nlive transcription, finals beyond utterance_end_ms');
  console.log('sessions  finals  p50 ms  p99 ms  servers     machine');
  for (const { sessions, lateMs, figures } of steps) {
    const columns = [
      String(sessions).padStart(8),
      String(lateMs.length).padStart(6),
      percentile(lateMs, 50).toFixed(0).padStart(6),
      percentile(lateMs, 99).toFixed(0).padStart(6),
      `${figures.serverCores.toFixed(2)} cores`.padStart(10),
      `${percent(figures.machineBusy)} busy`.padStart(10),
    ];
    console.log(columns.join('  '));
  }
  const last = steps.at(-1)!;
  if (last.refused.length > 0)
    console.log(
      `refused: ${last.refused.join(', ')}; ${isInTime(last) ? 'the sessions stayed in time' : 'LATE: finals came late first'}`,
    );
  else if (!isInTime(last)) console.log(`LATE: finals came more than ${LATE_FROM_MS} ms late, and nothing was refused`);
}

function printRequests(steps: readonly RequestsStep[]): void {
  console.log('\nrequests: GET /dialer/click2call/{id}');
  console.log('connections  a second  p50 ms  p99 ms  main thread  servers     machine');
  for (const { connections, perSecond, p50Ms, p99Ms, figures } of steps) {
    const columns = [
      String(connections).padStart(11),
      perSecond.toFixed(0).padStart(8),
      p50Ms.toFixed(1).padStart(6),
      p99Ms.toFixed(1).padStart(6),
      `${figures.loopLagMs.toFixed(0)} ms late`.padStart(11),
      `${figures.serverCores.toFixed(2)} cores`.padStart(10),
      `${percent(figures.machineBusy)} busy`.padStart(10),
    ];
    console.log(columns.join('  '));
  }
}

function summarise(): void {
  console.log('\nheld        calls  live sessions  requests a second');
  for (const { servers, calls, live, requests } of held) {
    const columns = [
      `${servers} ${servers === 1 ? 'process' : 'processes'}`.padEnd(11),
      String(calls?.calls ?? '-').padStart(5),
      String(live?.sessions ?? '-').padStart(13),
      (requests?.perSecond.toFixed(0) ?? '-').padStart(17),
    ];
    console.log(columns.join('  '));
  }
}
