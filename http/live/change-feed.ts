import type { LiveCalls, LiveNews } from '../../actors/live/live-calls.ts';
import { systemClock } from '../../runtime/clock.ts';
import { pause, within } from '../../runtime/waiting.ts';
import type { Sql } from '../../storage/database.ts';
import {
  type CallChange,
  type CallChanges,
  type ChangesCursor,
  callChangesSince,
  liveCallsNow,
} from '../../storage/queries/call-changes.ts';
import type { HttpContext } from '../context.ts';
import type { SeenUpTo } from './resume-id.ts';

/** Item for the subscribers of a workspace. */
export type FeedItem =
  | { type: 'changes'; seen: SeenUpTo; changes: readonly CallChange[] }
  /** Changes were missed. Read the current state. */
  | { type: 'lost' }
  | { type: 'news'; news: Exclude<LiveNews, { type: 'changed' }> };

export interface ChangeFeedOptions {
  sql: Sql;
  liveCalls: LiveCalls;
  now: () => Date;
  /** Interval of checks for changes that were not reported. */
  heartbeatMs: number;
  logger: HttpContext['logger'];
}

/**
 * Longest gap after which a stream can resume. Clients reconnect within seconds; a page closed for longer starts with a
 * snapshot.
 */
export const RESUME_WINDOW_MS = 15 * 60_000;
const MAX_MISSED_EVENTS = 1000;
/** Later than any event can be: node clocks differ by less, and no transaction takes so long. */
const OLDEST_EVENT_MS = 4 * RESUME_WINDOW_MS;
/** Delay between reads. A call in set-up changes many times a second. */
const BETWEEN_READS_MS = 100;
const AFTER_FAILURE_MS = 1000;

/** Reads the changes of each watched workspace once for all its streams. */
export class ChangeFeed {
  readonly #options: ChangeFeedOptions;
  readonly #readers = new Map<string, Reader>();

  constructor(options: ChangeFeedOptions) {
    this.#options = options;
  }

  /**
   * Calls the listener until the signal aborts. Resolves once all later commits reach it; recent earlier ones may do so
   * too.
   * @throws if the database fails
   */
  async subscribe(workspaceId: string, listener: (item: FeedItem) => void, signal: AbortSignal): Promise<void> {
    const reader = this.#readers.get(workspaceId) ?? new Reader(workspaceId, this.#options);
    this.#readers.set(workspaceId, reader);
    signal.addEventListener(
      'abort',
      () => {
        reader.listeners.delete(listener);
        if (reader.listeners.size > 0 || this.#readers.get(workspaceId) !== reader) return;
        this.#readers.delete(workspaceId);
        reader.close();
      },
      { once: true },
    );
    reader.listeners.add(listener);
    await reader.ready();
  }
}

/** Calls `callChangesSince` with the limits of streams. */
export function readChanges(
  sql: Sql,
  { workspaceId, cursor, now }: { workspaceId: string; cursor: ChangesCursor; now: Date },
): Promise<CallChanges | null> {
  const since = new Date(now.getTime() - OLDEST_EVENT_MS);
  return callChangesSince(sql, { workspaceId, cursor, since, limit: MAX_MISSED_EVENTS });
}

class Reader {
  readonly listeners = new Set<(item: FeedItem) => void>();
  readonly #workspaceId: string;
  readonly #options: ChangeFeedOptions;
  readonly #closing = new AbortController();
  #cursor: Promise<ChangesCursor> | null = null;
  #isDue = false;
  #wake: () => void = () => undefined;

  constructor(workspaceId: string, options: ChangeFeedOptions) {
    this.#workspaceId = workspaceId;
    this.#options = options;
    options.liveCalls.watch(workspaceId, (news) => this.#receive(news), this.#closing.signal);
  }

  async ready(): Promise<void> {
    this.#cursor ??= this.#start();
    await this.#cursor;
  }

  close(): void {
    this.#closing.abort();
  }

  async #start(): Promise<ChangesCursor> {
    try {
      const { cursor } = await liveCallsNow(this.#options.sql, { workspaceId: this.#workspaceId, limit: 0 });
      void this.#run(cursor);
      return cursor;
    } catch (error) {
      this.#cursor = null;
      throw error;
    }
  }

  #receive(news: LiveNews): void {
    if (news.type !== 'changed') {
      this.#notify({ type: 'news', news });
      return;
    }
    this.#isDue = true;
    this.#wake();
  }

  async #run(from: ChangesCursor): Promise<void> {
    const { heartbeatMs, logger } = this.#options;
    const { signal } = this.#closing;
    let cursor = from;
    while (!signal.aborted) {
      await this.#untilDue(heartbeatMs);
      if (signal.aborted) return;
      this.#isDue = false;
      let waitMs = BETWEEN_READS_MS;
      try {
        cursor = await this.#read(cursor);
      } catch (error) {
        if (signal.aborted) return;
        logger.warn({ workspaceId: this.#workspaceId, err: error }, 'reading changes of live calls failed');
        this.#isDue = true;
        waitMs = AFTER_FAILURE_MS;
      }
      await pause(waitMs, { clock: systemClock, signal }).catch(() => {});
    }
  }

  async #read(cursor: ChangesCursor): Promise<ChangesCursor> {
    const { sql, now } = this.#options;
    const at = now();
    const workspaceId = this.#workspaceId;
    const read = await readChanges(sql, { workspaceId, cursor, now: at });
    if (read === null) {
      const current = await liveCallsNow(sql, { workspaceId, limit: 0 });
      this.#notify({ type: 'lost' });
      return current.cursor;
    }
    this.#notify({ type: 'changes', seen: { at, cursor: read.cursor }, changes: read.changes });
    return read.cursor;
  }

  async #untilDue(timeoutMs: number): Promise<void> {
    if (this.#isDue) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await within(promise, { ms: timeoutMs, signal: this.#closing.signal }).catch(() => {});
  }

  /** A listener that throws must not keep changes from the others. */
  #notify(item: FeedItem): void {
    for (const listener of this.listeners) {
      try {
        listener(item);
      } catch (error) {
        this.#options.logger.error({ err: error }, 'listener of live calls threw and was removed');
        this.listeners.delete(listener);
      }
    }
  }
}
