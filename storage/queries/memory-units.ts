import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { storableText } from './memory-text.ts';

/** A point and its embedder. `language/memory/` defines the bytes. */
export interface UnitPoint {
  /** `name` of the embedder; points of different ones cannot be compared. */
  embedder: string;
  bytes: Uint8Array;
}

export interface NewUnit {
  kind: 'whole' | 'chunk';
  text: string;
  /** Headings above it. */
  heading: string | null;
  /** Null: found only by keyword until the background job embeds it (`unitsWithoutPoint`). */
  point: UnitPoint | null;
}

/** Unit of a fact; its text is the statement. */
export interface FactUnit extends Omit<NewUnit, 'kind'> {
  kind: 'fact';
  factId: string;
}

interface UnitOwner {
  id: string;
  collectionId: string;
  title: string | null;
}

/** Words of a longer text would not fit into a `tsvector`. */
const WHOLE_UNIT_CHARACTERS = 12_000;

/** Longer words are found, but neither counted nor corrected. */
const LONGEST_COUNTED_WORD = 64;

/** Splits a text into units, at blanks if possible. */
export function wholeUnits(content: string): NewUnit[] {
  const units: NewUnit[] = [];
  for (let start = 0; start < content.length; ) {
    let end = Math.min(content.length, start + WHOLE_UNIT_CHARACTERS);
    if (end < content.length) {
      const blank = content.lastIndexOf(' ', end);
      if (blank > start + WHOLE_UNIT_CHARACTERS / 2) end = blank;
    }
    units.push({ kind: 'whole', text: content.slice(start, end), heading: null, point: null });
    start = end;
  }
  // A title alone is found too.
  return units.length > 0 ? units : [{ kind: 'whole', text: '', heading: null, point: null }];
}

/** Adds the units of one memory in order. The transaction has taken `revision` with `nextRevision`. */
export async function addUnits(
  tx: Tx,
  { memory, units, revision }: { memory: UnitOwner; units: readonly (NewUnit | FactUnit)[]; revision: bigint },
): Promise<void> {
  await addUnitsOf(tx, { collectionId: memory.collectionId, added: [{ memory, units }], revision });
}

interface UnitsOfCollection {
  collectionId: string;
  added: readonly { memory: Omit<UnitOwner, 'collectionId'>; units: readonly (NewUnit | FactUnit)[] }[];
  revision: bigint;
}

/** Adds units of several memories of a collection; counts shared words once. */
export async function addUnitsOf(tx: Tx, { collectionId, added, revision }: UnitsOfCollection): Promise<void> {
  const rows = added.flatMap(({ memory, units }) =>
    units.map((unit, position) => ({
      memory_id: memory.id,
      title: memory.title,
      kind: unit.kind,
      fact_id: unit.kind === 'fact' ? unit.factId : null,
      position,
      heading: unit.heading === null ? null : storableText(unit.heading),
      text: storableText(unit.text),
      embedder: unit.point?.embedder ?? null,
      embedding: unit.point === null ? null : Buffer.from(unit.point.bytes).toString('base64'),
    })),
  );
  if (rows.length === 0) return;
  await tx`
    with added as (
      insert into memory_units (collection_id, memory_id, kind, fact_id, position, heading, text, terms, embedder, embedding, revision)
      select ${collectionId}, memory_id, kind, fact_id, position, heading, text,
        memory_terms(title, heading, text), embedder, decode(embedding, 'base64'), ${revision}
      from jsonb_to_recordset(${tx.json(rows)}) as unit
        (memory_id uuid, title text, kind text, fact_id uuid, position int, heading text, text text, embedder text, embedding text)
      returning terms
    ), counted as (
      update memory_collections set units = units + ${rows.length} where id = ${collectionId}
    )
    insert into memory_words as known (collection_id, word, units)
    select ${collectionId}, word, count(*) from added, unnest(tsvector_to_array(terms)) as word
    where char_length(word) <= ${LONGEST_COUNTED_WORD}
    group by word order by word
    on conflict (collection_id, word) do update set units = known.units + excluded.units`;
}

/** Updates a memory's units to its new title. Embeddings do not include titles and stay. */
export async function retitleUnitsOf(
  tx: Tx,
  { memory, revision, now }: { memory: UnitOwner; revision: bigint; now: Date },
): Promise<void> {
  const { id: memoryId, collectionId } = memory;
  const rows = await tx<StoredUnit[]>`
    select kind, fact_id, text, heading, embedder, embedding from memory_units
    where memory_id = ${memoryId} order by position, id`;
  await removeUnitsOf(tx, { memoryId, collectionId, revision, now });
  for (const units of Map.groupBy(rows, ({ kind }) => kind).values()) {
    await addUnits(tx, { memory, units: units.map(unitOf), revision });
  }
}

interface StoredUnit {
  kind: 'whole' | 'chunk' | 'fact';
  factId: string | null;
  text: string;
  heading: string | null;
  embedder: string | null;
  embedding: Buffer | null;
}

function unitOf({ kind, factId, text, heading, embedder, embedding }: StoredUnit): NewUnit | FactUnit {
  const point = embedder === null || embedding === null ? null : { embedder, bytes: embedding };
  return kind === 'fact' ? { kind, factId: factId!, text, heading, point } : { kind, text, heading, point };
}

interface UnitsRemoval {
  collectionId: string;
  /** From `nextRevision` in this transaction. */
  revision: bigint;
  now: Date;
}

export async function removeUnitsOf(
  tx: Tx,
  { memoryId, ...removal }: UnitsRemoval & { memoryId: string },
): Promise<void> {
  await removeUnits(tx, removal, tx`memory_id = ${memoryId}`);
}

export async function removeUnitsOfFacts(
  tx: Tx,
  { factIds, ...removal }: UnitsRemoval & { factIds: readonly string[] },
): Promise<void> {
  if (factIds.length > 0) await removeUnits(tx, removal, tx`fact_id = any(${factIds as string[]}::uuid[])`);
}

async function removeUnits(tx: Tx, { collectionId, revision, now }: UnitsRemoval, condition: ReturnType<Tx>) {
  await tx`
    with removed as (delete from memory_units where ${condition} returning id, terms),
    logged as (
      insert into memory_unit_removals (collection_id, revision, unit_id, removed_at)
      select ${collectionId}, ${revision}, id, ${now} from removed
    ),
    counted as (
      update memory_collections set units = units - (select count(*) from removed) where id = ${collectionId}
    ),
    words as (select word, count(*) as units from removed, unnest(tsvector_to_array(terms)) as word group by word),
    -- Delete words that no remaining unit has.
    forgotten as (
      delete from memory_words known using words
      where known.collection_id = ${collectionId} and known.word = words.word and known.units <= words.units
    )
    update memory_words known set units = known.units - words.units
    from words where known.collection_id = ${collectionId} and known.word = words.word and known.units > words.units`;
}

export interface UnitWithoutPoint {
  id: bigint;
  collectionId: string;
  heading: string | null;
  text: string;
}

/**
 * Units of processed memories without a point of this embedder, because the embedder was changed or failed. Returns
 * those after id `after`, in order of id. The query tests inequality as below or above, so that it can use an index.
 */
export async function unitsWithoutPoint(
  sql: SqlOrTx,
  { embedder, after, limit }: { embedder: string; after: bigint; limit: number },
): Promise<UnitWithoutPoint[]> {
  return await sql<UnitWithoutPoint[]>`
    select id, collection_id, heading, text from memory_units
    where kind <> 'whole' and id > ${after}
      and (embedder is null or embedder < ${embedder} or embedder > ${embedder})
    order by id limit ${limit}`;
}

/** Stores points, in a transaction that has taken `revision`. Skips units deleted meanwhile. */
export async function setUnitPoints(
  tx: Tx,
  {
    collectionId,
    points,
    revision,
  }: { collectionId: string; points: readonly (UnitPoint & { id: bigint })[]; revision: bigint },
): Promise<void> {
  const rows = points.map(({ id, embedder, bytes }) => ({
    id: id.toString(),
    embedder,
    embedding: Buffer.from(bytes).toString('base64'),
  }));
  await tx`
    update memory_units unit set embedder = point.embedder, embedding = decode(point.embedding, 'base64'), revision = ${revision}
    from jsonb_to_recordset(${tx.json(rows)}) as point (id bigint, embedder text, embedding text)
    where unit.id = point.id and unit.collection_id = ${collectionId}`;
}

/**
 * Deletes one collection's records of units removed before `before`; copies of points that are older must be rebuilt.
 * Returns the number of deleted records, at most `limit`; 0 if no collection has any.
 */
export async function forgetUnitRemovals(
  sql: SqlOrTx,
  { before, limit }: { before: Date; limit: number },
): Promise<number> {
  return await inTransaction(sql, async (tx) => {
    const [oldest] = await tx<{ collectionId: string }[]>`
      select collection_id from memory_unit_removals where removed_at < ${before} order by removed_at limit 1`;
    if (oldest === undefined) return 0;
    const { collectionId } = oldest;
    // First, as in every change of a collection's content.
    await tx`select id from memory_collections where id = ${collectionId} for no key update`;
    const [row] = await tx<{ forgotten: number }[]>`
      with forgotten as (
        delete from memory_unit_removals where (collection_id, revision, unit_id) in (
          select collection_id, revision, unit_id from memory_unit_removals
          where collection_id = ${collectionId} and removed_at < ${before} order by revision limit ${limit}
        ) returning revision
      ), latest as (
        update memory_collections c set removals_forgotten = greatest(c.removals_forgotten, f.revision)
        from (select max(revision) as revision from forgotten) f
        where c.id = ${collectionId} and f.revision is not null
      )
      select count(*)::int as forgotten from forgotten`;
    return row!.forgotten;
  });
}
