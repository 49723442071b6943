import type { SqlOrTx } from '../database.ts';
import { isUuid } from './identifiers.ts';
import { type MemoryType, type MemoryViewer, visibleTo } from './memory-collections.ts';
import { type MetadataCondition, matchingMetadata } from './memory-filter.ts';
import { type KeywordQuery, keywordConstraints, matchingConstraints, type SearchScope } from './memory-query.ts';

export interface SearchedCollection {
  id: string;
  type: MemoryType;
  /** All units up to this revision are committed. */
  revision: bigint;
  units: number;
}

/** Returns collections that the viewer may see, optionally by type and id. */
export async function collectionsToSearch(
  sql: SqlOrTx,
  viewer: MemoryViewer,
  { ids, type }: { ids?: readonly string[] | undefined; type?: MemoryType | undefined },
): Promise<SearchedCollection[]> {
  const uuids = ids?.filter(isUuid);
  return await sql<SearchedCollection[]>`
    select c.id, c.type, c.revision, c.units from memory_collections c where ${visibleTo(sql, viewer)}
    ${uuids === undefined ? sql`` : sql`and c.id = any(${uuids}::uuid[])`}
    ${type === undefined ? sql`` : sql`and c.type = ${type}`}`;
}

export interface FoundUnit {
  unitId: bigint;
  memoryId: string;
  kind: 'whole' | 'chunk' | 'fact';
  heading: string | null;
  text: string;
  title: string | null;
  metadata: Record<string, unknown>;
  collectionId: string;
  type: MemoryType;
  createdAt: Date;
}

export async function foundUnits(sql: SqlOrTx, viewer: MemoryViewer, unitIds: readonly bigint[]): Promise<FoundUnit[]> {
  if (unitIds.length === 0) return [];
  return await sql<FoundUnit[]>`
    select u.id as unit_id, u.memory_id, u.kind, u.heading, u.text, m.title, m.metadata, c.id as collection_id, c.type, m.created_at
    from memory_units u join memories m on m.id = u.memory_id join memory_collections c on c.id = u.collection_id
    where u.id = any(${unitIds.map(String)}::bigint[]) and m.deleted_at is null and ${visibleTo(sql, viewer)}`;
}

/** Returns the given units that match the conditions and the query's phrases. */
export async function unitsStillMeeting(
  sql: SqlOrTx,
  asked: { unitIds: readonly bigint[]; conditions: readonly MetadataCondition[]; query: KeywordQuery },
): Promise<bigint[]> {
  const { unitIds, conditions, query } = asked;
  if (unitIds.length === 0) return [];
  const rows = await sql<{ id: bigint }[]>`
    select u.id from memory_units u join memories m on m.id = u.memory_id
    where u.id = any(${unitIds.map(String)}::bigint[]) ${matchingConstraints(sql, await keywordConstraints(sql, query))} ${matchingMetadata(sql, conditions)}`;
  return rows.map(({ id }) => id);
}

/** Ids of units with a point that match the conditions; null if there are more than `limit`. */
export async function unitsMeeting(
  sql: SqlOrTx,
  { collectionIds, conditions }: SearchScope,
  { limit }: { limit: number },
): Promise<bigint[] | null> {
  const rows = await sql<{ id: bigint }[]>`
    select u.id from memory_units u join memories m on m.id = u.memory_id
    where u.collection_id = any(${collectionIds as string[]}::uuid[]) and u.embedding is not null
    ${matchingMetadata(sql, conditions)} limit ${limit + 1}`;
  return rows.length > limit ? null : rows.map(({ id }) => id);
}

export interface PointChange {
  unitId: bigint;
  memoryId: string;
  bytes: Uint8Array;
  revision: bigint;
}

/** Changes of points in a collection: after one revision, up to another. */
interface PointSpan {
  collectionId: string;
  after: bigint;
  until: bigint;
}

/**
 * Returns one page of an embedder's points added in that span, by revision and id. It continues after `afterUnitId`
 * within revision `after`.
 */
export async function addedPoints(
  sql: SqlOrTx,
  span: PointSpan & { afterUnitId: bigint; embedder: string; limit: number },
): Promise<PointChange[]> {
  const { collectionId, after, afterUnitId, until, embedder, limit } = span;
  return await sql<PointChange[]>`
    select id as unit_id, memory_id, embedding as bytes, revision from memory_units
    where collection_id = ${collectionId} and embedding is not null and (revision, id) > (${after}, ${afterUnitId})
      and revision <= ${until} and embedder = ${embedder}
    order by revision, id limit ${limit}`;
}

/** Returns units removed in that span; null if the record is gone, so that a copy must be rebuilt. */
export async function removedUnits(sql: SqlOrTx, { collectionId, after, until }: PointSpan): Promise<bigint[] | null> {
  // Rows first: the next query then shows whether any were deleted meanwhile.
  const rows = await sql<{ unitId: bigint }[]>`
    select unit_id from memory_unit_removals
    where collection_id = ${collectionId} and revision > ${after} and revision <= ${until}`;
  const [collection] = await sql<{ removalsForgotten: bigint }[]>`
    select removals_forgotten from memory_collections where id = ${collectionId}`;
  if (collection === undefined || collection.removalsForgotten > after) return null;
  return rows.map(({ unitId }) => unitId);
}
