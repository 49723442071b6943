import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import type { ContenderOptions, ContenderReport } from './media-relay/contender.ts';
import { buildPhones, Phones, type PhonesResult, take } from './media-relay/phones.ts';
import { isRtpengineInstalled, Rtpengine } from './media-relay/rtpengine.ts';

/**
 * CPU time and delay of a relayed packet, compared with Debian's rtpengine in user space on one thread, or with a bare
 * `dgram` forwarder if rtpengine is missing. Each contender is a process on one core; the phones are a C program on the
 * other, which sends at spread phases. Contenders alternate, with the reference first in every round, because the
 * machine's speed drifts. CPU time covers the whole process, including its kernel time.
 */

const { values: flags } = parseArgs({
  options: {
    calls: { type: 'string', default: '100,500' },
    seconds: { type: 'string', default: '1.5' },
    rounds: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
  },
});
const MEASURE_MS = 1000 * Number(flags.seconds);
/** Until the code is compiled and rtpengine has learned its endpoints. */
const WARM_UP_MS = 2000;

const CONTENDERS: Record<string, ContenderOptions> = {
  'bare dgram forwarder': { io: 'forwarder' },
  'relay, dgram': { io: 'dgram' },
  'relay, epoll': { io: 'epoll' },
  'relay, io_uring': { io: 'io_uring' },
  'io_uring, transcoding': { io: 'io_uring', transcoding: true },
  'io_uring, recording': { io: 'io_uring', recording: true },
  'io_uring, recording, tap': { io: 'io_uring', recording: true, tapped: true },
};
const RTPENGINE = 'rtpengine';

interface Measurement {
  phones: PhonesResult;
  /** CPU of the process, and of its first thread, which relays. */
  cpuMs: number;
  threadCpuMs: number;
  report: ContenderReport | null;
}

const folder = mkdtempSync(join(tmpdir(), 'tandem-bench-'));
const hasTaskset = availableParallelism() > 1 && spawnSync('taskset', ['--version']).error === undefined;
const pinned = (core: number): string[] => (hasTaskset ? ['taskset', '-c', String(core)] : []);
try {
  const built = buildPhones(folder);
  const asked = flags.only.split(',').filter((name) => name !== '');
  const isAsked = (name: string): boolean => asked.length === 0 || asked.some((part) => name.includes(part));
  const hasRtpengine = isRtpengineInstalled();
  if (!hasRtpengine)
    console.log('rtpengine is not installed (Debian: rtpengine-daemon); the forwarder is the reference');
  const reference = hasRtpengine ? RTPENGINE : 'bare dgram forwarder';
  const names = [reference, ...Object.keys(CONTENDERS).filter((name) => name !== reference && isAsked(name))];
  for (const calls of flags.calls.split(',').map(Number)) {
    const measured = new Map<string, Measurement[]>(names.map((name) => [name, []]));
    for (let round = 0; round < Number(flags.rounds); round++) {
      for (const [name, all] of measured) all.push(await measure(name, calls, built));
    }
    print(calls, reference, measured);
  }
} finally {
  rmSync(folder, { recursive: true });
}

async function measure(name: string, calls: number, built: ReturnType<typeof buildPhones>): Promise<Measurement> {
  const phones = await Phones.open(calls, built, { pin: pinned(1) });
  const relay = name === RTPENGINE ? await openRtpengine(phones.ports) : await openContender(name, phones.ports);
  const cpu: { process: number; thread: number }[] = [];
  const times = { warmUpMs: WARM_UP_MS, measureMs: MEASURE_MS };
  const result = await phones.talk(relay.targets, times, () => cpu.push(cpuOf(relay.pid)));
  const report = await relay.close();
  return {
    phones: result,
    cpuMs: cpu[1]!.process - cpu[0]!.process,
    threadCpuMs: cpu[1]!.thread - cpu[0]!.thread,
    report,
  };
}

interface Relay {
  pid: number;
  targets: [number, number][];
  close: () => Promise<ContenderReport | null>;
}

async function openRtpengine(phones: [number, number][]): Promise<Relay> {
  const rtpengine = await Rtpengine.open(folder, pinned(0));
  const targets: [number, number][] = [];
  for (const [index, ports] of phones.entries()) targets.push(await rtpengine.addCall(index, ports));
  const close = async (): Promise<null> => {
    await rtpengine.close();
    return null;
  };
  return { pid: rtpengine.process.pid!, targets, close };
}

async function openContender(name: string, phones: [number, number][]): Promise<Relay> {
  const script = join(import.meta.dirname, 'media-relay', 'contender.ts');
  const node = [process.execPath, '--expose-gc', script, JSON.stringify(CONTENDERS[name])];
  const [command, ...rest] = [...pinned(0), ...node];
  const child = spawn(command!, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  child.stdin.write(`${JSON.stringify(phones)}\n`);
  const targets = JSON.parse(await take(lines)) as [number, number][];
  const close = async (): Promise<ContenderReport> => {
    child.stdin.end();
    const report = JSON.parse(await take(lines)) as ContenderReport;
    await ended;
    return report;
  };
  return { pid: child.pid!, targets, close };
}

/** CPU milliseconds so far. */
function cpuOf(pid: number): { process: number; thread: number } {
  const of = (thread: string): number =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  const threads = readdirSync(`/proc/${pid}/task`).map(of);
  return { process: threads.reduce((sum, each) => sum + each, 0), thread: of(String(pid)) };
}

function print(calls: number, reference: string, measured: Map<string, Measurement[]>): void {
  const perMillion = ({ cpuMs, phones }: Measurement): number => (cpuMs * 1000) / Math.max(1, phones.received);
  const ofReference = mean(measured.get(reference)!.map(perMillion));
  console.log(`\n${calls} calls, ${100 * calls} packets/s; CPU-seconds per million packets, ratio to ${reference}`);
  for (const [name, all] of measured) {
    const cost = mean(all.map(perMillion));
    const lost = mean(all.map(({ phones }) => (100 * (phones.sent - phones.received)) / phones.sent));
    const busy = mean(all.map(({ threadCpuMs }) => (100 * threadCpuMs) / MEASURE_MS));
    const p50 = mean(all.map(({ phones }) => phones.p50Ms)).toFixed(2);
    const p99 = mean(all.map(({ phones }) => phones.p99Ms)).toFixed(2);
    // Phones put timestamps into the payload, which transcoding changes.
    const isKept = CONTENDERS[name]?.transcoding !== true;
    const heap = all.flatMap(({ report, phones }) => (report === null ? [] : [heapOf(report, phones)])).at(-1);
    const columns = [
      name.padEnd(25),
      cost.toFixed(2).padStart(6),
      `x${(cost / ofReference).toFixed(2)}`,
      `lost ${lost.toFixed(2)} %`,
      isKept ? `delay p50 ${p50} p99 ${p99} ms` : 'delay not measured       ',
      `thread ${busy.toFixed(0)} %`,
      heap ?? '',
    ];
    console.log(columns.join('  ').trimEnd());
  }
  const late = Math.max(...[...measured.values()].flat().map(({ phones }) => phones.generatorLateMs));
  if (late > 5)
    console.log(`the phones sent up to ${late.toFixed(0)} ms late: the machine was busy, delays say little`);
}

function heapOf({ heapGrowthBytes, allocatedBytes }: ContenderReport, { received }: PhonesResult): string {
  const perPacket = allocatedBytes / Math.max(1, received);
  return `heap ${heapGrowthBytes < 0 ? '' : '+'}${Math.round(heapGrowthBytes / 1024)} kB, ${perPacket.toFixed(0)} B/packet`;
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
