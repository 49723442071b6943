import type { MemoryWithCollection } from '../../storage/queries/memories.ts';
import type { MemoryCollectionWithCount } from '../../storage/queries/memory-collections.ts';
import type { MemoryFactRow } from '../../storage/queries/memory-facts.ts';
import type { MemoryHead } from '../../storage/queries/memory-heads.ts';
import type { CollectionView, MemorySource, MemoryView } from './memory-desk.ts';

export function memoryView(row: MemoryHead, facts: readonly MemoryFactRow[] | null = null): MemoryView {
  return {
    id: row.id,
    title: row.title,
    text: row.excerpt,
    type: row.type,
    collectionId: row.collectionId,
    status: row.status,
    stage: row.stage,
    attempts: row.attempts,
    error: row.errorCode === null ? null : { code: row.errorCode, message: row.error ?? '' },
    infer: row.infer,
    storedAs: row.processedAs,
    facts: facts?.map(factView) ?? null,
    characters: row.characters,
    metadata: row.metadata,
    // Only `sourceOf` writes it.
    source: row.source as MemorySource | null,
    createdBy: row.userId,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  };
}

export function wholeMemoryView(
  { content, ...row }: MemoryWithCollection,
  facts: readonly MemoryFactRow[],
): MemoryView {
  return memoryView({ ...row, excerpt: content }, facts);
}

export function collectionView(row: MemoryCollectionWithCount): CollectionView {
  const { id, name, label, type, memoryCount, createdByUserId, createdAt } = row;
  return { id, name, label, type, memoryCount, createdBy: createdByUserId, createdAt };
}

function factView({ id, category, statement, deduplicatedInto, supersededBy }: MemoryFactRow) {
  return { id, category, text: statement, deduplicatedInto, supersededBy };
}
