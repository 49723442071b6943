import { createTableIndex, type TableIndexOptions } from '../../language/memory/table-index.ts';
import { createVectorIndex, type VectorIndex } from '../../language/memory/vector-index.ts';
import type { Sql } from '../../storage/database.ts';
import { dropVectorsOfDeleted, preparePgvector } from '../../storage/queries/memory-vectors.ts';
import type { Logger } from '../logger.ts';
import { createPointSource } from './recall-store.ts';
import { createPgvectorTable } from './vector-table.ts';

/**
 * `auto`: pgvector if installed, for collections large enough to benefit. `pgvector`: for smaller ones too, with a
 * warning if it is missing. `exact`: never.
 */
export type MemoryIndexChoice = 'auto' | 'exact' | 'pgvector';

/**
 * Below this, comparing every point is exact and no slower. For 100,000 points it takes 28 ms, and pgvector finds 77 of
 * the nearest 100.
 */
const FROM_UNITS = { auto: 250_000, pgvector: 1_000 };

export interface OpenVectorIndexOptions extends Partial<Pick<TableIndexOptions, 'fromUnits' | 'waitMs'>> {
  sql: Sql;
  embedder: string;
  choice: MemoryIndexChoice;
  logger: Pick<Logger, 'info' | 'warn'>;
}

/** Opens the best index of this database. Until that is known, and wherever pgvector fails, it compares every point. */
export function openVectorIndex(
  options: OpenVectorIndexOptions,
): VectorIndex & { chosen: Promise<'exact' | 'pgvector'> } {
  const { sql, embedder, choice, logger } = options;
  const exact = createVectorIndex({ source: createPointSource(sql, { embedder }), logger });
  let index = exact;
  const chosen = choose();

  async function choose(): Promise<'exact' | 'pgvector'> {
    if (choice === 'exact') return compareAll('MEMORY_INDEX says so');
    const prepared = await prepare();
    if ('missing' in prepared) return compareAll(prepared.missing);
    const { fromUnits = FROM_UNITS[choice] } = options;
    const table = createPgvectorTable(sql, { embedder });
    const waiting = options.waitMs === undefined ? {} : { waitMs: options.waitMs };
    index = createTableIndex({ table, exact, fromUnits, ...waiting, logger });
    const { version } = prepared;
    logger.info({ version, fromUnits }, 'vector search of large collections uses pgvector');
    return 'pgvector';
  }

  function compareAll(reason: string): 'exact' {
    if (choice === 'pgvector') logger.warn({ reason }, 'there is no pgvector: vector search is exact');
    else logger.info({ reason }, 'vector search is exact');
    return 'exact';
  }

  async function prepare(): Promise<{ version: string } | { missing: string }> {
    try {
      const prepared = await preparePgvector(sql);
      if ('version' in prepared) await dropVectorsOfDeleted(sql);
      return prepared;
    } catch (error) {
      logger.warn({ err: error }, 'pgvector cannot be set up');
      return { missing: 'it cannot be set up' };
    }
  }

  return {
    chosen,
    search: (search) => index.search(search),
    async close() {
      await chosen;
      await index.close();
    },
  };
}
