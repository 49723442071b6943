import type { SqlOrTx, Tx } from '../database.ts';
import { isUuid } from './identifiers.ts';
import { type MemoryViewer, visibleTo } from './memory-collections.ts';
import { ENTITY_KEYS } from './memory-filter.ts';
import { storableText } from './memory-text.ts';
import { addUnits, removeUnitsOfFacts, type UnitPoint } from './memory-units.ts';

export interface MemoryFactRow {
  id: string;
  collectionId: string;
  memoryId: string;
  category: 'fact' | 'preference';
  statement: string;
  subject: string | null;
  attribute: string | null;
  /** Earlier fact that says the same and is found instead. */
  deduplicatedInto: string | null;
  /** Later fact that contradicts this one; null also if that was deleted. */
  supersededBy: string | null;
  createdAt: Date;
}

export interface NewFact {
  id: string;
  category: 'fact' | 'preference';
  statement: string;
  subject: string | null;
  attribute: string | null;
  /** Current fact that says the same, from `similarFacts`. Exact repetitions are detected without it. */
  deduplicatedInto: string | null;
  /** Current facts that it contradicts: kept, but no longer found. */
  supersedes: readonly string[];
  point: UnitPoint | null;
}

interface FactOwner {
  id: string;
  collectionId: string;
  title: string | null;
}

/**
 * Returns current facts of a collection that may repeat or contradict a statement of a memory: with the same subject and
 * attribute, or similar text, and from a memory about the same entities. Most similar first; similarity is 0 to 1.
 */
export async function similarFacts(
  sql: SqlOrTx,
  query: {
    memoryId: string;
    collectionId: string;
    statement: string;
    subject: string | null;
    attribute: string | null;
    limit: number;
  },
): Promise<(MemoryFactRow & { similarity: number })[]> {
  const { memoryId, collectionId, subject, attribute, limit } = query;
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
    select found.* from found where ${hasEntitiesOf(sql, memoryId)} order by similarity desc, created_at, id limit ${limit}`;
}

/**
 * Condition on `memory_id`: that memory is about the same user, agent and run as the given one. Searches for others do
 * not find the given one, so it must not replace their facts.
 */
function hasEntitiesOf(sql: SqlOrTx, memoryId: string) {
  const same = ENTITY_KEYS.map(
    (key) => sql`and theirs.metadata -> ${key} is not distinct from ours.metadata -> ${key}`,
  );
  return sql`exists (
    select from memories theirs join memories ours on ours.id = ${memoryId}
    where theirs.id = memory_id ${same})`;
}

/** Compare only the start of longer statements. */
const LONGEST_COMPARED = 2_000;

/**
 * Inserts facts, in a transaction that has taken `revision`. A fact that repeats a current one is kept as a duplicate
 * and not found. Current facts in `supersedes` are superseded.
 */
export async function insertFacts(
  tx: Tx,
  { memory, facts, revision, now }: { memory: FactOwner; facts: readonly NewFact[]; revision: bigint; now: Date },
): Promise<void> {
  for (const fact of facts) {
    const statement = storableText(fact.statement);
    const duplicate = await currentDuplicate(tx, { ...fact, statement, memory });
    await tx`insert into memory_facts ${tx({
      id: fact.id,
      collectionId: memory.collectionId,
      memoryId: memory.id,
      category: fact.category,
      statement,
      subject: fact.subject && storableText(fact.subject),
      attribute: fact.attribute && storableText(fact.attribute),
      deduplicatedInto: duplicate,
      createdAt: now,
    })}`;
    if (duplicate !== null) continue;
    const unit = { kind: 'fact', factId: fact.id, text: statement, heading: null, point: fact.point } as const;
    await addUnits(tx, { memory, units: [unit], revision });
    await supersede(tx, { by: fact.id, ids: fact.supersedes, collectionId: memory.collectionId, revision, now });
  }
}

/** Returns the facts of a memory in order, including duplicates and superseded ones. */
export async function factsOfMemory(sql: SqlOrTx, viewer: MemoryViewer, memoryId: string): Promise<MemoryFactRow[]> {
  if (!isUuid(memoryId)) return [];
  return await sql<MemoryFactRow[]>`
    select f.* from memory_facts f join memory_collections c on c.id = f.collection_id
    where f.memory_id = ${memoryId} and ${visibleTo(sql, viewer)} order by f.created_at, f.id`;
}

/** Makes the first duplicate of each fact of a memory current, if another memory has it. */
export async function releaseDuplicatesOf(
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
    // The background job embeds it.
    const unit = { kind: 'fact', factId: heir.id, text: heir.statement, heading: null, point: null } as const;
    await addUnits(tx, { memory, units: [unit], revision });
  }
}

/**
 * Deletes the facts of a deleted memory, whose units are already removed. The first duplicate of each fact becomes
 * current instead.
 */
export async function removeFactsOf(
  tx: Tx,
  { memoryId, revision }: { memoryId: string; revision: bigint },
): Promise<void> {
  await releaseDuplicatesOf(tx, { memoryId, revision });
  await tx`
    update memory_facts set deduplicated_into = null
    where deduplicated_into in (select id from memory_facts where memory_id = ${memoryId}) and memory_id = ${memoryId}`;
  await tx`delete from memory_facts where memory_id = ${memoryId}`;
}

/** Finds a current fact that says the same: the given one, or one with equal text. */
async function currentDuplicate(
  tx: Tx,
  { memory, ...fact }: Pick<NewFact, 'statement' | 'deduplicatedInto'> & { memory: FactOwner },
): Promise<string | null> {
  const [duplicate] = await tx<{ id: string }[]>`
    select id from memory_facts
    where collection_id = ${memory.collectionId} and deduplicated_into is null and superseded_at is null
      and ${hasEntitiesOf(tx, memory.id)}
      and (id = ${fact.deduplicatedInto} or md5(lower(statement)) = md5(lower(${fact.statement})))
    order by id = ${fact.deduplicatedInto} desc, created_at, id limit 1`;
  return duplicate?.id ?? null;
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
