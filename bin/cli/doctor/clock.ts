import type { Sql } from '../../../storage/database.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

/** Callbacks are refused beyond 300 s; long before, times in the log and in the database stop agreeing. */
const WARN_MS = 2_000;
const FAIL_MS = 60_000;

/** How far the clock moved against the monotonic one since this process started, and from the database server's. */
export async function checkClock(sql: Sql | null): Promise<Finding> {
  const jumpMs = Math.abs(Date.now() - (performance.timeOrigin + performance.now()));
  const advice = 'Let a time service (chrony, systemd-timesyncd) set the clock of both machines.';
  if (jumpMs > WARN_MS) return fail('clock', `The clock was set by ${seconds(jumpMs)} while this ran.`, advice);
  if (sql === null) return ok('clock', 'steady; there is no database server to compare it with');
  const skewMs = await skewOf(sql);
  if (skewMs < WARN_MS)
    return ok('clock', `steady, and within ${seconds(Math.max(skewMs, 10))} of the database server's`);
  const message = `The clock differs by ${seconds(skewMs)} from the database server's.`;
  return skewMs > FAIL_MS ? fail('clock', message, advice) : warn('clock', message, advice);
}

/** What the way there and back cannot explain. */
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
