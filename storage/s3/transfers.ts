import { setTimeout as sleep } from 'node:timers/promises';
import { BackOff } from '../../runtime/back-off.ts';
import type { StorageLogger } from '../database.ts';

/** Transfers keys to the bucket in the background, with retries until success. */
export interface Transfers {
  /** Again if a transfer is already in progress. */
  add(key: string): void;
  cancel(key: string): void;
  /** Resolves when nothing is left to transfer. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

export interface TransfersOptions {
  /** Updates one key of the bucket. Never runs twice at a time for a key. */
  transfer(key: string, signal: AbortSignal): Promise<void>;
  logger: StorageLogger;
  /** Doubles with each failure of a key, up to a minute. Default 1 000. */
  firstRetryMs?: number;
}

const AT_ONCE = 4;
const LONGEST_RETRY_MS = 60_000;

interface Transfer {
  attempt: AbortController;
  /** The key changed after the attempt began. */
  isStale: boolean;
  ended: Promise<void>;
}

export function createTransfers({ transfer, logger, firstRetryMs = 1_000 }: TransfersOptions): Transfers {
  const current = new Map<string, Transfer>();
  const closing = new AbortController();
  const waitingForSlot: (() => void)[] = [];
  let freeSlots = AT_ONCE;

  async function inSlot(work: () => Promise<void>): Promise<void> {
    if (freeSlots > 0) freeSlots -= 1;
    else await new Promise<void>((resolve) => waitingForSlot.push(resolve));
    try {
      await work();
    } finally {
      const next = waitingForSlot.shift();
      if (next === undefined) freeSlots += 1;
      else next();
    }
  }

  /** Returns false after a failure, so that the caller waits. */
  async function attempt(key: string, entry: Transfer, failures: number): Promise<boolean> {
    if (closing.signal.aborted) return false;
    entry.attempt = new AbortController();
    entry.isStale = false;
    try {
      await transfer(key, AbortSignal.any([entry.attempt.signal, closing.signal]));
      return true;
    } catch (error) {
      if (entry.isStale) return true;
      if (closing.signal.aborted) return false;
      // Log only the text: the S3 client's error contains the request.
      if (failures % 10 === 0) logger.warn({ key, reason: (error as Error).message }, 'an object transfer failed');
      return false;
    }
  }

  async function untilDone(key: string, entry: Transfer): Promise<void> {
    const backOff = new BackOff({ firstMs: firstRetryMs, longestMs: LONGEST_RETRY_MS });
    for (let failures = 0; !closing.signal.aborted; ) {
      let succeeded = false;
      await inSlot(async () => {
        succeeded = await attempt(key, entry, failures);
      });
      if (succeeded && !entry.isStale) break;
      if (succeeded) continue;
      failures += 1;
      await sleep(backOff.next(), undefined, { signal: closing.signal }).catch(() => undefined);
    }
    current.delete(key);
  }

  return {
    add(key) {
      const running = current.get(key);
      if (running !== undefined) {
        running.isStale = true;
        return;
      }
      if (closing.signal.aborted) return;
      const entry: Transfer = { attempt: new AbortController(), isStale: false, ended: Promise.resolve() };
      current.set(key, entry);
      entry.ended = untilDone(key, entry);
    },

    cancel(key) {
      current.get(key)?.attempt.abort();
    },

    async settled() {
      while (current.size > 0) await Promise.all([...current.values()].map(({ ended }) => ended));
    },

    async close() {
      closing.abort();
      await Promise.all([...current.values()].map(({ ended }) => ended));
    },
  };
}
