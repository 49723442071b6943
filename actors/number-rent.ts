import { TandemError } from '../machines/errors.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Sql } from '../storage/database.ts';
import { collectRent, numbersWithRentDue } from '../storage/queries/number-rent.ts';
import type { Logger } from './logger.ts';
import { startSweeper } from './sweeper.ts';

export interface NumberRent {
  collectAll(): Promise<void>;
  close(): void;
}

export interface NumberRentOptions {
  sql: Sql;
  clock: Clock;
  logger: Logger;
  intervalMs?: number;
}

const INTERVAL_MS = 3_600_000;

/**
 * Collects at once and then every hour. Due dates are in the database, so each month is charged once, by whichever node
 * is first, and missed months are charged later. If the wallet is too low, the number stays and the next round retries.
 */
export function collectNumberRent({ sql, clock, logger, intervalMs = INTERVAL_MS }: NumberRentOptions): NumberRent {
  const closing = new AbortController();

  async function collectAll(): Promise<void> {
    const now = new Date(clock.now());
    for (const e164 of await numbersWithRentDue(sql, now)) {
      try {
        // One month at a time: each is its own ledger entry.
        while (!closing.signal.aborted && (await collectRent(sql, { e164, now })));
      } catch (error) {
        if (!(error instanceof TandemError && error.code === 'INSUFFICIENT_CREDITS')) throw error;
        logger.warn({ pii: { e164 } }, 'number rent overdue: insufficient wallet balance');
      }
    }
  }

  const failure = 'charging number rent failed';
  const sweeper = startSweeper({ sweep: collectAll, failure, everyMs: intervalMs, clock, logger });
  return {
    collectAll,
    close() {
      closing.abort();
      sweeper.close();
    },
  };
}
