import type { SqlOrTx, Tx } from '../database.ts';
import { isUuid } from './identifiers.ts';
import { type MemoryViewer, visibleTo } from './memory-collections.ts';
import { storableText } from './memory-text.ts';
import { addUnits, removeUnitsOfFacts, type UnitPoint } from './memory-units.ts';

/** A row of `memory_facts`. */
export interface MemoryFactRow {
  id: string;
  collectionId: string;
  memoryId: string;
  category: 'fact' | 'preference';
  statement: string;
  subject: string | null;
  attribute: string | null;
  /** The earlier fact that says the same, and that is found. */
  deduplicatedInto: string | null;
  /** The later fact that says otherwise; null also when that was deleted. */
  supersededBy: string | null;
  supersededAt: Date | null;
  createdAt: Date;
}

export interface NewFact {
  id: string;
  category: 'fact' | 'preference';
  statement: string;
  /** What it is about, and what of that it tells. */
  subject: string | null;
  attribute: string | null;
  /** The current fact that says the same already, of `similarFacts`. A repetition by the letter is seen without. */
  deduplicatedInto: string | null;
  /** Current facts that it contradicts: they are kept, and found no more. */
  supersedes: readonly string[];
  point: UnitPoint | null;
}

interface FactOwner {
  id: string;
  collectionId: string;
  title: string | null;
}

/**
 * The current facts of a collection that may say the same or the opposite: about the same attribute of the same subject,
 * or of similar letters; the most similar first, with how similar, 0 to 1.
 */
export async function similarFacts(
  sql: SqlOrTx,
  query: { collectionId: string; statement: string; subject: string | null; attribute: string | null; limit: number },
): Promise<(MemoryFactRow & { similarity: number })[]> {
  const { collectionId, subject, attribute, limit } = query;
  const statement = storableText(query.statement).slice(0, LONGEST_COMPARED);
  return await sql<(MemoryFactRow & { similarity: number })[]>`
    with found as (
      select *, similarity(statement, ${statement})::float8 as similarity from memory_facts
      where collection_id = ${collectionId} and deduplicated_into is null and superseded_at is null
        and statement % ${statement}
      union
      select *, similarity(statement, ${statement})::float8 as similarity from memory_facts
      where collection_id = ${collectionId} and deduplicated_into is null and superseded_at is null
        and lower(subject) = lower(${subject}) and lower(attribute) = lower(${attribute})
    )
    select * from found order by similarity desc, created_at, id limit ${limit}`;
}

/** Longer statements are compared by their beginnings. */
const LONGEST_COMPARED = 2_000;

/**
 * In a transaction that holds `revision` of the collection. What repeats a current fact is kept as a repetition and
 * not found; what is named in `supersedes` and still current is superseded.
 */
export async function insertFacts(
  tx: Tx,
  { memory, facts, revision, now }: { memory: FactOwner; facts: readonly NewFact[]; revision: bigint; now: Date },
): Promise<void> {
  for (const fact of facts) {
    const statement = storableText(fact.statement);
    const said = await currentFactSaying(tx, { ...fact, statement, collectionId: memory.collectionId });
    await tx`insert into memory_facts ${tx({
      id: fact.id,
      collectionId: memory.collectionId,
      memoryId: memory.id,
      category: fact.category,
      statement,
      subject: fact.subject && storableText(fact.subject),
      attribute: fact.attribute && storableText(fact.attribute),
      deduplicatedInto: said,
      createdAt: now,
    })}`;
    if (said !== null) continue;
    const unit = { kind: 'fact', factId: fact.id, text: statement, heading: null, point: fact.point } as const;
    await addUnits(tx, { memory, units: [unit], revision });
    await supersede(tx, { by: fact.id, ids: fact.supersedes, collectionId: memory.collectionId, revision, now });
  }
}

/** All that was known about the matter of one fact: what superseded it, and what it superseded, newest first. */
export async function historyOfFact(sql: SqlOrTx, viewer: MemoryViewer, id: string): Promise<MemoryFactRow[]> {
  if (!isUuid(id)) return [];
  return await sql<MemoryFactRow[]>`
    with recursive earlier as (
      select f.id from memory_facts f join memory_collections c on c.id = f.collection_id
      where f.id = ${id} and ${visibleTo(sql, viewer)}
      union
      select f.id from memory_facts f join earlier on f.superseded_by = earlier.id
    ), later as (
      select f.id, f.superseded_by from memory_facts f join memory_collections c on c.id = f.collection_id
      where f.id = ${id} and ${visibleTo(sql, viewer)}
      union
      select f.id, f.superseded_by from memory_facts f join later on f.id = later.superseded_by
    )
    select f.* from memory_facts f where f.id in (select id from earlier union select id from later)
    order by f.created_at desc, f.id`;
}

/** Those drawn from one memory, in the order in which they were, also repeated and superseded ones. */
export async function factsOfMemory(sql: SqlOrTx, viewer: MemoryViewer, memoryId: string): Promise<MemoryFactRow[]> {
  if (!isUuid(memoryId)) return [];
  return await sql<MemoryFactRow[]>`
    select f.* from memory_facts f join memory_collections c on c.id = f.collection_id
    where f.memory_id = ${memoryId} and ${visibleTo(sql, viewer)} order by f.created_at, f.id`;
}

/**
 * Of a memory that is deleted, whose units are removed already. Of each fact that others repeated, the first of
 * those is current in its place.
 */
export async function removeFactsOf(
  tx: Tx,
  { memoryId, revision }: { memoryId: string; revision: bigint },
): Promise<void> {
  const heirs = await tx<(MemoryFactRow & { title: string | null; inherits: string; current: boolean })[]>`
    select distinct on (repeated.id) heir.*, m.title, repeated.id as inherits, repeated.superseded_at is null as current
    from memory_facts repeated
    join memory_facts heir on heir.deduplicated_into = repeated.id and heir.memory_id <> ${memoryId}
    join memories m on m.id = heir.memory_id
    where repeated.memory_id = ${memoryId} order by repeated.id, heir.created_at, heir.id`;
  for (const { title, inherits, current, ...heir } of heirs) {
    await tx`update memory_facts set deduplicated_into = ${heir.id} where deduplicated_into = ${inherits} and id <> ${heir.id}`;
    await tx`update memory_facts set superseded_by = ${heir.id} where superseded_by = ${inherits}`;
    await tx`
      update memory_facts heir set deduplicated_into = null, superseded_by = dead.superseded_by, superseded_at = dead.superseded_at
      from memory_facts dead where heir.id = ${heir.id} and dead.id = ${inherits}`;
    if (!current) continue;
    const memory = { id: heir.memoryId, collectionId: heir.collectionId, title };
    // Whoever makes missing points makes this one.
    const unit = { kind: 'fact', factId: heir.id, text: heir.statement, heading: null, point: null } as const;
    await addUnits(tx, { memory, units: [unit], revision });
  }
  await tx`
    update memory_facts set deduplicated_into = null
    where deduplicated_into in (select id from memory_facts where memory_id = ${memoryId}) and memory_id = ${memoryId}`;
  await tx`delete from memory_facts where memory_id = ${memoryId}`;
}

/** The current fact of the collection that says it: the one that was named, or one of the same letters. */
async function currentFactSaying(
  tx: Tx,
  fact: { id: string; collectionId: string; statement: string; deduplicatedInto: string | null },
): Promise<string | null> {
  const [said] = await tx<{ id: string }[]>`
    select id from memory_facts
    where collection_id = ${fact.collectionId} and deduplicated_into is null and superseded_at is null
      and (id = ${fact.deduplicatedInto} or md5(lower(statement)) = md5(lower(${fact.statement})))
    order by id = ${fact.deduplicatedInto} desc, created_at, id limit 1`;
  return said?.id ?? null;
}

async function supersede(
  tx: Tx,
  change: { by: string; ids: readonly string[]; collectionId: string; revision: bigint; now: Date },
): Promise<void> {
  const { by, ids, collectionId, revision, now } = change;
  if (ids.length === 0) return;
  const superseded = await tx<{ id: string }[]>`
    update memory_facts set superseded_by = ${by}, superseded_at = ${now}
    where id = any(${ids as string[]}::uuid[]) and id <> ${by} and collection_id = ${collectionId}
      and deduplicated_into is null and superseded_at is null
    returning id`;
  await removeUnitsOfFacts(tx, { factIds: superseded.map(({ id }) => id), collectionId, revision, now });
}
