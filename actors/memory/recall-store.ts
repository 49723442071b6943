import type { RecallStore } from '../../language/memory/recall.ts';
import type { PointSource } from '../../language/memory/vector-index.ts';
import { inTransaction, type Sql } from '../../storage/database.ts';
import type { MemoryType, MemoryViewer } from '../../storage/queries/memory-collections.ts';
import type { MetadataCondition } from '../../storage/queries/memory-filter.ts';
import { keywordHits } from '../../storage/queries/memory-keywords.ts';
import { parseKeywordQuery } from '../../storage/queries/memory-query.ts';
import {
  addedPoints,
  collectionsToSearch,
  type FoundUnit,
  foundUnits,
  removedUnits,
  unitsMeeting,
  unitsStillMeeting,
} from '../../storage/queries/memory-search.ts';

/** Searches memories in Postgres. */
export function createRecallStore(sql: Sql): RecallStore<MemoryViewer, MetadataCondition, FoundUnit> {
  return {
    collections: (viewer, { ids, type }) =>
      collectionsToSearch(sql, viewer, { ids, type: type as MemoryType | undefined }),
    byWords: (scope, { query, isPlain, limit, timeoutMs }) =>
      inTransaction(sql, (tx) =>
        keywordHits(tx, { ...scope, query: parseKeywordQuery(query, { plain: isPlain }), limit, timeoutMs }),
      ),
    unitsMeeting: (scope, limits) => unitsMeeting(sql, scope, limits),
    stillMeeting: async ({ query, isPlain }, { unitIds, conditions }) => {
      const parsed = parseKeywordQuery(query, { plain: isPlain });
      const isUnfiltered = conditions.length === 0 && parsed.phrases.length === 0 && parsed.excluded.length === 0;
      return isUnfiltered ? unitIds : await unitsStillMeeting(sql, { unitIds, conditions, query: parsed });
    },
    found: (viewer, unitIds) => foundUnits(sql, viewer, unitIds),
  };
}

export function createPointSource(sql: Sql, { embedder }: { embedder: string }): PointSource {
  return {
    added: (span) => addedPoints(sql, { ...span, embedder }),
    removed: (span) => removedUnits(sql, span),
  };
}
