import type { MediaSession } from '../media/media-plane.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Sql } from '../storage/database.ts';
import { addQualitySamples, type QualitySample } from '../storage/queries/call-quality.ts';
import type { Logger } from './logger.ts';

/** Stores samples of media quality over time. Calls neither wait for the database nor fail with it. */
export interface CallQualityLog extends AsyncDisposable {
  /** Samples the legs of a call every 5 seconds until `end`, or until the signal aborts. */
  watch(call: { callId: string; media: Pick<MediaSession, 'sampleQuality'>; signal: AbortSignal }): QualityWatch;
  flush(): Promise<void>;
  dump(): { waiting: number; lost: number };
}

export interface QualityWatch {
  /** Takes the last sample. Call it before closing the media session. Never throws. */
  end(): Promise<void>;
}

export interface CallQualityLogOptions {
  sql: Sql;
  clock: Clock;
  logger: Logger;
}

export const SAMPLE_EVERY_MS = 5_000;
/** One insert per interval covers all calls of the node. */
const WRITE_EVERY_MS = 15_000;
/** Delay after a call's end, so that calls that end together share an insert. */
const WRITE_AT_END_MS = 500;
const BATCH = 1_000;
/** Drop samples beyond this: the database is too slow, and calls matter more. */
const MOST_WAITING = 50_000;

export function openCallQualityLog({ sql, clock, logger }: CallQualityLogOptions): CallQualityLog {
  const waiting: QualitySample[] = [];
  let lost = 0;
  let timer: { dueAtMs: number; handle: unknown } | null = null;
  let writing: Promise<void> = Promise.resolve();

  async function writeAll(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.splice(0, BATCH);
      try {
        await addQualitySamples(sql, batch);
      } catch (error) {
        lost += batch.length;
        logger.warn({ err: error, samples: batch.length }, 'quality samples could not be stored');
      }
    }
  }

  function flush(): Promise<void> {
    if (timer !== null) clock.clearTimeout(timer.handle);
    timer = null;
    writing = writing.then(writeAll);
    return writing;
  }

  function flushWithin(ms: number): void {
    const dueAtMs = clock.monotonicMs() + ms;
    if (timer !== null && timer.dueAtMs <= dueAtMs) return;
    if (timer !== null) clock.clearTimeout(timer.handle);
    timer = { dueAtMs, handle: clock.setTimeout(() => void flush(), ms) };
  }

  function add(sample: QualitySample): void {
    if (waiting.length >= MOST_WAITING) {
      lost++;
      return;
    }
    waiting.push(sample);
    flushWithin(WRITE_EVERY_MS);
  }

  return {
    watch({ callId, media, signal }) {
      let next: unknown = null;
      let isOver = false;
      let sampling: Promise<void> = Promise.resolve();

      async function sample(): Promise<void> {
        const legs = await media.sampleQuality().catch(() => ({}));
        const at = new Date(clock.now());
        for (const [leg, measured] of Object.entries(legs)) if (measured) add({ callId, leg, at, ...measured });
      }

      function scheduleNext(): void {
        if (isOver) return;
        next = clock.setTimeout(() => {
          sampling = sample().then(scheduleNext);
        }, SAMPLE_EVERY_MS);
      }

      function stop(): void {
        isOver = true;
        clock.clearTimeout(next);
      }

      signal.addEventListener('abort', stop, { once: true });
      if (!signal.aborted) scheduleNext();
      return {
        async end() {
          if (isOver) return;
          stop();
          await sampling;
          await sample();
          if (waiting.length > 0) flushWithin(WRITE_AT_END_MS);
        },
      };
    },
    flush,
    dump: () => ({ waiting: waiting.length, lost }),
    [Symbol.asyncDispose]: flush,
  };
}
