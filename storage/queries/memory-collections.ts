import { randomUUID } from 'node:crypto';
import type postgres from 'postgres';
import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { isUuid } from './identifiers.ts';
import { lockWorkspace, type Role } from './workspaces.ts';

/** Restricts queries to what this user may see in this workspace. */
export interface MemoryViewer {
  workspaceId: string;
  userId: number;
  role: Role;
}

/** `user`: one person's; `team`: its members'; `knowledge`, `hive`: the whole workspace's. */
export type MemoryType = 'user' | 'team' | 'knowledge' | 'hive';

export interface MemoryCollectionRow {
  id: string;
  workspaceId: string;
  type: MemoryType;
  name: string;
  label: string;
  /** Owner of a personal collection; otherwise null. */
  ownerUserId: number | null;
  createdByUserId: number;
  /** Counts changes of its searchable content. */
  revision: bigint;
  createdAt: Date;
}

export type MemoryCollectionWithCount = MemoryCollectionRow & { memoryCount: number };

/** Per workspace, without personal ones. */
export const MAX_MEMORY_COLLECTIONS = 200;

/** Returns a user's personal collection in a workspace, created on first use. */
export async function ensurePersonalCollection(
  sql: SqlOrTx,
  { workspaceId, userId, now }: { workspaceId: string; userId: number; now: Date },
): Promise<MemoryCollectionRow> {
  const personal = { workspaceId, ownerUserId: userId };
  const existing = await findPersonalCollection(sql, personal);
  if (existing) return existing;
  const row = {
    ...personal,
    id: randomUUID(),
    type: 'user',
    name: 'personal',
    nameKey: 'personal',
    label: 'Personal',
    createdByUserId: userId,
    createdAt: now,
  };
  await sql`
    insert into memory_collections ${sql(row)}
    on conflict (workspace_id, owner_user_id) where deleted_at is null and type = 'user' do nothing`;
  return (await findPersonalCollection(sql, personal))!;
}

export interface CreateMemoryCollectionInput {
  workspaceId: string;
  type: 'team' | 'knowledge' | 'hive';
  name: string;
  /** Display name. Default: the name. */
  label?: string | undefined;
  createdByUserId: number;
  /** Team members besides the creator. */
  memberUserIds?: readonly number[] | undefined;
  now: Date;
}

/**
 * Creates a collection. The caller checks permission.
 * @throws TandemError `COLLECTION_NAME_TAKEN` if a collection of the type has this name in any case;
 * `COLLECTION_LIMIT_REACHED`; `MEMBER_NOT_FOUND` if a given user is not in the workspace
 */
export async function createMemoryCollection(
  sql: SqlOrTx,
  { memberUserIds = [], now, label, ...input }: CreateMemoryCollectionInput,
): Promise<MemoryCollectionRow> {
  return await inTransaction(sql, async (tx) => {
    await lockWorkspace(tx, input.workspaceId);
    await requireRoomForCollection(tx, input.workspaceId);
    const row = {
      ...input,
      id: randomUUID(),
      nameKey: nameKeyOf(input.name),
      label: label ?? input.name,
      createdAt: now,
    };
    const [created] = await tx<MemoryCollectionRow[]>`
      insert into memory_collections ${tx(row)}
      on conflict (workspace_id, type, name_key) where deleted_at is null and type <> 'user' do nothing
      returning ${columns(tx)}`;
    if (!created) {
      throw new TandemError(
        'COLLECTION_NAME_TAKEN',
        `A ${input.type} collection with this name already exists. Choose another name.`,
      );
    }
    if (input.type === 'team') {
      await addMembers(tx, created, { userIds: [input.createdByUserId, ...memberUserIds], now });
    }
    return created;
  });
}

/** Lists what the viewer may see: their own collection first, then by type and name. */
export async function listMemoryCollections(
  sql: SqlOrTx,
  viewer: MemoryViewer,
  { type }: { type?: MemoryType | undefined } = {},
): Promise<MemoryCollectionWithCount[]> {
  return await sql<MemoryCollectionWithCount[]>`
    select ${columns(sql)}, (
      select count(*)::int from memories m where m.collection_id = c.id and m.deleted_at is null
    ) as memory_count
    from memory_collections c where ${visibleTo(sql, viewer)}
    ${type === undefined ? sql`` : sql`and c.type = ${type}`}
    order by array_position('{user,team,knowledge,hive}', c.type), c.name_key, c.id`;
}

/** Removes a leaving user from all teams of a workspace. Rejoining does not restore team membership. */
export async function leaveMemoryTeams(
  tx: Tx,
  { workspaceId, userId }: { workspaceId: string; userId: number },
): Promise<void> {
  await tx`
    delete from memory_collection_members member using memory_collections c
    where member.user_id = ${userId} and c.id = member.collection_id and c.workspace_id = ${workspaceId}`;
}

/** Null: the viewer may see no such collection. */
export async function findMemoryCollection(
  sql: SqlOrTx,
  viewer: MemoryViewer,
  id: string,
): Promise<MemoryCollectionRow | null> {
  if (!isUuid(id)) return null;
  const [row] = await sql<MemoryCollectionRow[]>`
    select ${columns(sql)} from memory_collections c where c.id = ${id} and ${visibleTo(sql, viewer)}`;
  return row ?? null;
}

/** Oldest collection of a type, for requests without an id; null if there is none. */
export async function firstMemoryCollectionOf(
  sql: SqlOrTx,
  { workspaceId, type }: { workspaceId: string; type: 'knowledge' | 'hive' },
): Promise<MemoryCollectionRow | null> {
  const [row] = await sql<MemoryCollectionRow[]>`
    select ${columns(sql)} from memory_collections c
    where c.workspace_id = ${workspaceId} and c.type = ${type} and c.deleted_at is null
    order by c.created_at, c.id limit 1`;
  return row ?? null;
}

/** Whether a viewer who sees the collection may add to it and delete from it. */
export function mayWriteMemory(viewer: MemoryViewer, { type }: Pick<MemoryCollectionRow, 'type'>): boolean {
  if (viewer.role === 'viewer') return false;
  return type === 'user' || type === 'team' || viewer.role === 'admin' || viewer.role === 'owner';
}

/**
 * Deletes a collection and its content for good, except a personal one. Returns the ids of its memories; null if the
 * viewer may see no such collection. The caller checks permission.
 */
export async function deleteMemoryCollection(
  sql: SqlOrTx,
  viewer: MemoryViewer,
  { id, now }: { id: string; now: Date },
): Promise<{ memoryIds: string[] } | null> {
  return await inTransaction(sql, async (tx) => {
    const collection = await findMemoryCollection(tx, viewer, id);
    if (collection === null || collection.type === 'user') return null;
    // Waits for changes in progress; later ones find it deleted.
    const [deleted] = await tx`
      update memory_collections set deleted_at = ${now}, revision = revision + 1
      where id = ${id} and deleted_at is null returning id`;
    if (!deleted) return null;
    await tx`delete from memory_units where collection_id = ${id}`;
    await tx`delete from memory_words where collection_id = ${id}`;
    await tx`delete from memory_unit_removals where collection_id = ${id}`;
    await tx`delete from memory_facts where collection_id = ${id}`;
    await tx`delete from memory_collection_members where collection_id = ${id}`;
    const memories = await tx<{ id: string }[]>`
      update memories set deleted_at = ${now}, updated_at = ${now}, next_attempt_at = null, leased_until = null,
        content = '', content_hash = '', title = null, metadata = '{}', source = null, deduplicated_into = null
      where collection_id = ${id} and deleted_at is null returning id`;
    return { memoryIds: memories.map((memory) => memory.id) };
  });
}

/**
 * Takes the next revision of a collection, and the right to change its units until the transaction ends. Lock several
 * collections in order of their ids and the wallet last: writing takes time, and every charge waits for the wallet.
 * Null: it is deleted.
 */
export async function nextRevision(tx: Tx, collectionId: string): Promise<bigint | null> {
  const [row] = await tx<{ revision: bigint }[]>`
    update memory_collections set revision = revision + 1
    where id = ${collectionId} and deleted_at is null returning revision`;
  return row?.revision ?? null;
}

/** Condition on `memory_collections c` that alone defines visibility. */
export function visibleTo(sql: SqlOrTx, { workspaceId, userId }: MemoryViewer): postgres.PendingQuery<postgres.Row[]> {
  return sql`(c.workspace_id = ${workspaceId} and c.deleted_at is null and (
    c.type in ('knowledge', 'hive')
    or (c.type = 'user' and c.owner_user_id = ${userId})
    or (c.type = 'team' and exists (
      select from memory_collection_members member where member.collection_id = c.id and member.user_id = ${userId}))
  ))`;
}

async function findPersonalCollection(
  sql: SqlOrTx,
  { workspaceId, ownerUserId }: { workspaceId: string; ownerUserId: number },
): Promise<MemoryCollectionRow | null> {
  const [row] = await sql<MemoryCollectionRow[]>`
    select ${columns(sql)} from memory_collections c
    where c.workspace_id = ${workspaceId} and c.owner_user_id = ${ownerUserId} and c.type = 'user' and c.deleted_at is null`;
  return row ?? null;
}

function columns(sql: SqlOrTx): postgres.PendingQuery<postgres.Row[]> {
  return sql`id, workspace_id, type, name, label, owner_user_id, created_by_user_id, revision, created_at`;
}

async function requireRoomForCollection(tx: Tx, workspaceId: string): Promise<void> {
  const [count] = await tx<{ total: number }[]>`
    select count(*)::int as total from memory_collections
    where workspace_id = ${workspaceId} and type <> 'user' and deleted_at is null`;
  if ((count?.total ?? 0) < MAX_MEMORY_COLLECTIONS) return;
  const message = `A workspace has at most ${MAX_MEMORY_COLLECTIONS} collections. Delete one first.`;
  throw new TandemError('COLLECTION_LIMIT_REACHED', message, { details: { limit: MAX_MEMORY_COLLECTIONS } });
}

async function addMembers(
  tx: Tx,
  { id, workspaceId }: MemoryCollectionRow,
  { userIds, now }: { userIds: readonly number[]; now: Date },
): Promise<void> {
  const wanted = [...new Set(userIds)];
  const added = await tx`
    insert into memory_collection_members (collection_id, user_id, added_at)
    select ${id}, user_id, ${now} from memberships where workspace_id = ${workspaceId} and user_id = any(${wanted}::int[])`;
  if (added.count === wanted.length) return;
  throw new TandemError('MEMBER_NOT_FOUND', 'Members of a team collection must be members of the workspace.');
}

function nameKeyOf(name: string): string {
  return name.normalize('NFKC').toLowerCase().replace(/\s+/gu, ' ').trim();
}
