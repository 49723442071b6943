import { createTableIndex, type TableIndexOptions } from '../../language/memory/table-index.ts';
import { createVectorIndex, type VectorIndex } from '../../language/memory/vector-index.ts';
import type { Sql } from '../../storage/database.ts';
import { dropVectorsOfDeleted, preparePgvector } from '../../storage/queries/memory-vectors.ts';
import type { Logger } from '../logger.ts';
import { createPointSource } from './recall-store.ts';
import { createPgvectorTable } from './vector-table.ts';

/** `auto`: pgvector where there is one; `pgvector`: the same, with a warning where there is none; `exact`: never. */
export type MemoryIndexChoice = 'auto' | 'exact' | 'pgvector';

export interface OpenVectorIndexOptions extends Pick<TableIndexOptions, 'fromUnits' | 'waitMs'> {
  sql: Sql;
  /** Whose points. */
  embedder: string;
  choice: MemoryIndexChoice;
  logger: Pick<Logger, 'info' | 'warn'>;
}

/**
 * The index that this database can have, once that is known; until then, and wherever pgvector fails, every point is
 * compared.
 */
export function openVectorIndex(
  options: OpenVectorIndexOptions,
): VectorIndex & { chosen: Promise<'exact' | 'pgvector'> } {
  const { sql, embedder, choice, fromUnits, waitMs, logger } = options;
  const exact = createVectorIndex({ source: createPointSource(sql, { embedder }), logger });
  let index = exact;
  const chosen = choose();

  async function choose(): Promise<'exact' | 'pgvector'> {
    const prepared = choice === 'exact' ? { missing: 'MEMORY_INDEX says so' } : await prepare();
    if ('missing' in prepared) {
      const { missing: reason } = prepared;
      if (choice === 'pgvector') logger.warn({ reason }, 'there is no pgvector: memories are compared one by one');
      else logger.info({ reason }, 'memories are compared one by one');
      return 'exact';
    }
    index = createTableIndex({
      table: createPgvectorTable(sql, { embedder }),
      exact,
      ...(fromUnits === undefined ? {} : { fromUnits }),
      ...(waitMs === undefined ? {} : { waitMs }),
      logger,
    });
    logger.info({ version: prepared.version }, 'memories of large collections are looked up with pgvector');
    return 'pgvector';
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
