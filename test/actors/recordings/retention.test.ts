import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keysOfRecording } from '../../../actors/recordings/recording-names.ts';
import { expireRecordings, type RecordingRetention } from '../../../actors/recordings/retention.ts';
import { type ObjectStore, openObjectStore } from '../../../storage/objects.ts';
import { listAudit } from '../../../storage/queries/audit.ts';
import { getCallById } from '../../../storage/queries/calls.ts';
import { updateRecordingSettings } from '../../../storage/queries/recording-settings.ts';
import { createRecording, getRecording, updateRecording } from '../../../storage/queries/recordings.ts';
import { openBucket } from '../../../storage/s3/bucket.ts';
import { openS3ObjectStore } from '../../../storage/s3/object-store.ts';
import { eventually } from '../../eventually.ts';
import { hasS3Server, type S3Server, startS3Server } from '../../storage/s3/s3-server.ts';
import { NOW } from '../../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../../storage/test-database.ts';
import { createTestClock, createTestLogger } from '../fakes.ts';
import { type Caller, seedCaller } from '../seeds.ts';

const DAY_MS = 86_400_000;

let database: TestDatabase;
let folder: string;
beforeAll(async () => {
  database = await createTestDatabase();
  folder = await mkdtemp(join(tmpdir(), 'tandem-retention-'));
});
afterAll(async () => {
  await database.drop();
  await rm(folder, { recursive: true, force: true });
});

const days = (count: number) => new Date(NOW.getTime() + count * DAY_MS);

/** A stored recording of a finished call, with a copy in every format. */
async function seedRecording(
  caller: Caller,
  objects: ObjectStore,
  { at = NOW, isSealed = false, node = 'node-1' } = {},
) {
  const { sql } = database;
  const { callId, workspaceId } = await caller.admit({ ownerNode: node });
  const id = randomUUID();
  await createRecording(sql, { id, callId, workspaceId, node, now: at });
  await sql`update calls set state = 'completed', recording_id = ${id} where call_id = ${callId}`;
  const objectKey = `recordings/${workspaceId}/${id}.wav${isSealed ? '.sealed' : ''}`;
  for (const key of keysOfRecording(objectKey)) {
    const sourcePath = join(folder, randomUUID());
    await writeFile(sourcePath, 'audio');
    await objects.putFile({ key, sourcePath });
  }
  await updateRecording(sql, { id, now: at, patch: { status: 'uploaded', objectKey } });
  return { id, callId, objectKey };
}

const kept = async (objects: ObjectStore, key: string) =>
  (await Promise.all(keysOfRecording(key).map((each) => objects.stat(each)))).filter((stat) => stat !== null).length;

async function startSweeping(objects: ObjectStore, clock = createTestClock(), node = 'node-1') {
  const logger = createTestLogger();
  const retention = expireRecordings({ ...{ sql: database.sql, objects, clock, logger }, node });
  await eventually(() => expect(clock.waiting()).toEqual([3_600_000]));
  return { retention, clock, logger, [Symbol.dispose]: () => retention.close() };
}

async function statusOf({ id, callId }: { id: string; callId: string }) {
  const [recording, call] = [await getRecording(database.sql, id), await getCallById(database.sql, callId)];
  expect(call?.recordingStatus).toBe(recording?.status);
  return { status: recording?.status, objectKey: recording?.objectKey };
}

interface Store {
  objects: ObjectStore;
  left(): Promise<string[]>;
  [Symbol.asyncDispose](): Promise<void>;
}

async function folderStore(): Promise<Store> {
  const root = await mkdtemp(join(folder, 'objects-'));
  const objects = await openObjectStore({ folder: root });
  const left = async () =>
    (await readdir(root, { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map((e) => e.name);
  return { objects, left, [Symbol.asyncDispose]: () => objects.close() };
}

let server: S3Server | null = null;
afterAll(() => server?.[Symbol.asyncDispose]());

async function s3Store(): Promise<Store> {
  server ??= await startS3Server();
  const settings = await server.createBucket();
  const silent = () => {};
  const objects = await openS3ObjectStore({
    folder: await mkdtemp(join(folder, 's3-')),
    bucket: openBucket({ ...settings, maxAttempts: 1 }),
    logger: { info: silent, warn: silent, error: silent },
    firstRetryMs: 10,
  });
  const left = async () => {
    await objects.settled();
    return await server!.keysIn(settings.bucket);
  };
  return { objects, left, [Symbol.asyncDispose]: () => objects.close() };
}

for (const [name, isThere, openStore] of [
  ['a folder', true, folderStore],
  ['an S3 bucket', hasS3Server, s3Store],
] as const) {
  describe.skipIf(!isThere)(`recording retention in ${name}`, () => {
    it('deletes a recording with all copies and peaks after the configured days, and audits that', async () => {
      await using store = await openStore();
      const { objects } = store;
      const caller = await seedCaller(database.sql);
      await updateRecordingSettings(database.sql, caller.workspaceId, { retentionDays: 30 });
      const recordings = [
        await seedRecording(caller, objects),
        await seedRecording(caller, objects, { isSealed: true }),
      ];
      const younger = await seedRecording(caller, objects, { at: days(1) });
      using sweeping = await startSweeping(objects);
      const { clock, retention } = sweeping;

      clock.advance(30 * DAY_MS);
      await retention.sweep();
      for (const recording of recordings) expect((await statusOf(recording)).status).toBe('uploaded');
      clock.advance(1);
      await retention.sweep();
      for (const recording of recordings) {
        expect((await statusOf(recording)).status).toBe('deleted');
        expect(await kept(objects, recording.objectKey)).toBe(0);
      }
      expect((await statusOf(younger)).status).toBe('uploaded');
      expect((await store.left()).length).toBe(keysOfRecording(younger.objectKey).length);

      // An upload or encoding could still be running until then.
      expect((await statusOf(recordings[0]!)).objectKey).toBe(recordings[0]!.objectKey);
      clock.advance(3_600_000);
      await retention.sweep();
      expect((await statusOf(recordings[0]!)).objectKey).toBeNull();
      const { rows } = await listAudit(database.sql, { workspaceId: caller.workspaceId }, { page: 1, limit: 10 });
      const deletions = rows.filter(({ action }) => action === 'recording.deleted');
      expect(deletions.map(({ targetId }) => targetId).toSorted()).toEqual(recordings.map(({ id }) => id).toSorted());
      expect(deletions[0]).toMatchObject({ actorUserId: null, details: { retention_days: 30 } });
    });

    it('finishes the deletion that a killed process started', async () => {
      await using store = await openStore();
      const caller = await seedCaller(database.sql);
      await updateRecordingSettings(database.sql, caller.workspaceId, { retentionDays: 1 });
      const recording = await seedRecording(caller, store.objects);
      let deletions = 0;
      const dying: ObjectStore = {
        ...store.objects,
        async delete(key) {
          deletions += 1;
          if (deletions > 3) throw new Error('killed');
          await store.objects.delete(key);
        },
      };
      const clock = createTestClock();
      clock.advance(2 * DAY_MS);
      using killed = await startSweeping(dying, clock);
      expect((await statusOf(recording)).status).toBe('deleted');
      expect(await kept(store.objects, recording.objectKey)).toBe(keysOfRecording(recording.objectKey).length - 3);
      killed.retention.close();

      const later = createTestClock();
      later.advance(3 * DAY_MS);
      using next = await startSweeping(store.objects, later);
      expect(await store.left()).toEqual([]);
      expect((await statusOf(recording)).objectKey).toBeNull();
      await next.retention.sweep();
    });
  });
}

describe('recording retention', () => {
  it('keeps recordings forever by default, and follows a changed setting', async () => {
    await using store = await folderStore();
    const caller = await seedCaller(database.sql);
    const recording = await seedRecording(caller, store.objects);
    // Not a later clock, because nothing expires before the database's clock says so.
    await database.sql`update recordings set created_at = created_at - interval '4000 days' where id = ${recording.id}`;
    using sweeping = await startSweeping(store.objects, createTestClock());
    expect((await statusOf(recording)).status).toBe('uploaded');
    await updateRecordingSettings(database.sql, caller.workspaceId, { retentionDays: 3650 });
    await sweeping.retention.sweep();
    expect((await statusOf(recording)).status).toBe('deleted');
  });

  it('deletes files of other nodes only from a shared store', async () => {
    await using store = await folderStore();
    const caller = await seedCaller(database.sql);
    await updateRecordingSettings(database.sql, caller.workspaceId, { retentionDays: 1 });
    const recording = await seedRecording(caller, store.objects, { node: 'node-2' });
    const all = keysOfRecording(recording.objectKey).length;
    const clock = createTestClock();
    clock.advance(2 * DAY_MS);
    using sweeping = await startSweeping(store.objects, clock);
    expect([(await statusOf(recording)).status, await kept(store.objects, recording.objectKey)]).toEqual([
      'deleted',
      all,
    ]);
    sweeping.retention.close();
    const later = createTestClock();
    later.advance(2 * DAY_MS);
    using sharing = await startSweeping({ ...store.objects, isShared: true }, later);
    expect(await kept(store.objects, recording.objectKey)).toBe(0);
    sharing.retention.close();
  });

  it('deletes a file that its node has not uploaded, although another node sweeps the shared store', async () => {
    await using mine = await folderStore();
    await using others = await folderStore();
    const caller = await seedCaller(database.sql);
    await updateRecordingSettings(database.sql, caller.workspaceId, { retentionDays: 1 });
    const recording = await seedRecording(caller, mine.objects, { node: 'node-2' });
    const clock = createTestClock();
    clock.advance(2 * DAY_MS);
    using other = await startSweeping({ ...others.objects, isShared: true }, clock);
    clock.advance(DAY_MS);
    await other.retention.sweep();
    expect((await statusOf(recording)).objectKey).not.toBeNull();
    const later = createTestClock();
    later.advance(3 * DAY_MS);
    using owner = await startSweeping({ ...mine.objects, isShared: true }, later, 'node-2');
    expect(await kept(mine.objects, recording.objectKey)).toBe(0);
    expect((await statusOf(recording)).objectKey).toBeNull();
    owner.retention.close();
    other.retention.close();
  });

  it('deletes the files of a node that is away once, and again before it forgets them', async () => {
    await using store = await folderStore();
    const caller = await seedCaller(database.sql);
    await updateRecordingSettings(database.sql, caller.workspaceId, { retentionDays: 1 });
    const recording = await seedRecording(caller, store.objects, { node: 'node-2' });
    const clock = createTestClock();
    clock.advance(2 * DAY_MS);
    const deleted: string[] = [];
    const remove = (key: string) => {
      deleted.push(key);
      return store.objects.delete(key);
    };
    using sweeping = await startSweeping({ ...store.objects, delete: remove, isShared: true }, clock);
    const deletions = () => deleted.filter((key) => key.includes(recording.id)).length;
    const once = keysOfRecording(recording.objectKey).length;
    for (const days of [1, 28]) {
      clock.advance(days * DAY_MS);
      await sweeping.retention.sweep();
      expect(deletions()).toBe(once);
    }
    clock.advance(DAY_MS);
    await sweeping.retention.sweep();
    expect(deletions()).toBeGreaterThan(once);
    expect((await statusOf(recording)).objectKey).toBeNull();
    sweeping.retention.close();
  });

  it('deletes many recordings once each, with two nodes sweeping', async () => {
    await using store = await folderStore();
    const caller = await seedCaller(database.sql, { channels: 500 });
    await updateRecordingSettings(database.sql, caller.workspaceId, { retentionDays: 1 });
    const seeded = await seedRecording(caller, store.objects);
    const { sql } = database;
    await sql`
      insert into recordings (id, call_id, workspace_id, status, object_key, created_at, updated_at)
      select gen_random_uuid(), call_id, workspace_id, 'uploaded', 'recordings/many/' || n || '.wav', created_at, updated_at
      from recordings, generate_series(1, 250) n where id = ${seeded.id}`;
    const clock = createTestClock();
    clock.advance(2 * DAY_MS);
    const sweeps: RecordingRetention[] = [];
    for (const _ of [1, 2]) {
      const logger = createTestLogger();
      sweeps.push(expireRecordings({ ...{ sql, objects: store.objects, clock, logger }, node: 'node-1' }));
    }
    await Promise.all(sweeps.map((each) => each.sweep()));
    for (const each of sweeps) each.close();
    const { total } = await listAudit(sql, { workspaceId: caller.workspaceId }, { page: 1, limit: 1 });
    expect(total).toBe(251);
  });
});
