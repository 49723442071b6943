import type { SqlOrTx } from '../database.ts';
import { isUuid } from './identifiers.ts';
import type { MemoryListQuery, MemoryWithCollection } from './memories.ts';
import { type MemoryViewer, visibleTo } from './memory-collections.ts';
import { offsetOf, type PageOf } from './paging.ts';

/** A memory in a list: of what it says only the beginning. */
export type MemoryHead = Omit<MemoryWithCollection, 'content' | 'contentHash'> & { excerpt: string };

const EXCERPT_CHARACTERS = 200;

/** Null: there is none that the viewer may see. */
export async function findMemoryHead(sql: SqlOrTx, viewer: MemoryViewer, id: string): Promise<MemoryHead | null> {
  if (!isUuid(id)) return null;
  const [row] = await sql<MemoryHead[]>`
    select ${headColumns(sql)} from memories m join memory_collections c on c.id = m.collection_id
    where m.id = ${id} and m.deleted_at is null and ${visibleTo(sql, viewer)}`;
  return row ?? null;
}

/** As `listMemories`, without reading megabytes of texts that nobody is shown. */
export async function listMemoryHeads(
  sql: SqlOrTx,
  viewer: MemoryViewer,
  query: MemoryListQuery,
): Promise<PageOf<MemoryHead>> {
  const { collectionId, type, status, limit } = query;
  if (collectionId !== undefined && !isUuid(collectionId)) return { rows: [], total: 0 };
  const matching = sql`
    from memories m join memory_collections c on c.id = m.collection_id
    where m.deleted_at is null and ${visibleTo(sql, viewer)}
    ${collectionId === undefined ? sql`` : sql`and c.id = ${collectionId}`}
    ${type === undefined ? sql`` : sql`and c.type = ${type}`}
    ${status === undefined ? sql`` : sql`and m.status = ${status}`}`;
  const rows = await sql<MemoryHead[]>`
    select ${headColumns(sql)} ${matching} order by m.created_at desc, m.id limit ${limit} offset ${offsetOf(query)}`;
  const [count] = await sql<{ total: number }[]>`select count(*)::int as total ${matching}`;
  return { rows, total: count?.total ?? 0 };
}

function headColumns(sql: SqlOrTx) {
  return sql`
    m.id, m.workspace_id, m.collection_id, m.user_id, m.api_key_id, m.title, m.metadata, m.infer, m.source,
    m.status, m.stage, m.attempts, m.next_attempt_at, m.leased_until, m.error_code, m.error, m.processed_as,
    m.deduplicated_into, m.characters, m.created_at, m.updated_at, m.ready_at,
    left(m.content, ${EXCERPT_CHARACTERS}) as excerpt, c.type, c.label as collection_label`;
}
