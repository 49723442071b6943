import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createMediaPlane } from '../media/media-plane.workers.ts';
import { buildPhones, Phones, type PhonesResult } from './media-relay/phones.ts';
import { SoakCall, type SoakTally } from './soak/soak-call.ts';

/**
 * Calls in real time over a bad network: 2 % of the packets are lost, 2 % reordered, and each phone stalls for 200 ms
 * every 10 s. Each call is recorded and lasts 20 to 60 s before the next. Media workers die, and the disk is full for
 * the middle third of the time. At the end all counters must be consistent and no port, socket, file or memory may
 * leak. Prints each check; exits with 1 if one fails.
 */

const { values: flags } = parseArgs({
  options: {
    calls: { type: 'string', default: '300' },
    minutes: { type: 'string', default: '10' },
    workers: { type: 'string', default: '2' },
    'worker-life': { type: 'string', default: '120' },
  },
});
const CALLS = Number(flags.calls);
const DURATION_MS = 60_000 * Number(flags.minutes);
const RTP_PORTS = { rtpPortMin: 10_000, rtpPortMax: 10_000 + 8 * CALLS + 199 };
const FULL_DISK_BYTES = 8_000_000;
/** Node's shortest timer is 1 ms; anything later is event loop delay. */
const SAMPLE_EVERY_MS = 5;
const MOST_LOOP_DELAY_MS = 5;
/** JavaScript heap and external memory, after a garbage collection. */
const MOST_GROWTH_BYTES = 16_000_000;

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');
const folder = mkdtempSync(join(tmpdir(), 'tandem-soak-'));
const smallDisk = join(folder, 'small-disk');
mkdirSync(smallDisk);
const isMounted = mountSmallDisk();
process.env.SOAK_WORKER_LIFE_S = flags['worker-life'];
let workersLost = 0;
const failures: string[] = [];
try {
  await run();
} finally {
  if (isMounted) spawnSync('umount', [smallDisk]);
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failures.length > 0 ? 1 : 0;

async function run(): Promise<void> {
  const plane = createMediaPlane({
    workers: Number(flags.workers),
    rtpHost: '127.0.0.1',
    ...RTP_PORTS,
    workerFile: new URL('./soak/mortal-worker.ts', import.meta.url),
    logger: {
      info: () => {},
      warn: (fields, message) => {
        if (message === 'media worker lost') workersLost += 1;
        else console.log(message, fields);
      },
    },
  });
  const phones = await Phones.open(CALLS, buildPhones(folder), { pin: [], isRough: true });
  const tally: SoakTally = { calls: 0, lost: 0, refused: 0, recordings: 0, diskFull: 0, faults: [] };
  const beganAt = performance.now();
  const isDiskFull = () => {
    const fraction = (performance.now() - beganAt) / DURATION_MS;
    return isMounted && fraction > 1 / 3 && fraction < 2 / 3;
  };
  const over = new AbortController();
  const calls = phones.ports.map(
    (ports, index) =>
      new SoakCall({
        ...{ index, ports, plane, tally, signal: over.signal },
        retarget: (targets) => phones.retarget(index, targets),
        folder: () => (isDiskFull() ? smallDisk : folder),
      }),
  );
  // Until the workers have opened what they keep.
  await plane.dump();
  const before = { sockets: socketsInRange(), files: openFiles(), memory: 0 };
  const lateness = watchLoop(over.signal);
  const nowhere = calls.map((): [number, number] => [0, 0]);
  let talking: Promise<unknown> | null = null;
  const result = await phones.talk(nowhere, { warmUpMs: 1000, measureMs: DURATION_MS }, () => {
    if (talking === null) talking = Promise.all(calls.map((call) => call.talk()));
    else over.abort();
    if (talking !== null && !over.signal.aborted) void observe(over.signal);
  });
  await talking;
  const ports = await plane.dump();
  report({ result, tally, lateness: lateness(), dump: ports as { sessions: number; freePortPairs: number } });
  const files = openFiles();
  check('no file descriptor is left', files <= before.files, `${before.files} before, ${files} after`);
  await plane.close();
  check('no socket in the range of RTP ports is left', socketsInRange() === before.sockets, `${socketsInRange()}`);
  const left = readdirSync(folder).filter((name) => name.endsWith('.wav'));
  check('no recording is left', left.length === 0, `${left.length}`);

  /** Prints progress, checks the counters of all live sessions, and tracks the memory. */
  async function observe(signal: AbortSignal): Promise<void> {
    // After a minute, or a fifth of a short soak, code is compiled and pools are filled.
    const settledMs = Math.min(60_000, DURATION_MS / 5);
    let inconsistent = 0;
    let checked = 0;
    while (!signal.aborted) {
      await pause(Math.min(10_000, DURATION_MS / 10), undefined, { signal }).catch(() => {});
      if (signal.aborted) break;
      const found = inconsistenciesOf(await plane.dump());
      checked += found.checked;
      inconsistent += found.wrong.length;
      if (found.wrong.length > 0) console.log('inconsistent:', found.wrong.slice(0, 3));
      const elapsedMs = performance.now() - beganAt;
      if (before.memory === 0 && elapsedMs > settledMs) before.memory = memoryBytes();
      console.log(
        `${(elapsedMs / 60_000).toFixed(1)} min: ${tally.calls} calls, ${tally.recordings} recordings, ${tally.diskFull} without disk, ${workersLost} workers lost, ${(memoryBytes() / 1e6).toFixed(1)} MB${isDiskFull() ? ', disk full' : ''}`,
      );
    }
    check('the counters of both legs agree in every session', inconsistent === 0, `${checked} checked`);
    const growth = memoryBytes() - before.memory;
    check('the memory of this thread has not grown', growth < MOST_GROWTH_BYTES, `${(growth / 1e6).toFixed(1)} MB`);
  }
}

function report({
  result,
  tally,
  lateness,
  dump,
}: {
  result: PhonesResult;
  tally: SoakTally;
  lateness: { p99Ms: number; maxMs: number };
  dump: { sessions: number; freePortPairs: number };
}): void {
  const pairs = (RTP_PORTS.rtpPortMax - RTP_PORTS.rtpPortMin + 1) / 2;
  const lost = ((100 * (result.sent - result.received)) / result.sent).toFixed(2);
  console.log(
    `\n${tally.calls} calls, ${tally.lost} lost with their worker, ${tally.refused} refused for a moment; ${result.sent} packets sent, ${lost} % not returned, delay p50 ${result.p50Ms} p99 ${result.p99Ms} ms, phones up to ${result.generatorLateMs.toFixed(0)} ms late`,
  );
  check('workers died and calls were placed again', workersLost > 0 && tally.lost > 0, `${workersLost} workers`);
  if (isMounted)
    check('recordings failed on the full disk, and their calls went on', tally.diskFull > 0, `${tally.diskFull}`);
  else console.log('- the full disk is left out: a small disk can be mounted by root only');
  check(
    'every recording that was finished is whole',
    tally.faults.length === 0,
    tally.faults.slice(0, 3).join('; ') || `${tally.recordings}`,
  );
  check('no session is left', dump.sessions === 0, `${dump.sessions}`);
  check('every pair of ports is free', dump.freePortPairs === pairs, `${dump.freePortPairs} of ${pairs}`);
  const delay = `p99 ${lateness.p99Ms.toFixed(1)} ms, longest ${lateness.maxMs.toFixed(0)} ms`;
  check(
    `the event loop of the main thread is late by less than ${MOST_LOOP_DELAY_MS} ms (p99)`,
    lateness.p99Ms < MOST_LOOP_DELAY_MS,
    delay,
  );
}

function check(what: string, isRight: boolean, detail: string): void {
  if (!isRight) failures.push(what);
  console.log(`${isRight ? '✓' : '✗'} ${what}: ${detail}`);
}

interface LegDump {
  outbound: { packetsSent: number };
  quality: { packets_received: number } | null;
  counters: { heldBack: number };
}

/** Checks that the packets received from one party equal those sent to the other or dropped. */
function inconsistenciesOf(dump: unknown): { checked: number; wrong: string[] } {
  const { workers } = dump as { workers: { sessions: { parties?: Record<string, LegDump> }[] }[] };
  const wrong: string[] = [];
  let checked = 0;
  for (const { parties } of workers.flatMap(({ sessions }) => sessions)) {
    if (parties === undefined) continue;
    for (const [speaker, listener] of [
      ['agent', 'customer'],
      ['customer', 'agent'],
    ] as const) {
      const heard = parties[speaker]!.quality?.packets_received ?? 0;
      const { outbound, counters } = parties[listener]!;
      checked += 1;
      if (heard !== outbound.packetsSent + counters.heldBack)
        wrong.push(`${heard} heard, ${outbound.packetsSent} sent, ${counters.heldBack} held back`);
    }
  }
  return { checked, wrong };
}

function memoryBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function socketsInRange(): number {
  const { rtpPortMin, rtpPortMax } = RTP_PORTS;
  return readFileSync('/proc/net/udp', 'utf8')
    .split('\n')
    .slice(1)
    .filter((line) => {
      const port = Number.parseInt(line.trim().split(/\s+/)[1]?.split(':')[1] ?? '', 16);
      return port >= rtpPortMin && port <= rtpPortMax;
    }).length;
}

function openFiles(): number {
  return readdirSync('/proc/self/fd').length;
}

/** Samples the event loop delay; the returned function reports it. */
function watchLoop(signal: AbortSignal): () => { p99Ms: number; maxMs: number } {
  const late: number[] = [];
  const sample = (dueAt: number): void => {
    if (signal.aborted) return;
    setTimeout(() => {
      const now = performance.now();
      late.push(Math.max(0, now - dueAt));
      sample(now + SAMPLE_EVERY_MS);
    }, SAMPLE_EVERY_MS);
  };
  sample(performance.now() + SAMPLE_EVERY_MS);
  return () => {
    late.sort((a, b) => a - b);
    return { p99Ms: late[Math.floor(late.length * 0.99)] ?? 0, maxMs: late.at(-1) ?? 0 };
  };
}

/** A disk that a few recordings fill. */
function mountSmallDisk(): boolean {
  return spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${FULL_DISK_BYTES}`, 'tmpfs', smallDisk]).status === 0;
}
