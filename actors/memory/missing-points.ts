import type { Embedder } from '../../language/memory/embedder.ts';
import { makePoints } from '../../language/memory/make-points.ts';
import { repeat } from '../../runtime/waiting.ts';
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
  now: () => Date;
  /** Between two rounds. Default 10 minutes. */
  everyMs?: number;
}

export interface MissingPoints {
  /** Waits for what it is at. */
  close(): Promise<void>;
}

/**
 * Makes the points that are missing, in the background: of all units once the embedder was changed, as points of
 * different ones do not compare, and of single ones that lost theirs. Until then they are found by their words. Forgets
 * the removals of units that nobody asks for any more, too.
 */
export function keepMakingPoints(options: MissingPointsOptions): MissingPoints {
  const { logger, everyMs = 600_000 } = options;
  const closing = new AbortController();
  const ended = repeat(round, { everyMs, signal: closing.signal });
  return {
    async close() {
      closing.abort();
      await ended;
    },
  };

  async function round(): Promise<void> {
    try {
      const made = await makeMissingPoints(options, closing.signal);
      if (made > 0) logger.info({ units: made }, 'embedded memories that had no embedding of this embedder');
      await forgetOldRemovals(options);
    } catch (error) {
      if (closing.signal.aborted) return;
      logger.warn({ err: error }, 'missing embeddings cannot be computed');
    }
  }
}

/** Copies that are older are read anew. */
const REMOVALS_KEPT_MS = 24 * 3_600_000;

/**
 * One round over all units; how many points it made. Units that cannot be embedded are passed over, unless the next ones
 * cannot be either.
 * @throws TandemError `MEMORY_UNREACHABLE`, the signal's reason
 */
export async function makeMissingPoints(
  { sql, embedder }: Pick<MissingPointsOptions, 'sql' | 'embedder'>,
  signal: AbortSignal,
): Promise<number> {
  let made = 0;
  let failure: unknown = null;
  for (let after = 0n; ; ) {
    signal.throwIfAborted();
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

async function forgetOldRemovals({ sql, now }: MissingPointsOptions): Promise<void> {
  const before = new Date(now().getTime() - REMOVALS_KEPT_MS);
  const limit = 10_000;
  while ((await forgetUnitRemovals(sql, { before, limit })) > 0);
}
