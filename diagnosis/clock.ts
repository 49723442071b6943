import type { Sql } from '../storage/database.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

/** Callbacks are rejected beyond 300 s. Times in the log and database disagree long before that. */
const WARN_MS = 2_000;
const FAIL_MS = 60_000;
const ADVICE = 'Let a time service (chrony, systemd-timesyncd) set the clock of both machines.';

/** Checks for clock jumps since this process started, and the difference to the database server's clock. */
export async function checkClock(sql: Sql | null): Promise<Finding> {
  // Not for a running server: after weeks, gradual corrections of a time service would look like a jump.
  const jumpMs = Math.abs(Date.now() - (performance.timeOrigin + performance.now()));
  if (jumpMs > WARN_MS) return fail('clock', `The clock was set by ${seconds(jumpMs)} while this ran.`, ADVICE);
  if (sql === null) return ok('clock', 'steady; no database server to compare it with');
  return await compareClock(sql);
}

/** Compares the clock with the database server's. */
export async function compareClock(sql: Sql): Promise<Finding> {
  const skewMs = await skewOf(sql);
  if (skewMs < WARN_MS)
    return ok('clock', `steady, and within ${seconds(Math.max(skewMs, 10))} of the database server's`);
  const message = `The clock differs by ${seconds(skewMs)} from the database server's.`;
  return skewMs > FAIL_MS ? fail('clock', message, ADVICE) : warn('clock', message, ADVICE);
}

/** Returns the difference beyond the round trip. */
async function skewOf(sql: Sql): Promise<number> {
  const before = Date.now();
  const [row] = await sql<{ now: Date }[]>`select clock_timestamp() as now`;
  const after = Date.now();
  const there = row!.now.getTime();
  if (there < before) return before - there;
  return Math.max(0, there - after);
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 1000 ? 2 : 1)} s`;
}
