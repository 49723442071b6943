import type { Clock } from '../runtime/clock.ts';
import { repeat } from '../runtime/waiting.ts';
import type { Logger } from './logger.ts';

export interface SweeperOptions {
  /** A failure is logged; the next sweep follows as usual. */
  sweep: () => Promise<void>;
  /** Constant log message of a failure. */
  failure: string;
  everyMs: number;
  clock: Clock;
  logger: Logger;
}

/** Sweeps now and after each interval, until `close`. */
export function startSweeper({ sweep, failure, everyMs, clock, logger }: SweeperOptions): { close(): void } {
  const closing = new AbortController();
  const warn = (error: unknown) => logger.warn({ err: error }, failure);
  void repeat(() => sweep().catch(warn), { everyMs, clock, signal: closing.signal });
  return { close: () => closing.abort() };
}
