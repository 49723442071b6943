import { inTransaction, type Sql, type SqlOrTx, type Tx } from '../database.ts';

/** Copies of points for pgvector, one table per number of dimensions. They are deleted with their units. */
export interface VectorTable {
  embedder: string;
  dimensions: number;
}

export interface VectorCollection extends VectorTable {
  collectionId: string;
}

/** Limit of pgvector's `hnsw` for `halfvec`. */
export const MOST_VECTOR_DIMENSIONS = 4_000;
/** First version with iterative scans, which continue until they find enough. */
const OLDEST_PGVECTOR = [0, 8];
const VECTORS_LOCK = 0x7ec7;

/** Checks whether this database has pgvector, and if not, why. Changes nothing. */
export async function findPgvector(
  sql: SqlOrTx,
): Promise<{ version: string; isInstalled: boolean } | { missing: string }> {
  const [extension] = await sql<{ version: string; isInstalled: boolean }[]>`
    select coalesce(installed_version, default_version) as version, installed_version is not null as is_installed
    from pg_available_extensions where name = 'vector'`;
  if (extension === undefined) return { missing: 'the server has no extension vector' };
  const [major = 0, minor = 0] = extension.version.split('.').map(Number);
  const isOld = major < OLDEST_PGVECTOR[0]! || (major === OLDEST_PGVECTOR[0] && minor < OLDEST_PGVECTOR[1]!);
  if (isOld) return { missing: `pgvector ${extension.version} is older than ${OLDEST_PGVECTOR.join('.')}` };
  return extension;
}

/**
 * Creates the extension if missing, and the table of copies. Nodes that start together wait for one another. Not a
 * migration, because some servers lack the extension.
 */
export async function preparePgvector(sql: Sql): Promise<{ version: string } | { missing: string }> {
  try {
    return await inTransaction(sql, async (tx) => {
      await tx`select pg_advisory_xact_lock(${VECTORS_LOCK}::int, 0)`;
      const found = await findPgvector(tx);
      if ('missing' in found) return found;
      if (!found.isInstalled) await tx`create extension vector`;
      await tx`
        create table if not exists memory_vector_copies (
          collection_id uuid not null references memory_collections (id) on delete cascade,
          embedder text not null,
          dimensions integer not null,
          -- The last change that is copied: all up to that unit of that revision.
          revision bigint not null,
          unit_id bigint not null,
          -- Where the points are on average, each of length 1, and of how many that is.
          mean real[],
          points integer not null,
          -- Copied since then.
          points_since integer not null,
          primary key (collection_id, embedder, dimensions)
        )`;
      return { version: found.version };
    });
  } catch (error) {
    if ((error as { code?: unknown }).code !== INSUFFICIENT_PRIVILEGE) throw error;
    return { missing: 'the role may not create the extension vector: an administrator has to, once' };
  }
}

const INSUFFICIENT_PRIVILEGE = '42501';

/** Call `preparePgvector` first. */
export async function createVectorTable(sql: Sql, { dimensions }: Pick<VectorTable, 'dimensions'>): Promise<void> {
  const name = tableName({ dimensions });
  await inTransaction(sql, async (tx) => {
    await tx`select pg_advisory_xact_lock(${VECTORS_LOCK}::int, 0)`;
    const [column] = await tx`
      select 1 from pg_attribute where attrelid = to_regclass(${name}) and attname = 'point' and not attisdropped`;
    if (column !== undefined) return;
    // A table may have lost its points with the extension, or be missing from a backup. Then nothing counts as copied.
    await tx.unsafe(`drop table if exists ${name}`);
    await tx`delete from memory_vector_copies where dimensions = ${dimensions}`;
    // Points are deleted with their units, in the same transaction.
    await tx.unsafe(`
      create table ${name} (
        unit_id bigint primary key references memory_units (id) on delete cascade,
        collection_id uuid not null,
        memory_id uuid not null,
        embedder text not null,
        point halfvec(${dimensions}) not null
      )`);
    await tx.unsafe(`create index ${name}_collection on ${name} (collection_id)`);
  });
}

export interface VectorCopy {
  revision: bigint;
  /** Mean of the points, each of length 1; null before `measureVectors`. */
  mean: number[] | null;
  points: number;
  pointsSince: number;
  /** Complete up to the requested revision. */
  isComplete: boolean;
}

/**
 * Copies the next points changed up to a revision. Locks the collection like every change of its units, so that none is
 * deleted during the copy.
 */
export async function copyVectors(
  sql: Sql,
  collection: VectorCollection,
  { until, limit }: { until: bigint; limit: number },
): Promise<VectorCopy> {
  const { collectionId, embedder, dimensions } = collection;
  return await inTransaction(sql, async (tx) => {
    await tx`select id from memory_collections where id = ${collectionId} for no key update`;
    await tx`
      insert into memory_vector_copies (collection_id, embedder, dimensions, revision, unit_id, points, points_since)
      select id, ${embedder}, ${dimensions}, -1, 0, 0, 0 from memory_collections where id = ${collectionId}
      on conflict do nothing`;
    const [before] = await tx<(Omit<VectorCopy, 'isComplete'> & { unitId: bigint })[]>`
      select revision, unit_id, mean, points, points_since from memory_vector_copies where ${isOf(tx, collection)}`;
    if (before === undefined) throw new Error('the collection is gone');
    if (before.revision > until || (before.revision === until && before.unitId === LAST_UNIT)) {
      return { ...before, isComplete: true };
    }
    const [page] = await tx<{ read: number; copied: number; revision: bigint | null; unitId: bigint | null }[]>`
      with page as materialized (
        select id, memory_id, revision, embedding from memory_units
        where collection_id = ${collectionId} and embedding is not null and embedder = ${embedder}
          and (revision, id) > (${before.revision}, ${before.unitId}) and revision <= ${until}
        order by revision, id limit ${limit}
      ), copied as (
        insert into ${tx(tableName(collection))} as known (unit_id, collection_id, memory_id, embedder, point)
        select id, ${collectionId}, memory_id, ${embedder},
          -- A byte is signed.
          array(select ((get_byte(embedding, at) + 128) & 255) - 128 from generate_series(0, ${dimensions - 1}) as at)::halfvec
        from page where octet_length(embedding) = ${dimensions} and embedding <> ${Buffer.alloc(dimensions)}
        on conflict (unit_id) do update
          set collection_id = excluded.collection_id, memory_id = excluded.memory_id, embedder = excluded.embedder,
            point = excluded.point
        returning 1
      ), last as (select revision, id from page order by revision desc, id desc limit 1)
      select (select count(*)::int from page) as read, (select count(*)::int from copied) as copied,
        (select revision from last) as revision, (select id from last) as unit_id`;
    const { read, copied, revision, unitId } = page!;
    const isComplete = read < limit;
    const reached = isComplete ? { revision: until, unitId: LAST_UNIT } : { revision: revision!, unitId: unitId! };
    await tx`
      update memory_vector_copies set revision = ${reached.revision}, unit_id = ${reached.unitId},
        points_since = points_since + ${copied} where ${isOf(tx, collection)}`;
    const { mean, points, pointsSince } = before;
    return { mean, points, pointsSince: pointsSince + copied, revision: reached.revision, isComplete };
  });
}

const LAST_UNIT = 2n ** 63n - 1n;

export async function measureVectors(sql: Sql, collection: VectorCollection): Promise<void> {
  await sql`
    update memory_vector_copies set (points, mean, points_since) = (
      select count(*), avg(l2_normalize(point)::vector)::real[], 0 from ${sql(tableName(collection))}
      where collection_id = ${collection.collectionId} and embedder = ${collection.embedder}
    ) where ${isOf(sql, collection)}`;
}

/**
 * Builds the index of one collection without blocking others. Each collection has its own, so that others' points do
 * not affect it. False: another node is building it. Rejects soon after the signal aborts.
 */
export async function indexVectors(
  sql: Sql,
  collection: VectorCollection & { points: number },
  signal: AbortSignal,
): Promise<boolean> {
  const index = indexName(collection);
  const connection = await sql.reserve();
  try {
    const [lock] = await connection<{ isOurs: boolean }[]>`
      select pg_try_advisory_lock(${VECTORS_LOCK}::int, hashtext(${index})) as is_ours`;
    if (!lock!.isOurs) return false;
    const [existing] = await connection<{ indisvalid: boolean }[]>`
      select indisvalid from pg_index where indexrelid = to_regclass(${index})`;
    if (existing?.indisvalid) return true;
    // An earlier build did not finish.
    if (existing !== undefined) await connection.unsafe(`drop index concurrently if exists ${index}`);
    signal.throwIfAborted();
    // In one process, because containers have little shared memory.
    const kilobytes = Math.min(
      LARGEST_BUILD_KB,
      Math.ceil((collection.points * (3 * collection.dimensions + 600)) / 1024),
    );
    await connection.unsafe(`
      set max_parallel_maintenance_workers = 0; set statement_timeout = 0;
      select set_config('maintenance_work_mem', greatest(${kilobytes}, setting::int) || 'kB', false)
      from pg_settings where name = 'maintenance_work_mem'`);
    const made = connection.unsafe(`
      create index concurrently ${index} on ${tableName(collection)} using hnsw (point halfvec_cosine_ops)
      with (m = 16, ef_construction = 128) where collection_id = '${uuidOf(collection)}'`);
    const cancel = () => made.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      await made;
    } finally {
      signal.removeEventListener('abort', cancel);
    }
    return true;
  } finally {
    await connection
      .unsafe('select pg_advisory_unlock_all(); reset all')
      .then(() => connection.release())
      .catch(() => connection.release());
  }
}

const LARGEST_BUILD_KB = 1_048_576;

export async function isIndexed(sql: SqlOrTx, collection: VectorCollection): Promise<boolean> {
  const [row] = await sql`
    select 1 from pg_index where indexrelid = to_regclass(${indexName(collection)}) and indisvalid`;
  return row !== undefined;
}

export interface NearVector {
  unitId: bigint;
  memoryId: string;
  /** From -1 to 1. */
  cosine: number;
}

/** Returns the `count` units nearest to a point, nearest first, as found by the collection's index. */
export async function nearestVectors(
  sql: Sql,
  collection: VectorCollection,
  { query, count, timeoutMs }: { query: readonly number[]; count: number; timeoutMs: number },
): Promise<NearVector[]> {
  return await inTransaction(sql, async (tx) => {
    // Without sorting, the planner must use the index, whatever the statistics.
    await tx.unsafe(`
      set local hnsw.ef_search = ${EF_SEARCH};
      set local hnsw.iterative_scan = relaxed_order; set local hnsw.max_scan_tuples = 100000;
      set local enable_sort = off; set local statement_timeout = ${Math.ceil(timeoutMs)}`);
    const rows = await tx.unsafe<NearVector[]>(
      `select unit_id, memory_id, 1 - (point <=> $1::halfvec) as cosine from ${tableName(collection)}
       where collection_id = '${uuidOf(collection)}' and embedder = $2 order by point <=> $1::halfvec limit ${count}`,
      [vectorText(query), collection.embedder],
    );
    return rows.toSorted((a, b) => b.cosine - a.cosine || Number(a.unitId - b.unitId));
  });
}

/** The maximum: with 500, search finds fewer of the default embedder's nearest points. */
const EF_SEARCH = 1_000;

/** Returns the nearest unit of each of the `limit` nearest memories, comparing all points, or only those in `among`. */
export async function comparedVectors(
  sql: Sql,
  collection: VectorCollection,
  { query, among, limit, timeoutMs }: ComparedVectors,
): Promise<NearVector[]> {
  const point = vectorText(query);
  return await inTransaction(sql, async (tx) => {
    await tx.unsafe(`set local statement_timeout = ${Math.ceil(timeoutMs)}`);
    return await tx<NearVector[]>`
    select * from (
      select distinct on (memory_id) unit_id, memory_id, 1 - (point <=> ${point}::halfvec) as cosine
      from ${tx(tableName(collection))}
      where collection_id = ${collection.collectionId} and embedder = ${collection.embedder}
        ${among === null ? tx`` : tx`and unit_id = any(${among.map(String)}::bigint[])`}
      order by memory_id, point <=> ${point}::halfvec, unit_id
    ) as best order by cosine desc, unit_id limit ${limit}`;
  });
}

export interface ComparedVectors {
  query: readonly number[];
  among: readonly bigint[] | null;
  limit: number;
  timeoutMs: number;
}

export async function dropVectorsOfDeleted(sql: Sql): Promise<void> {
  const indexes = await sql<{ name: string; collectionId: string }[]>`
    select i.relname as name, c.id as collection_id from pg_class i
    join memory_collections c on i.relname like 'memory\_vectors\_%\_' || replace(c.id::text, '-', '')
    where i.relkind = 'i' and c.deleted_at is not null and pg_table_is_visible(i.oid)`;
  for (const { name, collectionId } of indexes) {
    await sql`drop index concurrently if exists ${sql(name)}`;
    await sql`delete from memory_vector_copies where collection_id = ${collectionId}`;
  }
}

function isOf(sql: SqlOrTx | Tx, { collectionId, embedder, dimensions }: VectorCollection) {
  return sql`collection_id = ${collectionId} and embedder = ${embedder} and dimensions = ${dimensions}`;
}

function tableName({ dimensions }: Pick<VectorTable, 'dimensions'>): string {
  if (!Number.isInteger(dimensions) || dimensions < 1) throw new RangeError('dimensions are counted');
  return `memory_vectors_${dimensions}`;
}

function indexName(collection: VectorCollection): string {
  return `${tableName(collection)}_${uuidOf(collection).replaceAll('-', '')}`;
}

/** Validates an id for use in a statement, because a partial index is used only if its condition is spelled out. */
function uuidOf({ collectionId }: VectorCollection): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(collectionId)) throw new RangeError('no id of a collection');
  return collectionId;
}

function vectorText(query: readonly number[]): string {
  return `[${query.join(',')}]`;
}
