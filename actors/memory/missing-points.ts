import type { Embedder } from '../../language/memory/embedder.ts';
import { makePoints } from '../../language/memory/make-points.ts';
import type { Clock } from '../../runtime/clock.ts';
import { pause, repeat } from '../../runtime/waiting.ts';
import { inTransaction, type Sql } from '../../storage/database.ts';
import { nextRevision } from '../../storage/queries/memory-collections.ts';
import {
  forgetUnitRemovals,
  setUnitPoints,
  type UnitWithoutPoint,
  unitsWithoutPoint,
} from '../../storage/queries/memory-units.ts';
import type { Logger } from '../logger.ts';

export interface MissingPointsOptions {
  sql: Sql;
  embedder: Embedder;
  logger: Logger;
  clock: Clock;
  /** Interval between rounds. Default 10 minutes. */
  everyMs?: number;
}

export interface MissingPoints {
  close(): Promise<void>;
}

/**
 * Embeds units without an embedding of this embedder, in the background: all of them after a change of embedder,
 * because embeddings of different ones cannot be compared, and single ones that failed. Until then search finds them by
 * keyword. Each batch commits separately, so a restart continues there. Also deletes old records of removed units.
 */
export function keepMakingPoints(options: MissingPointsOptions): MissingPoints {
  const { clock, logger, everyMs = 600_000 } = options;
  const closing = new AbortController();
  const rest = (workedMs: number) => pause(RESTS * workedMs, { clock, signal: closing.signal });
  const ended = repeat(round, { everyMs, signal: closing.signal });
  return {
    async close() {
      closing.abort();
      await ended;
    },
  };

  async function round(): Promise<void> {
    try {
      const made = await makeMissingPoints({ ...options, rest }, closing.signal);
      if (made > 0) logger.info({ units: made }, 'embedded memories that had no embedding of this embedder');
      await forgetOldRemovals(options);
    } catch (error) {
      if (closing.signal.aborted) return;
      logger.warn({ err: error }, 'missing embeddings cannot be computed');
    }
  }
}

/** Rests this many times as long as a batch took, because calls and requests share the processor. */
const RESTS = 3;
/** Older copies are read again. */
const REMOVALS_KEPT_MS = 24 * 3_600_000;

export interface MissingPointsRound extends Pick<MissingPointsOptions, 'sql' | 'embedder'> {
  /** Called between batches with the duration of the last one. Default: no rest. */
  rest?: (workedMs: number) => Promise<void>;
}

/**
 * Runs one round over all units and returns how many it embedded. Skips units that cannot be embedded, unless the next
 * ones fail too.
 * @throws TandemError `MEMORY_UNREACHABLE`, the signal's reason
 */
export async function makeMissingPoints(
  { sql, embedder, rest }: MissingPointsRound,
  signal: AbortSignal,
): Promise<number> {
  let made = 0;
  let failure: unknown = null;
  for (let after = 0n; ; ) {
    signal.throwIfAborted();
    const startedMs = performance.now();
    const units = await unitsWithoutPoint(sql, { embedder: embedder.name, after, limit: embedder.batchSize });
    const last = units.at(-1);
    if (last === undefined) break;
    after = last.id;
    try {
      made += await makePointsOf(units, { sql, embedder, signal });
      failure = null;
    } catch (error) {
      if (signal.aborted || failure !== null) throw error;
      failure = error;
    }
    await rest?.(performance.now() - startedMs);
  }
  if (failure !== null && made === 0) throw failure;
  return made;
}

async function makePointsOf(
  units: readonly UnitWithoutPoint[],
  { sql, embedder, signal }: { sql: Sql; embedder: Embedder; signal: AbortSignal },
): Promise<number> {
  const points = await makePoints(embedder, { texts: units, signal });
  const byCollection = Map.groupBy(
    units.map((unit, index) => ({ unit, point: points[index]! })),
    ({ unit }) => unit.collectionId,
  );
  let made = 0;
  for (const [collectionId, ones] of byCollection) made += await store(sql, collectionId, ones);
  return made;
}

async function store(
  sql: Sql,
  collectionId: string,
  made: { unit: UnitWithoutPoint; point: { embedder: string; bytes: Uint8Array } }[],
): Promise<number> {
  return await inTransaction(sql, async (tx) => {
    const revision = await nextRevision(tx, collectionId);
    if (revision === null) return 0;
    const points = made.map(({ unit, point }) => ({ id: unit.id, ...point }));
    await setUnitPoints(tx, { collectionId, points, revision });
    return points.length;
  });
}

async function forgetOldRemovals({ sql, clock }: MissingPointsOptions): Promise<void> {
  const before = new Date(clock.now() - REMOVALS_KEPT_MS);
  const limit = 10_000;
  while ((await forgetUnitRemovals(sql, { before, limit })) > 0);
}
