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
import { factsOfMemory, historyOfFact } from '../../storage/queries/memory-facts.ts';
import { listMemoryHeads } from '../../storage/queries/memory-heads.ts';
import { collectionsToSearch, foundUnits } from '../../storage/queries/memory-search.ts';
import { addMember, type Role } from '../../storage/queries/workspaces.ts';
import { onEveryServer } from './every-server.ts';
import { fact, process, remember, seedColleague, seedMemories } from './memory-fixture.ts';
import { NOW } from './seed.ts';

const ROLES: readonly Role[] = ['owner', 'admin', 'developer', 'member', 'viewer'];

/** Who is in the team of every role, and who is not. */
const STANDINGS = ['theirs', 'of others'] as const;

/** What each role may do in each kind of collection that is theirs, or somebody else's. */
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

onEveryServer('what members of a workspace see of memories', (database) => {
  it('follows from role, kind of collection and whose it is, in every read', async () => {
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

  it('ends at once for a team that somebody is taken out of', async () => {
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

  it('of a team does not come back with somebody who left the workspace', async () => {
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

  it('does not let anybody delete what they do not see', async () => {
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

  it('is nothing, and no error, for ids that are none', async () => {
    const { sql, viewer } = await seedMemories(database().sql);
    for (const id of ["'; drop table memories; --", '', '__proto__', 'ffffffff']) {
      expect(await findMemory(sql, viewer, id)).toBeNull();
      expect(await findMemoryCollection(sql, viewer, id)).toBeNull();
      expect(await historyOfFact(sql, viewer, id)).toEqual([]);
      expect(await collectionsToSearch(sql, viewer, { ids: [id] })).toEqual([]);
      expect((await listMemoryHeads(sql, viewer, { page: 1, limit: 9, collectionId: id })).total).toBe(0);
    }
  });
});

onEveryServer('collections of memories', (database) => {
  it('are made once for each person, however many ask at the same time', async () => {
    const { sql, workspaceId } = await seedMemories(database().sql);
    const { userId } = await seedColleague(sql, workspaceId, 'member');
    const made = await Promise.all(
      Array.from({ length: 8 }, () => ensurePersonalCollection(sql, { workspaceId, userId, now: NOW })),
    );
    expect(new Set(made.map(({ id }) => id)).size).toBe(1);
  });

  it('have names of their own within their type, whatever the case, until they are deleted', async () => {
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

  it('of a team have members of the workspace alone', async () => {
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

  it('lose all that was in them when they are deleted', async () => {
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

/** Whether each of the reads shows the collection, or what is in it. */
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
    history: (await historyOfFact(sql, viewer, known.id)).length > 0,
  };
}
