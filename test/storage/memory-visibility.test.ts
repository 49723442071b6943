import { expect, it } from 'vitest';
import type { Sql } from '../../storage/database.ts';
import { removeMember } from '../../storage/queries/memberships.ts';
import { deleteMemory, findMemory } from '../../storage/queries/memories.ts';
import {
  createMemoryCollection,
  deleteMemoryCollection,
  ensurePersonalCollection,
  findMemoryCollection,
  listMemoryCollections,
  type MemoryCollectionRow,
  type MemoryViewer,
  mayWriteMemory,
} from '../../storage/queries/memory-collections.ts';
import { factsOfMemory } from '../../storage/queries/memory-facts.ts';
import { listMemoryHeads } from '../../storage/queries/memory-heads.ts';
import { collectionsToSearch, foundUnits } from '../../storage/queries/memory-search.ts';
import { addMember, type Role } from '../../storage/queries/workspaces.ts';
import { onEveryServer } from './every-server.ts';
import { fact, process, remember, seedColleague, seedMemories } from './memory-fixture.ts';
import { NOW } from './seed.ts';

const ROLES: readonly Role[] = ['owner', 'admin', 'developer', 'member', 'viewer'];

/** Members of the team and others, for every role. */
const STANDINGS = ['theirs', 'of others'] as const;

/** Permissions of each role, in own collections and those of others. */
const TABLE: Record<string, { sees: readonly Role[]; writes: readonly Role[] }> = {
  'user, theirs': { sees: ROLES, writes: ['owner', 'admin', 'developer', 'member'] },
  'user, of others': { sees: [], writes: [] },
  'team, theirs': { sees: ROLES, writes: ['owner', 'admin', 'developer', 'member'] },
  'team, of others': { sees: [], writes: [] },
  'knowledge, theirs': { sees: ROLES, writes: ['owner', 'admin'] },
  'knowledge, of others': { sees: ROLES, writes: ['owner', 'admin'] },
  'hive, theirs': { sees: ROLES, writes: ['owner', 'admin'] },
  'hive, of others': { sees: ROLES, writes: ['owner', 'admin'] },
};

onEveryServer('memory visibility', (database) => {
  it('depends on role, collection type and owner in every read', async () => {
    const { sql, workspaceId } = await seedMemories(database().sql);
    const stranger = (await seedMemories(sql)).viewer;
    const other = await seedColleague(sql, workspaceId, 'member');
    const seen = new Map<string, { sees: Role[]; writes: Role[] }>();
    for (const role of ROLES) {
      const viewer = await seedColleague(sql, workspaceId, role);
      for (const standing of STANDINGS) {
        for (const type of ['user', 'team', 'knowledge', 'hive'] as const) {
          const row = seen.get(`${type}, ${standing}`) ?? { sees: [], writes: [] };
          seen.set(`${type}, ${standing}`, row);
          const collection = await collectionOf(sql, standing === 'theirs' ? viewer : other, type, role);
          const reads = await everyRead(sql, collection, viewer);
          expect(new Set(Object.values(reads)).size, `${role}: ${type}, ${standing} ${JSON.stringify(reads)}`).toBe(1);
          if (reads.find) row.sees.push(role);
          if (reads.find && mayWriteMemory(viewer, collection)) row.writes.push(role);
          const abroad = await everyRead(sql, collection, stranger);
          expect(Object.values(abroad), `${type} of another workspace`).not.toContain(true);
        }
      }
    }
    expect(Object.fromEntries(seen)).toEqual(TABLE);
  });

  it('ends at once for a removed team member', async () => {
    const { sql, workspaceId, viewer } = await seedMemories(database().sql);
    const colleague = await seedColleague(sql, workspaceId, 'member');
    const team = await createMemoryCollection(sql, {
      workspaceId,
      type: 'team',
      name: 'Sales',
      createdByUserId: viewer.userId,
      memberUserIds: [colleague.userId, colleague.userId],
      now: NOW,
    });
    expect(await findMemoryCollection(sql, colleague, team.id)).toEqual(team);
    await sql`delete from memory_collection_members where user_id = ${colleague.userId}`;
    expect(await findMemoryCollection(sql, colleague, team.id)).toBeNull();
  });

  it('does not return to a team member who left and rejoined the workspace', async () => {
    const { sql, workspaceId, viewer } = await seedMemories(database().sql);
    const colleague = await seedColleague(sql, workspaceId, 'member');
    const { userId } = colleague;
    const team = { type: 'team', name: 'Sales', createdByUserId: viewer.userId, memberUserIds: [userId] } as const;
    const { id } = await createMemoryCollection(sql, { ...team, workspaceId, now: NOW });
    await removeMember(sql, { workspaceId, userId, actorRole: 'owner', now: NOW });
    await addMember(sql, { workspaceId, userId, role: 'member', now: NOW });
    expect(await findMemoryCollection(sql, colleague, id)).toBeNull();
    expect(await findMemoryCollection(sql, viewer, id)).not.toBeNull();
  });

  it('covers deletion: members delete only what they see', async () => {
    const { sql, workspaceId, viewer, collection } = await seedMemories(database().sql);
    const memory = await remember(sql, collection);
    const admin = await seedColleague(sql, workspaceId, 'admin');
    const stranger = (await seedMemories(sql)).viewer;
    for (const by of [admin, stranger]) {
      expect(await deleteMemory(sql, by, { id: memory.id, now: NOW })).toBeNull();
      expect(await deleteMemoryCollection(sql, by, { id: collection.id, now: NOW })).toBeNull();
    }
    expect(await deleteMemoryCollection(sql, viewer, { id: collection.id, now: NOW })).toBeNull();
    expect(await findMemory(sql, viewer, memory.id)).toMatchObject({ id: memory.id, type: 'user' });
  });

  it('returns nothing for invalid ids', async () => {
    const { sql, viewer } = await seedMemories(database().sql);
    for (const id of ["'; drop table memories; --", '', '__proto__', 'ffffffff']) {
      expect(await findMemory(sql, viewer, id)).toBeNull();
      expect(await findMemoryCollection(sql, viewer, id)).toBeNull();
      expect(await factsOfMemory(sql, viewer, id)).toEqual([]);
      expect(await collectionsToSearch(sql, viewer, { ids: [id] })).toEqual([]);
      expect((await listMemoryHeads(sql, viewer, { page: 1, limit: 9, collectionId: id })).total).toBe(0);
    }
  });
});

onEveryServer('memory collections', (database) => {
  it('exist once per user despite concurrent creation', async () => {
    const { sql, workspaceId } = await seedMemories(database().sql);
    const { userId } = await seedColleague(sql, workspaceId, 'member');
    const made = await Promise.all(
      Array.from({ length: 8 }, () => ensurePersonalCollection(sql, { workspaceId, userId, now: NOW })),
    );
    expect(new Set(made.map(({ id }) => id)).size).toBe(1);
  });

  it('require unique names per type, ignoring case, until deleted', async () => {
    const { sql, workspaceId, viewer } = await seedMemories(database().sql);
    const create = (name: string, type: 'team' | 'hive' = 'team') =>
      createMemoryCollection(sql, { workspaceId, type, name, createdByUserId: viewer.userId, now: NOW });
    const first = await create('Straße  Nord');
    await expect(create('STRASSE nord')).resolves.toBeDefined();
    await expect(create(' straße nord ')).rejects.toMatchObject({ code: 'COLLECTION_NAME_TAKEN' });
    await expect(create('straße nord', 'hive')).resolves.toMatchObject({ type: 'hive' });
    await deleteMemoryCollection(sql, viewer, { id: first.id, now: NOW });
    await expect(create('straße nord')).resolves.toMatchObject({ label: 'straße nord' });
  });

  it('accept workspace members only', async () => {
    const { sql, workspaceId, viewer } = await seedMemories(database().sql);
    const stranger = (await seedMemories(sql)).viewer;
    const creating = createMemoryCollection(sql, {
      workspaceId,
      type: 'team',
      name: 'Sales',
      createdByUserId: viewer.userId,
      memberUserIds: [stranger.userId],
      now: NOW,
    });
    await expect(creating).rejects.toMatchObject({ code: 'MEMBER_NOT_FOUND' });
    expect(await listMemoryCollections(sql, viewer, { type: 'team' })).toEqual([]);
  });

  it('lose their content when deleted', async () => {
    const { sql, workspaceId, viewer } = await seedMemories(database().sql);
    const hive = await createMemoryCollection(sql, {
      workspaceId,
      type: 'hive',
      name: 'All',
      createdByUserId: viewer.userId,
      now: NOW,
    });
    const [first, second] = [await remember(sql, hive), await remember(sql, hive)];
    await process(sql, first, { facts: [fact('Asha lives in Mumbai')] });
    const deleted = await deleteMemoryCollection(sql, viewer, { id: hive.id, now: NOW });
    expect(deleted?.memoryIds.toSorted()).toEqual([first.id, second.id].toSorted());
    for (const table of ['memory_units', 'memory_words', 'memory_facts', 'memory_unit_removals']) {
      expect((await sql`select 1 from ${sql(table)}`).length, table).toBe(0);
    }
    const kept =
      await sql`select 1 from memories where collection_id = ${hive.id} and (content <> '' or content_hash <> '')`;
    expect(kept).toHaveLength(0);
    await expect(remember(sql, hive)).rejects.toMatchObject({ code: 'COLLECTION_NOT_FOUND' });
  });
});

async function collectionOf(
  sql: Sql,
  { workspaceId, userId }: MemoryViewer,
  type: MemoryCollectionRow['type'],
  role: Role,
): Promise<MemoryCollectionRow> {
  if (type === 'user') return await ensurePersonalCollection(sql, { workspaceId, userId, now: NOW });
  const name = `${role} ${userId} ${type} ${Math.random()}`;
  return await createMemoryCollection(sql, { workspaceId, type, name, createdByUserId: userId, now: NOW });
}

/** Whether each read shows the collection or its content. */
async function everyRead(
  sql: Sql,
  collection: MemoryCollectionRow,
  viewer: MemoryViewer,
): Promise<Record<string, boolean>> {
  const memory = await remember(sql, collection, { content: 'The code of the safe is 4711.' });
  const known = fact(`The code of the safe is ${memory.id}.`);
  await process(sql, memory, { facts: [known] });
  const [unit] = await sql<{ id: bigint }[]>`select id from memory_units where memory_id = ${memory.id}`;
  const listed = await listMemoryHeads(sql, viewer, { page: 1, limit: 1_000 });
  return {
    find: (await findMemory(sql, viewer, memory.id)) !== null,
    list: listed.rows.some(({ id }) => id === memory.id),
    collection: (await findMemoryCollection(sql, viewer, collection.id)) !== null,
    collections: (await listMemoryCollections(sql, viewer)).some(({ id }) => id === collection.id),
    search: (await collectionsToSearch(sql, viewer, { ids: [collection.id] })).length > 0,
    searchAll: (await collectionsToSearch(sql, viewer, {})).some(({ id }) => id === collection.id),
    found: (await foundUnits(sql, viewer, [unit!.id])).length > 0,
    facts: (await factsOfMemory(sql, viewer, memory.id)).length > 0,
  };
}
