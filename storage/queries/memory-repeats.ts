import type { Tx } from '../database.ts';
import { jsonb } from './json-columns.ts';
import type { MemoryRow } from './memories.ts';
import { contentHashOf, storableJson, storableText } from './memory-text.ts';

export interface GivenMemory {
  collectionId: string;
  title: string | null;
  content: string;
  metadata: Readonly<Record<string, unknown>>;
}

/**
 * Finds the oldest memory of the collection with the same text, title and metadata that has not failed; null if there
 * is none. Lock the collection, so that no other transaction adds one.
 */
export async function findSameMemory(
  tx: Tx,
  { collectionId, title, content, metadata }: GivenMemory,
): Promise<Pick<MemoryRow, 'id' | 'status'> | null> {
  const [row] = await tx<Pick<MemoryRow, 'id' | 'status'>[]>`
    select id, status from memories
    where collection_id = ${collectionId} and content_hash = ${contentHashOf(content)} and deleted_at is null
      and status <> 'failed' and title is not distinct from ${title === null ? null : storableText(title)}
      and metadata = ${jsonb(tx, storableJson(metadata))}
    order by created_at, id limit 1`;
  return row ?? null;
}
