import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startEraser } from '../../actors/privacy/eraser.actor.ts';
import { keysOfRecording } from '../../actors/recordings/recording-names.ts';
import { inTransaction, type Sql } from '../../storage/database.ts';
import { type ObjectStore, openObjectStore } from '../../storage/objects.ts';
import { eraseCall } from '../../storage/queries/call-erasure.ts';
import { insertDelivery } from '../../storage/queries/deliveries.ts';
import { createErasure, getErasure } from '../../storage/queries/erasures.ts';
import { joinNodes, markNodeSettled, takeOverLostNodes } from '../../storage/queries/nodes.ts';
import { createRecording } from '../../storage/queries/recordings.ts';
import { eventually } from '../eventually.ts';
import { NOW } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { createTestClock, createTestLogger } from './fakes.ts';
import { type Caller, seedCaller } from './seeds.ts';

const HOUR_MS = 3_600_000;
const NUMBER = '+919810004711';

let database: TestDatabase;
let sql: Sql;
let folder: string;
beforeAll(async () => {
  database = await createTestDatabase();
  sql = database.sql;
  folder = await mkdtemp(join(tmpdir(), 'tandem-eraser-'));
});
afterAll(async () => {
  await database.drop();
  await rm(folder, { recursive: true, force: true });
});

/** A node with a separate folder, after its first sweep. */
async function startNode(
  node: string,
  { clock = createTestClock(), isShared = false, keys = [] as string[], growing = null as string | null } = {},
) {
  const recordingsDir = await mkdtemp(join(folder, 'recordings-'));
  if (growing !== null) await writeFile(join(recordingsDir, growing), 'audio');
  const store = await openObjectStore({ folder: await mkdtemp(join(folder, 'objects-')) });
  const objects = { ...store, isShared };
  for (const key of keys) await put(objects, key);
  const eraser = startEraser({ sql, objects, node, recordingsDir, clock, logger: createTestLogger() });
  await eventually(() => expect(clock.waiting()).toEqual([60_000]));
  return { objects, recordingsDir, clock, eraser, [Symbol.dispose]: () => eraser[Symbol.dispose]() };
}

async function put(objects: ObjectStore, key: string): Promise<void> {
  const sourcePath = join(folder, randomUUID());
  await writeFile(sourcePath, 'audio');
  await objects.putFile({ key, sourcePath });
}

const left = async (objects: ObjectStore, key: string) =>
  (await Promise.all(keysOfRecording(key).map((each) => objects.stat(each)))).filter((stat) => stat !== null).length;

/** A finished call whose recording failed after the upload, so that its key is unknown. */
async function seedDeletedCall(caller: Caller, ownerNode: string): Promise<{ id: string; key: string }> {
  const { callId, workspaceId } = await caller.admit({ ownerNode });
  const id = randomUUID();
  await createRecording(sql, { id, callId, workspaceId, node: ownerNode, now: NOW });
  await sql`update recordings set status = 'failed' where id = ${id}`;
  await sql`update calls set state = 'completed' where call_id = ${callId}`;
  await inTransaction(sql, (tx) => eraseCall(tx, { callId, now: NOW }));
  return { id, key: `recordings/${workspaceId}/${id}.wav` };
}

type Deleted = Awaited<ReturnType<typeof seedDeletedCall>>;

describe('files of deleted calls', () => {
  it('disappear in every form from the node that holds them, and again after an hour', async () => {
    const caller = await seedCaller(sql);
    using mine = await startNode('node-1');
    using other = await startNode('node-2');
    const { id, key } = await seedDeletedCall(caller, 'node-1');
    const growing = join(mine.recordingsDir, `${id}.wav.sealed`);
    await writeFile(growing, 'audio');
    for (const each of [...keysOfRecording(key), ...keysOfRecording(`${key}.sealed`)]) await put(mine.objects, each);
    await other.eraser.work();
    expect(await left(mine.objects, key)).toBeGreaterThan(1);
    await mine.eraser.work();
    expect([await left(mine.objects, key), await left(mine.objects, `${key}.sealed`)]).toEqual([0, 0]);
    expect(await readdir(mine.recordingsDir)).toEqual([]);

    // A pending encoding.
    await put(mine.objects, keysOfRecording(key)[1]!);
    mine.clock.jumpTo(new Date(NOW.getTime() + HOUR_MS - 1));
    await mine.eraser.work();
    expect(await left(mine.objects, key)).toBe(1);
    mine.clock.jumpTo(new Date(NOW.getTime() + HOUR_MS + 1));
    await mine.eraser.work();
    expect(await left(mine.objects, key)).toBe(0);
    expect(await sql`select 1 from erased_recordings`).toHaveLength(0);
  });

  it('disappear from the node that has not uploaded them, although another node works on the shared store', async () => {
    const caller = await seedCaller(sql);
    using other = await startNode('node-2', { isShared: true });
    using mine = await startNode('node-1', { isShared: true });
    const { id, key } = await seedDeletedCall(caller, 'node-1');
    const growing = join(mine.recordingsDir, `${id}.wav`);
    await writeFile(growing, 'audio');
    await put(mine.objects, key);
    await other.eraser.work();
    expect(await left(mine.objects, key)).toBe(1);
    await mine.eraser.work();
    expect([await left(mine.objects, key), await readdir(mine.recordingsDir)]).toEqual([0, []]);
    const deleted: string[] = [];
    mine.objects.delete = async (each) => void deleted.push(each);
    await mine.eraser.work();
    expect(deleted).toEqual([]);
  });

  it('disappear from a node that was away for a day', async () => {
    const caller = await seedCaller(sql);
    using other = await startNode('node-2', { isShared: true });
    const { key } = await seedDeletedCall(caller, 'node-1');
    for (const hours of [0, 2, 24]) {
      other.clock.jumpTo(new Date(NOW.getTime() + hours * HOUR_MS));
      await other.eraser.work();
    }
    const clock = createTestClock();
    clock.jumpTo(new Date(NOW.getTime() + 25 * HOUR_MS));
    using mine = await startNode('node-1', { clock, isShared: true, keys: [key] });
    expect(await left(mine.objects, key)).toBe(0);
    expect(await sql`select 1 from erased_recordings`).toHaveLength(0);
  });

  it('need no further deletion after a month if their node never returns', async () => {
    const caller = await seedCaller(sql);
    using other = await startNode('node-2', { isShared: true });
    await seedDeletedCall(caller, 'node-1');
    await other.eraser.work();
    other.clock.jumpTo(new Date(NOW.getTime() + 31 * 24 * HOUR_MS));
    await other.eraser.work();
    expect(await sql`select 1 from erased_recordings`).toHaveLength(0);
  });

  it('disappear although those of another call cannot be deleted, which are tried again', async () => {
    const caller = await seedCaller(sql);
    using node = await startNode('node-1');
    const calls = [await seedDeletedCall(caller, 'node-1'), await seedDeletedCall(caller, 'node-1')];
    const [first, second] = calls.toSorted((a, b) => (a.id < b.id ? -1 : 1)) as [Deleted, Deleted];
    for (const { key } of calls) await put(node.objects, key);
    const remove = node.objects.delete;
    node.objects.delete = async (key) => {
      if (key === first.key) throw new Error('EIO');
      await remove(key);
    };
    await node.eraser.work();
    expect([await left(node.objects, first.key), await left(node.objects, second.key)]).toEqual([1, 0]);
    node.objects.delete = remove;
    await node.eraser.work();
    expect(await left(node.objects, first.key)).toBe(0);
    await sql`delete from erased_recordings`;
  });

  it('do not keep requested erasures waiting while the object store is unavailable', async () => {
    const caller = await seedCaller(sql);
    using node = await startNode('node-1');
    const calls: Deleted[] = [];
    while (calls.length < 12) calls.push(await seedDeletedCall(caller, 'node-1'));
    const tried: string[] = [];
    const remove = node.objects.delete;
    node.objects.delete = async (key) => {
      tried.push(key);
      throw new Error('ETIMEDOUT');
    };
    await node.eraser.work();
    expect(tried).toHaveLength(5);
    await node.eraser.work();
    expect(new Set(tried).size).toBe(10);
    node.objects.delete = remove;
    await node.eraser.work();
    await node.eraser.work();
    expect(await sql`select 1 from erased_recordings where purged_at is null`).toHaveLength(0);
    await sql`delete from erased_recordings`;
  });
});

describe('erasure', () => {
  it('runs once across two nodes, and moves from a dead node to a live one', async () => {
    const caller = await seedCaller(sql, { channels: 500 });
    const { workspaceId } = caller;
    for (let count = 0; count < 15; count += 1) await caller.admit({ customerNumber: NUMBER });
    await sql`update calls set state = 'completed' where workspace_id = ${workspaceId}`;
    const [id, lost] = [randomUUID(), randomUUID()];
    await inTransaction(sql, (tx) => createErasure(tx, { id: lost, workspaceId, e164: '+919810004712', now: NOW }));
    await sql`update erasures set leased_until = ${new Date(NOW.getTime() + HOUR_MS)} where id = ${lost}`;
    using one = await startNode('node-1');
    using two = await startNode('node-2');
    await inTransaction(sql, (tx) => createErasure(tx, { id, workspaceId, e164: NUMBER, now: NOW }));
    await Promise.all([one, two, one].map(({ eraser }) => eraser.work()));
    expect(await getErasure(sql, { id, workspaceId })).toMatchObject({
      ...{ status: 'completed', e164: null, last4: '4711' },
      deleted: { calls: 15 },
    });
    expect(await getErasure(sql, { id: lost, workspaceId })).toMatchObject({ status: 'running' });
    two.clock.jumpTo(new Date(NOW.getTime() + HOUR_MS));
    await two.eraser.work();
    expect(await getErasure(sql, { id: lost, workspaceId })).toMatchObject({ status: 'completed', e164: null });
  });

  it('does not wait for a recording whose node is lost, and deletes its file when that node returns', async () => {
    const { admit, workspaceId } = await seedCaller(sql);
    const lost = { node: 'node-lost', boot: randomUUID() };
    const { callId } = await admit({ customerNumber: NUMBER, ownerNode: lost.node });
    await joinNodes(sql, { ...lost, recordingsDir: '/', leaseMs: 0, now: NOW });
    const recordingId = randomUUID();
    await createRecording(sql, { id: recordingId, callId, workspaceId, node: lost.node, now: NOW });
    await sql`update recordings set status = 'processing' where id = ${recordingId}`;
    await sql`update calls set state = 'completed' where call_id = ${callId}`;
    const id = randomUUID();
    await inTransaction(sql, (tx) => createErasure(tx, { id, workspaceId, e164: NUMBER, now: NOW }));
    using node = await startNode('node-1', { isShared: true });
    expect(await getErasure(sql, { id, workspaceId })).toMatchObject({ status: 'running' });
    await takeOverLostNodes(sql, { node: 'node-1' });
    await markNodeSettled(sql, { ...lost, takenOverBy: 'node-1', now: NOW });
    await node.eraser.work();
    expect(await getErasure(sql, { id, workspaceId })).toMatchObject({
      status: 'completed',
      deleted: { calls: 1, recordings: 1 },
    });
    using returned = await startNode(lost.node, { isShared: true, growing: `${recordingId}.wav` });
    expect(await readdir(returned.recordingsDir)).toEqual([]);
  });

  it('deletes all deliveries with the number while retention deletes some of them', async () => {
    const { workspaceId } = await seedCaller(sql);
    const subject = { workspaceId, callId: null, eventSequence: null, event: 'stt.failed', eventId: 'event-1' };
    const ids = Array.from({ length: 101 }, () => randomUUID());
    for (const id of ids) {
      const sent = { id, url: 'https://example.com/hook', body: NUMBER, secretEncrypted: Buffer.from('sealed') };
      await insertDelivery(sql, subject, { ...sent, nextAttemptAt: NOW, createdAt: NOW });
    }
    const id = randomUUID();
    using node = await startNode('node-1');
    const { deleted, release } = { deleted: Promise.withResolvers<void>(), release: Promise.withResolvers<void>() };
    const retention = inTransaction(sql, async (tx) => {
      await tx`delete from deliveries where id = (select id from deliveries where body = ${NUMBER} limit 1)`;
      deleted.resolve();
      await release.promise;
    });
    await deleted.promise;
    await inTransaction(sql, (tx) => createErasure(tx, { id, workspaceId, e164: NUMBER, now: NOW }));
    const erased = node.eraser.work();
    await eventually(async () =>
      expect(
        await sql`
          select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      ).not.toHaveLength(0),
    );
    release.resolve();
    await Promise.all([retention, erased]);
    expect(await sql`select 1 from deliveries where workspace_id = ${workspaceId}`).toHaveLength(0);
    expect(await getErasure(sql, { id, workspaceId })).toMatchObject({
      status: 'completed',
      deleted: { deliveries: 100 },
    });
  });
});
