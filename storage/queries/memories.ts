import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { isUuid } from './identifiers.ts';
import { jsonb } from './json-columns.ts';
import { type MemoryType, type MemoryViewer, nextRevision, visibleTo } from './memory-collections.ts';
import { removeFactsOf } from './memory-facts.ts';
import type { MetadataCondition } from './memory-filter.ts';
import { contentHashOf, storableJson, storableText } from './memory-text.ts';
import { addUnits, addUnitsOf, removeUnitsOf, wholeUnits } from './memory-units.ts';
import type { Page } from './paging.ts';

export type MemoryStatus = 'pending' | 'processing' | 'ready' | 'failed';
export type MemoryStage = 'extracting' | 'chunking' | 'embedding' | 'indexing';

export interface MemoryRow {
  id: string;
  workspaceId: string;
  collectionId: string;
  userId: number;
  apiKeyId: number | null;
  title: string | null;
  /** Empty until a document is extracted. */
  content: string;
  metadata: Record<string, unknown>;
  infer: boolean;
  /** Name, format and pages of a document; null for a text. */
  source: Record<string, unknown> | null;
  status: MemoryStatus;
  stage: MemoryStage | null;
  attempts: number;
  /** Null once the outcome is final. */
  nextAttemptAt: Date | null;
  leasedUntil: Date | null;
  /** Reason of the failure, or of the last attempt's. */
  errorCode: string | null;
  error: string | null;
  processedAs: 'facts' | 'chunks' | null;
  contentHash: Buffer;
  /** Memory with the same text that is found instead. */
  deduplicatedInto: string | null;
  characters: number;
  createdAt: Date;
  updatedAt: Date;
}

export type MemoryWithCollection = MemoryRow & { type: MemoryType; collectionLabel: string };

/** For a document extracted later, `content` is ''; `characters` are charged. */
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
 * Inserts pending memories that are due at once, and found by keyword once the transaction commits. Run it in the
 * transaction of their charge. It waits for other changes of the collections, so lock the wallet afterwards.
 * @throws TandemError `COLLECTION_NOT_FOUND` if a collection is deleted
 */
export async function insertMemories(tx: Tx, memories: readonly NewMemory[]): Promise<void> {
  const byCollection = Map.groupBy(memories, ({ collectionId }) => collectionId);
  for (const collectionId of [...byCollection.keys()].sort()) {
    const revision = await nextRevision(tx, collectionId);
    if (revision === null) throw new TandemError('COLLECTION_NOT_FOUND', 'The collection was deleted.');
    for (const some of inParts(byCollection.get(collectionId)!)) {
      const rows = some.map((memory) => rowOf(tx, memory));
      await tx`insert into memories ${tx(rows)}`;
      const added = rows.map((row) => ({ memory: row, units: wholeUnits(row.content) }));
      await addUnitsOf(tx, { collectionId, added, revision });
    }
  }
}

/** Memories inserted together share the count of their words, but they are prepared on the main thread. */
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
    metadata: jsonb(tx, storableJson(memory.metadata)),
    source: memory.source && jsonb(tx, storableJson(memory.source)),
    contentHash: contentHashOf(content),
    status: 'pending',
    nextAttemptAt: now,
    createdAt: now,
    updatedAt: now,
  };
}

/** Null: the viewer may see no such memory. */
export async function findMemory(sql: SqlOrTx, viewer: MemoryViewer, id: string): Promise<MemoryWithCollection | null> {
  if (!isUuid(id)) return null;
  const [row] = await sql<MemoryWithCollection[]>`
    select m.*, c.type, c.label as collection_label
    from memories m join memory_collections c on c.id = m.collection_id
    where m.id = ${id} and m.deleted_at is null and ${visibleTo(sql, viewer)}`;
  return row ?? null;
}

export interface MemoryListQuery extends Page {
  collectionId?: string | undefined;
  type?: MemoryType | undefined;
  status?: MemoryStatus | undefined;
  conditions?: readonly MetadataCondition[];
}

/**
 * Deletes a memory for good, with its units and facts. Its duplicates return: memories with the same text become
 * pending again (`revived`, to be queued), and repeated facts become current. Null: the viewer may see no such memory.
 * The caller checks write permission (`mayWriteMemory`).
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
