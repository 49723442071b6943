import type { SqlOrTx } from '../database.ts';
import { isUuid } from './identifiers.ts';
import type { MemoryListQuery, MemoryWithCollection } from './memories.ts';
import { type MemoryViewer, visibleTo } from './memory-collections.ts';
import { matchingMetadata } from './memory-filter.ts';
import { offsetOf, type PageOf } from './paging.ts';

/** A memory in a list, with only the start of its text. */
export type MemoryHead = Omit<MemoryWithCollection, 'content' | 'contentHash'> & { excerpt: string };

const EXCERPT_CHARACTERS = 200;

/** Null: the viewer may see no such memory. */
export async function findMemoryHead(sql: SqlOrTx, viewer: MemoryViewer, id: string): Promise<MemoryHead | null> {
  if (!isUuid(id)) return null;
  const [row] = await sql<MemoryHead[]>`
    select ${headColumns(sql)} from memories m join memory_collections c on c.id = m.collection_id
    where m.id = ${id} and m.deleted_at is null and ${visibleTo(sql, viewer)}`;
  return row ?? null;
}

/** Newest first. Does not read whole texts, which may be megabytes. */
export async function listMemoryHeads(
  sql: SqlOrTx,
  viewer: MemoryViewer,
  query: MemoryListQuery,
): Promise<PageOf<MemoryHead>> {
  const { collectionId, type, status, conditions = [], limit } = query;
  if (collectionId !== undefined && !isUuid(collectionId)) return { rows: [], total: 0 };
  const collections = sql`
    (select c.* from memory_collections c where ${visibleTo(sql, viewer)}
      ${collectionId === undefined ? sql`` : sql`and c.id = ${collectionId}`}
      ${type === undefined ? sql`` : sql`and c.type = ${type}`}) c`;
  const ofCollection = sql`
    from memories m where m.collection_id = c.id and m.deleted_at is null
    ${status === undefined ? sql`` : sql`and m.status = ${status}`}
    ${matchingMetadata(sql, conditions)}`;
  // Read the newest of each collection from an index; there is none across collections.
  const rows = await sql<MemoryHead[]>`
    with page as (
      select newest.* from ${collections} cross join lateral (
        select m.id, m.created_at ${ofCollection} order by m.created_at desc, m.id limit ${offsetOf(query) + limit}
      ) newest
      order by newest.created_at desc, newest.id limit ${limit} offset ${offsetOf(query)}
    )
    select ${headColumns(sql)}
    from page join memories m on m.id = page.id join memory_collections c on c.id = m.collection_id
    order by m.created_at desc, m.id`;
  const [count] = await sql<{ total: number }[]>`
    select coalesce(sum(counted.total), 0)::int as total
    from ${collections} cross join lateral (select count(*) as total ${ofCollection}) counted`;
  return { rows, total: count?.total ?? 0 };
}

function headColumns(sql: SqlOrTx) {
  return sql`
    m.id, m.workspace_id, m.collection_id, m.user_id, m.api_key_id, m.title, m.metadata, m.infer, m.source,
    m.status, m.stage, m.attempts, m.next_attempt_at, m.leased_until, m.error_code, m.error, m.processed_as,
    m.deduplicated_into, m.characters, m.created_at, m.updated_at, m.ready_at,
    left(m.content, ${EXCERPT_CHARACTERS}) as excerpt, c.type, c.label as collection_label`;
}
