import type { Tx } from '../database.ts';
import { jsonb } from './json-columns.ts';
import type { MemoryRow } from './memories.ts';
import { releaseDuplicatesOf, removeFactsOf } from './memory-facts.ts';
import { ENTITY_KEYS } from './memory-filter.ts';
import { contentHashOf, storableJson, storableText } from './memory-text.ts';
import { addUnits, removeUnitsOf, retitleUnitsOf, wholeUnits } from './memory-units.ts';

export interface ChangedMemory {
  /** As stored. */
  memory: Pick<MemoryRow, 'id' | 'collectionId' | 'title' | 'metadata'>;
  title: string | null;
  metadata: Readonly<Record<string, unknown>>;
  now: Date;
}

/** The transaction has taken `revision` with `nextRevision`. */
export async function relabelMemory(
  tx: Tx,
  { memory, title, metadata, now, revision }: ChangedMemory & { revision: bigint },
): Promise<void> {
  const stored = title && storableText(title);
  if (stored !== memory.title) await retitleUnitsOf(tx, { memory: { ...memory, title: stored }, revision, now });
  // Searches for the previous user, agent or run no longer find this memory.
  const hasMoved = ENTITY_KEYS.some((key) => memory.metadata[key] !== metadata[key]);
  if (hasMoved) await releaseDuplicatesOf(tx, { memoryId: memory.id, revision });
  await tx`
    update memories set title = ${stored}, metadata = ${jsonb(tx, storableJson(metadata))}, updated_at = ${now}
    where id = ${memory.id}`;
}

/**
 * Replaces a memory's searchable content by the words of its new text. Deletes facts, chunks and embeddings of the old
 * text. The transaction has taken `revision`.
 */
export async function replaceUnits(
  tx: Tx,
  { memory, title, content, now, revision }: Omit<ChangedMemory, 'metadata'> & { content: string; revision: bigint },
): Promise<void> {
  const { id, collectionId } = memory;
  await removeUnitsOf(tx, { memoryId: id, collectionId, revision, now });
  await removeFactsOf(tx, { memoryId: id, revision });
  const units = wholeUnits(storableText(content));
  await addUnits(tx, { memory: { id, collectionId, title: title && storableText(title) }, units, revision });
}

/**
 * Stores a new text, after `replaceUnits`. The memory is pending and due at once. This counts as an attempt, so an
 * attempt in progress stores nothing. Returns the number of attempts.
 */
export async function rewriteMemory(
  tx: Tx,
  { memory, title, metadata, content, characters, now }: ChangedMemory & { content: string; characters: number },
): Promise<number> {
  const stored = storableText(content);
  const [row] = await tx<{ attempts: number }[]>`
    update memories set title = ${title && storableText(title)}, content = ${stored},
      content_hash = ${contentHashOf(content)}, characters = ${characters},
      metadata = ${jsonb(tx, storableJson(metadata))}, status = 'pending', stage = null,
      attempts = attempts + 1, processed_as = null, ready_at = null, deduplicated_into = null, error_code = null,
      error = null, next_attempt_at = ${now}, leased_until = null, updated_at = ${now}
    where id = ${memory.id} returning attempts`;
  return row!.attempts;
}
