import type { SqlOrTx } from '../database.ts';
import { isUuid } from './identifiers.ts';
import { type MemoryType, type MemoryViewer, visibleTo } from './memory-collections.ts';
import { type MetadataCondition, matchingMetadata } from './memory-filter.ts';
import { insistenceOf, type KeywordQuery, meetingQuery, type SearchScope } from './memory-query.ts';

/** A collection to search in. */
export interface SearchedCollection {
  id: string;
  type: MemoryType;
  /** Of its units: those up to it have all committed. */
  revision: bigint;
  /** Units in it. */
  units: number;
}

/** Those the viewer may see, of the type and among the ids that are given. */
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

/** What a unit that was found is, to be shown. */
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

/** Those of the units that the viewer may see, in no order. */
export async function foundUnits(sql: SqlOrTx, viewer: MemoryViewer, unitIds: readonly bigint[]): Promise<FoundUnit[]> {
  if (unitIds.length === 0) return [];
  return await sql<FoundUnit[]>`
    select u.id as unit_id, u.memory_id, u.kind, u.heading, u.text, m.title, m.metadata, c.id as collection_id, c.type, m.created_at
    from memory_units u join memories m on m.id = u.memory_id join memory_collections c on c.id = u.collection_id
    where u.id = any(${unitIds.map(String)}::bigint[]) and m.deleted_at is null and ${visibleTo(sql, viewer)}`;
}

/** Those of the units that meet the conditions and have what the query insists on. */
export async function unitsStillMeeting(
  sql: SqlOrTx,
  asked: { unitIds: readonly bigint[]; conditions: readonly MetadataCondition[]; query: KeywordQuery },
): Promise<bigint[]> {
  const { unitIds, conditions, query } = asked;
  if (unitIds.length === 0) return [];
  const rows = await sql<{ id: bigint }[]>`
    select u.id from memory_units u join memories m on m.id = u.memory_id
    where u.id = any(${unitIds.map(String)}::bigint[]) ${meetingQuery(sql, await insistenceOf(sql, query))} ${matchingMetadata(sql, conditions)}`;
  return rows.map(({ id }) => id);
}

/** Ids of units with a point that meet the conditions; null when there are more than `limit`. */
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

/** Since when and until when points of a collection changed: after the one and up to the other revision. */
interface PointSpan {
  collectionId: string;
  after: bigint;
  until: bigint;
}

/**
 * Points of an embedder that were added to a collection in that span, by revision and id; a page of them, after
 * `afterUnitId` where the revision is `after`.
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

/** Units that were removed in that span; null when that is not known any more: whoever keeps a copy begins anew. */
export async function removedUnits(sql: SqlOrTx, { collectionId, after, until }: PointSpan): Promise<bigint[] | null> {
  // The rows first: what is forgotten meanwhile is seen in what follows.
  const rows = await sql<{ unitId: bigint }[]>`
    select unit_id from memory_unit_removals
    where collection_id = ${collectionId} and revision > ${after} and revision <= ${until}`;
  const [collection] = await sql<{ removalsForgotten: bigint }[]>`
    select removals_forgotten from memory_collections where id = ${collectionId}`;
  if (collection === undefined || collection.removalsForgotten > after) return null;
  return rows.map(({ unitId }) => unitId);
}
