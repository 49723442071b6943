import { readdirSync, readFileSync } from 'node:fs';

/** Resources of this process with its threads, and of the engine processes that it started. */

export interface Usage {
  mainRssBytes: number;
  mainCpuMs: number;
  /** 0 if no engine runs on this machine. */
  engineProcesses: number;
  engineRssBytes: number;
  engineCpuMs: number;
}

export function usageNow(): Usage {
  const { user, system } = process.cpuUsage();
  const usage: Usage = {
    mainRssBytes: process.memoryUsage.rss(),
    mainCpuMs: (user + system) / 1000,
    engineProcesses: 0,
    engineRssBytes: 0,
    engineCpuMs: 0,
  };
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const child = childUsage(pid);
    if (child === null) continue;
    usage.engineProcesses += 1;
    usage.engineRssBytes += child.rssBytes;
    usage.engineCpuMs += child.cpuMs;
  }
  return usage;
}

/** proc_pid_stat(5) counts in hundredths of a second, whatever the kernel's clock rate. */
export const TICK_MS = 10;

/** Null if the process is not ours or has exited. */
function childUsage(pid: string): { rssBytes: number; cpuMs: number } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The program's name, in brackets, may contain anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (Number(fields[1]) !== process.pid) return null;
    const [, residentKb = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return { rssBytes: 1024 * Number(residentKb), cpuMs: TICK_MS * (Number(fields[11]) + Number(fields[12])) };
  } catch {
    return null;
  }
}

export interface Slope {
  perUnit: number;
  /** Standard error under the assumption of independent points: the true one is larger. */
  error: number;
}

/** Least squares; null for less than three points, or if all have the same x. */
export function slopeOf(points: readonly (readonly [x: number, y: number])[]): Slope | null {
  const count = points.length;
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / count;
  const meanY = points.reduce((sum, [, y]) => sum + y, 0) / count;
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  if (count < 3 || spread === 0) return null;
  const perUnit = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) / spread;
  const residue = points.reduce((sum, [x, y]) => sum + (y - meanY - perUnit * (x - meanX)) ** 2, 0);
  return { perUnit, error: Math.sqrt(residue / (count - 2) / spread) };
}
