import { TandemError } from '../../machines/errors.ts';
import type { Tx } from '../../storage/database.ts';
import {
  createMemoryCollection,
  ensurePersonalCollection,
  findMemoryCollection,
  firstMemoryCollectionOf,
  type MemoryCollectionRow,
  mayWriteMemory,
} from '../../storage/queries/memory-collections.ts';
import { lockWorkspace } from '../../storage/queries/workspaces.ts';
import type { MemoryCaller, NewMemoryText } from './memory-desk.ts';

/** @throws TandemError `POLICY_DENY` to viewers */
export function requireWriter({ role }: Pick<MemoryCaller, 'role'>): void {
  if (role === 'viewer') throw denied('Viewers may look for memories but not make any.');
}

/** @throws TandemError `POLICY_DENY` unless the caller is owner or admin */
export function requireAdmin({ role }: Pick<MemoryCaller, 'role'>, type: string): void {
  if (role !== 'owner' && role !== 'admin') throw denied(`Only owners and admins change ${type} memories.`);
}

/** @throws TandemError `POLICY_DENY` */
export function requireMayWrite(by: MemoryCaller, { type }: Pick<MemoryCollectionRow, 'type'>): void {
  if (!mayWriteMemory(by, { type })) throw denied(`Your role may not change ${type} memories.`);
}

/**
 * Checks early whether the caller may store a memory in its target.
 * @throws TandemError as `writableCollection`, and `POLICY_DENY` to viewers
 */
export async function requireMayStore(
  tx: Tx,
  { type, collectionId, by }: Pick<NewMemoryText, 'type' | 'collectionId'> & { by: MemoryCaller },
): Promise<void> {
  requireWriter(by);
  if (collectionId !== null) await namedCollection(tx, { type, collectionId, by });
  else if (type !== null && type !== 'user') requireAdmin(by, type);
}

/**
 * Returns the collection for a memory: the given one, else the caller's own or the workspace's first of that type.
 * Creates it if missing.
 * @throws TandemError `POLICY_DENY`, `COLLECTION_NOT_FOUND`, `VALIDATION_FAILED` if its type differs
 */
export async function writableCollection(
  tx: Tx,
  { type, collectionId, by, now }: Pick<NewMemoryText, 'type' | 'collectionId'> & { by: MemoryCaller; now: Date },
): Promise<MemoryCollectionRow> {
  const { workspaceId, userId } = by;
  if (collectionId !== null) return await namedCollection(tx, { type, collectionId, by });
  if (type === null || type === 'user') return await ensurePersonalCollection(tx, { workspaceId, userId, now });
  requireAdmin(by, type);
  const first = await firstMemoryCollectionOf(tx, { workspaceId, type });
  if (first !== null) return first;
  await lockWorkspace(tx, workspaceId);
  const label = type === 'knowledge' ? 'Knowledge' : 'Hive';
  return (
    // Another request may have created it meanwhile.
    (await firstMemoryCollectionOf(tx, { workspaceId, type })) ??
    (await createMemoryCollection(tx, { workspaceId, type, name: type, label, createdByUserId: userId, now }))
  );
}

async function namedCollection(
  tx: Tx,
  { type, collectionId, by }: { type: NewMemoryText['type']; collectionId: string; by: MemoryCaller },
): Promise<MemoryCollectionRow> {
  const collection = await findMemoryCollection(tx, by, collectionId);
  if (collection === null) throw collectionNotFound();
  requireMayWrite(by, collection);
  requireSameType(collection, type);
  return collection;
}

export function collectionNotFound(): TandemError {
  return new TandemError('COLLECTION_NOT_FOUND', 'No collection that you can access has this id.');
}

export function memoryNotFound(): TandemError {
  return new TandemError('MEMORY_NOT_FOUND', 'No memory that you can access has this id.');
}

/** The default `user` is also accepted for a team's collection. */
function requireSameType(collection: MemoryCollectionRow, type: NewMemoryText['type']): void {
  if (type === null || type === collection.type || (type === 'user' && collection.type === 'team')) return;
  const message = `must be the type of the collection, which is ${collection.type}`;
  throw new TandemError('VALIDATION_FAILED', `type ${message}.`, { details: [{ path: 'type', message }] });
}

function denied(message: string): TandemError {
  return new TandemError('POLICY_DENY', message);
}
