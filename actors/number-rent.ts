import { TandemError } from '../machines/errors.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Sql } from '../storage/database.ts';
import { collectRent, numbersWithRentDue } from '../storage/queries/number-rent.ts';
import type { Logger } from './logger.ts';
import { startSweeper } from './sweeper.ts';

/** Collects the monthly rent of numbers as it falls due. */
export interface NumberRent {
  /** One round over all numbers whose rent is due. */
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
 * Looks at once and then every hour. What is due stands in the database, each month is charged once whichever node
 * comes first, and months that passed while nobody looked are made up for. A wallet that does not cover the rent keeps
 * its number, and is asked again in the next round.
 */
export function collectNumberRent({ sql, clock, logger, intervalMs = INTERVAL_MS }: NumberRentOptions): NumberRent {
  const closing = new AbortController();

  async function collectAll(): Promise<void> {
    const now = new Date(clock.now());
    for (const e164 of await numbersWithRentDue(sql, now)) {
      try {
        // A month at a time: each is an entry of its own.
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
