import { getPriority, setPriority } from 'node:os';

/** Ten steps mean nine times the CPU time of other programs under contention (Linux, sched(7)). */
const STEPS = 10;
const HIGHEST = -20;
const LOWEST = 19;

/**
 * Adds to the nice value: a higher one means less CPU time.
 * @param id of the process; default: the calling process, or on Linux the calling thread
 * @throws the system's error if a lower value is not permitted
 */
export function addNiceness(steps: number, id = 0): void {
  setPriority(id, Math.min(LOWEST, Math.max(HIGHEST, getPriority(id) + steps)));
}

/**
 * Raises the priority of the calling thread, or of a process with one thread, so that it runs on time beside busy ones.
 * Does nothing where the system forbids it (see `mayRaisePriority`), and outside of Linux, where priorities belong to
 * whole processes.
 * @param id of the process; default: the calling thread
 */
export function raisePriority(id = 0): void {
  if (process.platform !== 'linux') return;
  try {
    addNiceness(-STEPS, id);
  } catch {
    // Not permitted, or the process has ended.
  }
}

/** The capability CAP_SYS_NICE, as a bit of `CapEff` (capabilities(7)). */
const CAP_SYS_NICE = 1n << 23n;

/**
 * Whether `raisePriority` works: with the capability CAP_SYS_NICE, or a limit of nice values (RLIMIT_NICE, which counts
 * from 1 for 19 to 40 for -20).
 */
export function mayRaisePriority({ status, limits, niceness = getPriority() }: OwnProcess): boolean {
  const capabilities = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`);
  if ((capabilities & CAP_SYS_NICE) !== 0n) return true;
  const [, limit = '0'] = /^Max nice priority\s+(\d+|unlimited)/m.exec(limits) ?? [];
  return limit === 'unlimited' || 20 - Number(limit) <= Math.max(HIGHEST, niceness - STEPS);
}

interface OwnProcess {
  /** Text of `/proc/self/status`. */
  status: string;
  /** Text of `/proc/self/limits`. */
  limits: string;
  /** Default: that of the calling thread. */
  niceness?: number;
}
