import type { Clock } from '../runtime/clock.ts';
import type { Sql } from '../storage/database.ts';
import { deleteOldRows, RETAINED_KINDS, type RetainedKind } from '../storage/queries/retention.ts';
import type { Logger } from './logger.ts';
import { startSweeper } from './sweeper.ts';

/** Deletes expired rows of all workspaces. */
export interface Retention extends Disposable {
  sweep(): Promise<void>;
}

export interface RetentionOptions {
  sql: Sql;
  /** Days to keep each kind; 0: for ever. */
  days: Readonly<Record<RetainedKind, number>>;
  clock: Clock;
  logger: Logger;
}

const EVERY_MS = 3_600_000;
const DAY_MS = 86_400_000;
const BATCH = 500;

/** Sweeps at once and then every hour. Only one node deletes rows of a kind at a time. */
export function startRetention({ sql, days, clock, logger }: RetentionOptions): Retention {
  let isClosed = false;

  async function sweepKind(kind: RetainedKind): Promise<void> {
    const at = { now: new Date(clock.now()), keptMs: days[kind] * DAY_MS };
    let deleted = 0;
    for (let count: number | null = BATCH; count === BATCH && !isClosed; ) {
      count = await deleteOldRows(sql, { kind, ...at, limit: BATCH });
      deleted += count ?? 0;
    }
    if (deleted > 0) logger.info({ kind, rows: deleted }, 'old rows deleted');
  }

  async function sweep(): Promise<void> {
    for (const kind of RETAINED_KINDS) if (days[kind] > 0) await sweepKind(kind);
  }

  const sweeper = startSweeper({ sweep, failure: 'deleting old rows failed', everyMs: EVERY_MS, clock, logger });
  return {
    sweep,
    [Symbol.dispose]() {
      isClosed = true;
      sweeper.close();
    },
  };
}
