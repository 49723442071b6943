import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type Sql, type Tx } from '../../storage/database.ts';
import type { Charge } from '../../storage/ledger.ts';
import { lockAccounts } from '../../storage/ledger-entries.ts';
import { findMemory, type MemoryWithCollection } from '../../storage/queries/memories.ts';
import { nextRevision } from '../../storage/queries/memory-collections.ts';
import { fitsMetadata, METADATA_MAX_BYTES, storableText } from '../../storage/queries/memory-text.ts';
import {
  type ChangedMemory,
  relabelMemory,
  replaceUnits,
  rewriteMemory,
} from '../../storage/queries/memory-updates.ts';
import { memoryNotFound, requireMayWrite } from './memory-access.ts';
import { chargeMemory } from './memory-account.ts';
import type { MemoryUpdate } from './memory-desk.ts';
import { charactersOf } from './memory-ingest.ts';

/**
 * Changes a memory in one transaction, together with the charge for a new text. The wallet is locked last, because all
 * charges of the workspace wait for it. Returns the charge and the attempt that it is for; null if the text is unchanged.
 * @throws TandemError as `MemoryDesk.update`, except for errors of the queue
 */
export async function updateMemory(
  sql: Sql,
  { memoryId, by, now, ...update }: MemoryUpdate & { now: Date },
): Promise<{ charge: Charge; attempts: number } | null> {
  return await inTransaction(sql, async (tx) => {
    const { memory, revision } = await lockedMemory(tx, { memoryId, by });
    const title = update.title === undefined ? memory.title : update.title;
    const metadata = mergedMetadata(memory.metadata, update.metadata ?? {});
    if (update.metadata !== null && !fitsMetadata(metadata)) throw metadataTooLarge();
    const changed: ChangedMemory = { memory, title, metadata, now };
    const content = update.text;
    if (content === null || storableText(content) === memory.content) {
      await relabelMemory(tx, { ...changed, revision });
      return null;
    }
    const characters = charactersOf(content);
    await replaceUnits(tx, { ...changed, content, revision });
    await lockAccounts(tx, by.workspaceId);
    const attempts = await rewriteMemory(tx, { ...changed, content, characters });
    const charge = await chargeMemory(tx, { memoryId, attempts, characters, operation: 'update', by, now });
    return { charge, attempts };
  });
}

/** Locks the collection, so that text, title and metadata cannot change. */
async function lockedMemory(
  tx: Tx,
  { memoryId, by }: Pick<MemoryUpdate, 'memoryId' | 'by'>,
): Promise<{ memory: MemoryWithCollection; revision: bigint }> {
  const found = await findMemory(tx, by, memoryId);
  if (found === null) throw memoryNotFound();
  requireMayWrite(by, found);
  const revision = await nextRevision(tx, found.collectionId);
  const memory = revision === null ? null : await findMemory(tx, by, memoryId);
  if (revision === null || memory === null) throw memoryNotFound();
  return { memory, revision };
}

/** Sets the keys of the change; null deletes a key (RFC 7396, top level only). */
function mergedMetadata(
  metadata: Readonly<Record<string, unknown>>,
  change: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const kept = Object.entries(metadata).filter(([key]) => !Object.hasOwn(change, key));
  return Object.fromEntries([...kept, ...Object.entries(change).filter(([, value]) => value !== null)]);
}

function metadataTooLarge(): TandemError {
  const message = `must have at most ${METADATA_MAX_BYTES} bytes of JSON together with the stored metadata`;
  return new TandemError('VALIDATION_FAILED', `metadata ${message}.`, { details: [{ path: 'metadata', message }] });
}
