import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { isUuid } from './identifiers.ts';
import { type MemoryType, type MemoryViewer, nextRevision, visibleTo } from './memory-collections.ts';
import { removeFactsOf } from './memory-facts.ts';
import type { MetadataCondition } from './memory-filter.ts';
import { contentHashOf, storableJson, storableText } from './memory-text.ts';
import { addUnits, addUnitsOf, removeUnitsOf, wholeUnits } from './memory-units.ts';
import type { Page } from './paging.ts';

export type MemoryStatus = 'pending' | 'processing' | 'ready' | 'failed';
export type MemoryStage = 'extracting' | 'chunking' | 'embedding' | 'indexing';

/** A row of `memories`. */
export interface MemoryRow {
  id: string;
  workspaceId: string;
  collectionId: string;
  userId: number;
  apiKeyId: number | null;
  title: string | null;
  /** Empty until it is extracted from its document. */
  content: string;
  metadata: Record<string, unknown>;
  /** Whether facts are wanted. */
  infer: boolean;
  /** Of a document: its name, format, pages; null for a text. */
  source: Record<string, unknown> | null;
  status: MemoryStatus;
  stage: MemoryStage | null;
  attempts: number;
  /** Null once the outcome is final. */
  nextAttemptAt: Date | null;
  leasedUntil: Date | null;
  /** Why it failed, or why the last attempt did. */
  errorCode: string | null;
  error: string | null;
  /** Null until it is ready. */
  processedAs: 'facts' | 'chunks' | null;
  contentHash: Buffer;
  /** The memory that says the same and is found instead. */
  deduplicatedInto: string | null;
  characters: number;
  createdAt: Date;
  updatedAt: Date;
  readyAt: Date | null;
}

/** With its collection, as people see it. */
export type MemoryWithCollection = MemoryRow & { type: MemoryType; collectionLabel: string };

/** Of a document that is extracted later `content` is ''; `characters` is what it is charged for. */
export type NewMemory = Pick<
  MemoryRow,
  | 'id'
  | 'workspaceId'
  | 'collectionId'
  | 'userId'
  | 'apiKeyId'
  | 'title'
  | 'content'
  | 'metadata'
  | 'infer'
  | 'source'
  | 'characters'
> & { now: Date };

/**
 * Pending, due at once, and found by their words as soon as the transaction commits, the one that charges for them. It
 * waits for others who change the same collections, so lock the wallet afterwards.
 * @throws TandemError `COLLECTION_NOT_FOUND` when one of those is deleted
 */
export async function insertMemories(tx: Tx, memories: readonly NewMemory[]): Promise<void> {
  const byCollection = Map.groupBy(memories, ({ collectionId }) => collectionId);
  for (const collectionId of [...byCollection.keys()].sort()) {
    const revision = await nextRevision(tx, collectionId);
    if (revision === null) throw new TandemError('COLLECTION_NOT_FOUND', 'The collection was deleted.');
    for (const some of inParts(byCollection.get(collectionId)!)) {
      const rows = some.map((memory) => rowOf(tx, memory));
      await tx`insert into memories ${tx(rows as never)}`;
      const added = rows.map((row) => ({ memory: row, units: wholeUnits(row.content) }));
      await addUnitsOf(tx, { collectionId, added, revision });
    }
  }
}

/** One of them. */
export async function insertMemory(tx: Tx, memory: NewMemory): Promise<MemoryRow> {
  await insertMemories(tx, [memory]);
  return (await getMemory(tx, memory.id))!;
}

/** Many at once share the counting of their words; but they are written on the thread that answers everybody. */
const CHARACTERS_AT_ONCE = 200_000;

function* inParts(memories: readonly NewMemory[]): Generator<NewMemory[], void> {
  let part: NewMemory[] = [];
  let characters = 0;
  for (const memory of memories) {
    part.push(memory);
    characters += memory.content.length;
    if (characters < CHARACTERS_AT_ONCE) continue;
    yield part;
    part = [];
    characters = 0;
  }
  if (part.length > 0) yield part;
}

function rowOf(tx: Tx, { now, ...memory }: NewMemory) {
  const content = storableText(memory.content);
  return {
    ...memory,
    title: memory.title && storableText(memory.title),
    content,
    metadata: tx.json(storableJson(memory.metadata) as never),
    source: memory.source && tx.json(storableJson(memory.source) as never),
    contentHash: contentHashOf(content),
    status: 'pending',
    nextAttemptAt: now,
    createdAt: now,
    updatedAt: now,
  };
}

/** Null: there is none that the viewer may see. */
export async function findMemory(sql: SqlOrTx, viewer: MemoryViewer, id: string): Promise<MemoryWithCollection | null> {
  if (!isUuid(id)) return null;
  const [row] = await sql<MemoryWithCollection[]>`
    select m.*, c.type, c.label as collection_label
    from memories m join memory_collections c on c.id = m.collection_id
    where m.id = ${id} and m.deleted_at is null and ${visibleTo(sql, viewer)}`;
  return row ?? null;
}

/** Whoever may see it: for those who process it. Null: it is deleted, or never was. */
export async function getMemory(sql: SqlOrTx, id: string): Promise<MemoryRow | null> {
  const [row] = await sql<MemoryRow[]>`select * from memories where id = ${id} and deleted_at is null`;
  return row ?? null;
}

export interface MemoryListQuery extends Page {
  collectionId?: string | undefined;
  type?: MemoryType | undefined;
  status?: MemoryStatus | undefined;
  conditions?: readonly MetadataCondition[];
}

/**
 * For good: what it said is erased with its units and facts. What was dropped as a repetition of it comes back:
 * memories of the same text are pending again (`revived`, to be queued), and repeated facts are found in their own right.
 * Null: there is none that the viewer may see. Whether they may delete it is for the caller to know (`mayWriteMemory`).
 */
export async function deleteMemory(
  sql: SqlOrTx,
  viewer: MemoryViewer,
  { id, now }: { id: string; now: Date },
): Promise<{ revived: string[] } | null> {
  return await inTransaction(sql, async (tx) => {
    const memory = await findMemory(tx, viewer, id);
    if (memory === null) return null;
    const revision = await nextRevision(tx, memory.collectionId);
    if (revision === null) return null;
    const [deleted] = await tx`
      update memories set deleted_at = ${now}, updated_at = ${now}, next_attempt_at = null, leased_until = null,
        content = '', content_hash = '', title = null, metadata = '{}', source = null, deduplicated_into = null
      where id = ${id} and deleted_at is null returning id`;
    if (!deleted) return null;
    await removeUnitsOf(tx, { memoryId: id, collectionId: memory.collectionId, revision, now });
    await removeFactsOf(tx, { memoryId: id, revision });
    return { revived: await reviveDuplicatesOf(tx, { id, revision, now }) };
  });
}

async function reviveDuplicatesOf(
  tx: Tx,
  { id, revision, now }: { id: string; revision: bigint; now: Date },
): Promise<string[]> {
  const revived = await tx<MemoryRow[]>`
    update memories set status = 'pending', stage = null, deduplicated_into = null, ready_at = null,
      processed_as = null, next_attempt_at = ${now}, leased_until = null, updated_at = ${now}
    where deduplicated_into = ${id} and deleted_at is null returning *`;
  for (const memory of revived) await addUnits(tx, { memory, units: wholeUnits(memory.content), revision });
  return revived.map((memory) => memory.id);
}
