import { readFile } from 'node:fs/promises';
import { cpuMsOfFamily } from '../process-family.ts';
import type { Servers } from './servers.ts';

/** Metrics of the servers and the machine over a measured time. */
export interface Figures {
  /** Share of the time that the busiest media worker was busy, 0 to 1. */
  workerBusy: number;
  /** The longest delay of a media worker in the last second. */
  workerLateMs: number;
  /** Highest `tandem_media_load_ratio` of a node: at 1 it rejects calls. */
  mediaLoad: number;
  /** Event loop delay of the slowest main thread, p99 since the last reading. */
  loopLagMs: number;
  bridged: number;
  /** CPU cores used by the servers, without Postgres. */
  serverCores: number;
  /** Busy share of the machine, all programs included, 0 to 1. */
  machineBusy: number;
}

/** @returns a function that reads the figures since this call, once */
export async function beginFigures({ nodes }: Pick<Servers, 'nodes'>): Promise<() => Promise<Figures>> {
  const cpuMs = async () =>
    (await Promise.all(nodes.map(({ server }) => cpuMsOfFamily(server.child.pid!)))).reduce(
      (sum, each) => sum + each,
      0,
    );
  // Resets the event loop delay, which is measured between readings.
  await Promise.all(nodes.map(({ url }) => metricsOf(url)));
  const before = { cpuMs: await cpuMs(), machine: await machineTimes(), atMs: performance.now() };
  return async () => {
    const machine = await machineTimes();
    const serverCores = ((await cpuMs()) - before.cpuMs) / (performance.now() - before.atMs);
    const metrics = await Promise.all(nodes.map(({ url }) => metricsOf(url)));
    const most = (name: string) => Math.max(0, ...metrics.flatMap((each) => each.get(name) ?? []));
    return {
      workerBusy: most('tandem_media_worker_busy_ratio'),
      workerLateMs: 1000 * most('tandem_media_worker_late_seconds'),
      mediaLoad: most('tandem_media_load_ratio'),
      loopLagMs: 1000 * most('nodejs_eventloop_lag_p99_seconds'),
      bridged: metrics.reduce((sum, each) => sum + (each.get('tandem_calls{state="bridged"}')?.[0] ?? 0), 0),
      serverCores,
      machineBusy: (machine.busy - before.machine.busy) / Math.max(1, machine.all - before.machine.all),
    };
  };
}

/** Names the likely bottleneck. */
export function scarcestOf({ workerBusy, loopLagMs, machineBusy }: Figures): string {
  const scarce = [
    ...(workerBusy > 0.8 ? [`a media worker (${percent(workerBusy)} busy)`] : []),
    ...(loopLagMs > 100 ? [`a main thread (p99 ${loopLagMs.toFixed(0)} ms late)`] : []),
    ...(machineBusy > 0.95 ? [`the machine (${percent(machineBusy)} busy)`] : []),
  ];
  return scarce.length > 0 ? scarce.join(', ') : 'nothing that was measured';
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

export function percentile(valuesMs: Iterable<number>, percentage: number): number {
  const sorted = [...valuesMs].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percentage) / 100))] ?? Number.NaN;
}

/** By name, and by name with labels. */
async function metricsOf(url: string): Promise<Map<string, number[]>> {
  const text = await (await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(20_000) })).text();
  const values = new Map<string, number[]>();
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = /^(\w+)(\{[^}]*\})? (\S+)$/.exec(line) ?? [];
    if (name === undefined) continue;
    for (const key of labels === '' ? [name] : [name, name + labels]) {
      values.set(key, [...(values.get(key) ?? []), Number(value)]);
    }
  }
  return values;
}

/** Sum over all processors, in ticks (proc_stat(5)). */
async function machineTimes(): Promise<{ busy: number; all: number }> {
  const [line] = (await readFile('/proc/stat', 'utf8')).split('\n');
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, ...rest] = line!
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number);
  const all = [user, nice, system, idle, iowait, ...rest.slice(0, 3)].reduce((sum, each) => sum + each, 0);
  return { busy: all - idle - iowait, all };
}
