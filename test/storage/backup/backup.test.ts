import { spawnSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import {
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openArchive, verifyArchive } from '../../../storage/backup/archive-reader.ts';
import { createArchive } from '../../../storage/backup/archive-writer.ts';
import { type BackUpOptions, backUp, keyIdOf } from '../../../storage/backup/back-up.ts';
import { type KeptObjects, openKeptObjects } from '../../../storage/backup/kept-objects.ts';
import { type Restored, restore } from '../../../storage/backup/restore.ts';
import { decodeHeader, encodeHeader } from '../../../storage/backup/tar-header.ts';
import type { Sql, Tx } from '../../../storage/database.ts';
import { topUp, walletOf } from '../../../storage/ledger.ts';
import { admitCall, getCallById } from '../../../storage/queries/calls.ts';
import { recordingsToPurge } from '../../../storage/queries/recording-retention.ts';
import { createRecording, updateRecording } from '../../../storage/queries/recordings.ts';
import type { S3Config } from '../../../storage/s3/bucket-settings.ts';
import { eventually } from '../../eventually.ts';
import { onEveryServer } from '../every-server.ts';
import { hasS3Server, startS3Server } from '../s3/s3-server.ts';
import { admission, NOW, seedTrunk, seedWorkspace, USD } from '../seed.ts';
import { createTestDatabase, externalServer, type TestDatabase } from '../test-database.ts';

const KEY = Buffer.alloc(32, 5);
const LOCAL = {
  ...{ s3Endpoint: null, s3PublicEndpoint: null, s3Region: 'us-east-1', s3Bucket: null, s3Prefix: '' },
  ...{ s3PathStyle: 'auto' as const, s3AccessKeyId: null, s3SecretAccessKey: null },
} satisfies S3Config;

let folder: string;
let file: string;
let targetDir: string;
let objects: KeptObjects;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-backup-'));
  file = join(folder, 'tandem.tar');
  targetDir = join(folder, 'target');
  await mkdir(targetDir);
  objects = await openKeptObjects(LOCAL, { folder: join(folder, 'objects') });
});

afterEach(async () => {
  await objects[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

async function put(key: string, bytes: Buffer): Promise<void> {
  const sourcePath = join(folder, randomUUID());
  await writeFile(sourcePath, bytes);
  await objects.put({ key, sourcePath });
}

async function writeNew(path: string, content: string | Buffer): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
}

async function seedCall(
  sql: Sql,
  recording: Buffer | null,
): Promise<{ callId: string; key: string; workspaceId: string }> {
  const { workspace, user } = await seedWorkspace(sql);
  await seedTrunk(sql, { workspaceId: workspace.id, numbers: [`+91115${String(Date.now()).slice(-7)}`] });
  const metadata = { note: 'tab\t, line\n, backslash \\N', nested: { b: 1, a: [null] } };
  const { call } = await admitCall(sql, admission({ workspaceId: workspace.id, createdByUserId: user.id, metadata }));
  const id = randomUUID();
  const key = `recordings/${workspace.id}/${id}.wav`;
  await createRecording(sql, { id, callId: call.callId, workspaceId: workspace.id, node: call.ownerNode, now: NOW });
  await updateRecording(sql, { id, now: NOW, patch: { status: 'uploaded', objectKey: key } });
  if (recording !== null) await put(key, recording);
  return { callId: call.callId, key, workspaceId: workspace.id };
}

/** Only root can mount a file system. */
const canMount = spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()]).status === 0;
const FULL = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });

const back = (sql: Sql, options: Partial<Pick<BackUpOptions, 'objects' | 'withKey' | 'onProgress'>> = {}) =>
  backUp({
    ...{ sql, objects, file, node: 'node-1', secretKey: KEY, withKey: false, tandemVersion: '1.0.0', now: NOW },
    onProgress: () => {},
    ...options,
  });

interface RestoreInto {
  replace?: boolean;
  withoutKey?: boolean;
  configuredKey?: Buffer | null;
  put?: KeptObjects['put'];
  databaseCrash?: string | null;
}

async function restoreInto(sql: Sql, options: RestoreInto = {}): Promise<Restored> {
  const { configuredKey = KEY, replace = false, withoutKey = false, databaseCrash = null, ...overrides } = options;
  return await restore({
    ...{ file, replace, withoutKey, newNode: randomUUID, onProgress: () => {} },
    openTarget: async () => {
      const kept = await openKeptObjects(LOCAL, { folder: join(targetDir, 'objects') });
      const close = () => kept[Symbol.asyncDispose]();
      const target = { ...kept, ...overrides };
      return {
        sql,
        objects: target,
        dataDir: targetDir,
        configuredKey,
        previousKeys: [],
        databaseCrash: async () => databaseCrash,
        [Symbol.asyncDispose]: close,
      };
    },
  });
}

async function contentsOf(sql: Sql): Promise<Record<string, unknown>> {
  const tables = await sql<{ name: string }[]>`
    select tablename::text as name from pg_tables where schemaname = 'public' and tablename <> 'schema_migrations' order by 1`;
  const contents: Record<string, unknown> = {};
  for (const { name } of tables) {
    contents[name] = await sql.unsafe(`select to_jsonb(t)::text as row from public."${name}" t order by 1`);
  }
  return contents;
}

async function emptyDatabase(from: TestDatabase, use: (sql: Sql) => Promise<void>): Promise<void> {
  const isExternal = new URL(from.url).port === new URL(EXTERNAL).port;
  const server = isExternal ? externalServer() : null;
  const database = server === null ? await createTestDatabase() : await server.createDatabase();
  try {
    await use(database.sql);
  } finally {
    await database.drop();
    await server?.close();
  }
}
const EXTERNAL = process.env.TANDEM_TEST_DATABASE_URL ?? 'postgres://root:test@127.0.0.1:5432/test';

onEveryServer('backup', (database) => {
  it('restores every row and the objects they refer to, and continues the id sequences', async () => {
    const { sql } = database();
    const recording = randomBytes(300_000);
    const { callId, key, workspaceId } = await seedCall(sql, recording);
    await put('recordings/orphan.wav', Buffer.from('nothing refers to it'));
    const before = await contentsOf(sql);
    const { manifest, sizeBytes } = await back(sql);
    expect(manifest.objects).toEqual({ count: 1, bytes: recording.length, missing: 0 });
    expect((await stat(file)).size).toBe(sizeBytes);
    expect((await readdir(folder)).filter((name) => /partial|keys/.test(name))).toEqual([]);
    await emptyDatabase(database(), async (target) => {
      expect(await restoreInto(target)).toMatchObject({ key: 'present', manifest: { created_at: NOW.toISOString() } });
      expect(await contentsOf(target)).toEqual(before);
      expect(await readFile(join(targetDir, 'objects', key))).toEqual(recording);
      await expect(stat(join(targetDir, 'objects/recordings/orphan.wav'))).rejects.toThrow('ENOENT');
      expect((await readFile(join(targetDir, 'node-id'), 'utf8')).trim()).toBe('node-1');
      expect((await getCallById(target, callId))?.metadata).toEqual((await getCallById(sql, callId))?.metadata);
      // Triggers, keys and sequences still work.
      await topUp(target, { workspaceId, amountNano: USD, paymentType: 'one_time', operationKey: 'after', at: NOW });
      expect((await walletOf(target, workspaceId)).balanceNano).toBe(11n * USD);
      await expect(target`delete from entries`).rejects.toThrow('append-only');
      await expect(target`delete from calls where call_id = ${callId}`).rejects.toThrow('foreign key');
      await seedWorkspace(target, { name: 'Next' });
    });
  });

  it('gives the recordings to the node of the target folder, which deletes them after their retention', async () => {
    const { sql } = database();
    const { callId, key } = await seedCall(sql, randomBytes(10));
    await back(sql);
    await writeFile(join(targetDir, 'node-id'), 'node-2\n');
    await emptyDatabase(database(), async (target) => {
      await restoreInto(target);
      expect(await getCallById(target, callId)).toMatchObject({ ownerNode: 'node-2' });
      await target`update recordings set status = 'deleted', deleted_at = ${NOW}`;
      const purged = (node: string) => recordingsToPurge(target, { node, afterId: null, limit: 10 });
      expect(await purged('node-2')).toMatchObject([{ objectKey: key }]);
      expect(await purged('node-1')).toEqual([]);
    });
  });

  it('takes one consistent snapshot while the database changes', async () => {
    const { sql } = database();
    const { workspaceId } = await seedCall(sql, randomBytes(10));
    const [locked, changed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const holding = sql.begin(async (tx) => {
      await tx`lock table calls in access exclusive mode`;
      locked.resolve();
      await changed.promise;
    });
    await locked.promise;
    const backingUp = back(sql);
    // By then the backup has read the balances, but not the ledger entries.
    await eventually(async () => {
      const waiting = await sql`
        select 1 from pg_locks l join pg_database d on d.oid = l.database
        where not l.granted and l.relation = 'calls'::regclass and d.datname = current_database()`;
      expect(waiting).toHaveLength(1);
    });
    await topUp(sql, { workspaceId, amountNano: USD, paymentType: 'one_time', operationKey: 'late', at: NOW });
    changed.resolve();
    await holding;
    expect((await backingUp).manifest.ledger.entries).toBe(2);
    await emptyDatabase(database(), async (target) => {
      await restoreInto(target);
      expect((await walletOf(target, workspaceId)).balanceNano).toBe(10n * USD);
    });
  });
});

describe('backup file', () => {
  let database: TestDatabase;
  let target: TestDatabase;

  beforeEach(async () => {
    [database, target] = [await createTestDatabase(), await createTestDatabase()];
  });
  afterEach(async () => {
    await database.drop();
    await target.drop();
  });

  it('keeps a link that leads nowhere in place of the backup', async () => {
    await symlink('elsewhere.tar', file);
    await expect(back(database.sql)).rejects.toMatchObject({ code: 'BACKUP_EXISTS' });
    expect(await readlink(file)).toBe('elsewhere.tar');
  });

  it('counts missing objects and restores without them', async () => {
    await seedCall(database.sql, null);
    expect((await back(database.sql)).manifest.objects).toEqual({ count: 0, bytes: 0, missing: 1 });
    await restoreInto(target.sql);
    const [row] = await target.sql`select count(*)::int as calls from calls`;
    expect(row).toEqual({ calls: 1 });
  });

  it('counts an object as missing if it is deleted between being found and being read', async () => {
    const kept = randomBytes(100_000);
    const { key } = await seedCall(database.sql, kept);
    const { key: deleted } = await seedCall(database.sql, randomBytes(10));
    const stat = async (asked: string) => {
      const object = await objects.stat(asked);
      if (asked === deleted) await rm(join(folder, 'objects', asked));
      return object;
    };
    const { manifest } = await back(database.sql, { objects: { ...objects, stat } });
    expect(manifest.objects).toEqual({ count: 1, bytes: kept.length, missing: 1 });
    await restoreInto(target.sql);
    expect(await readFile(join(targetDir, 'objects', key))).toEqual(kept);
  });

  it('never overwrites a file and leaves none behind on failure', async () => {
    await seedCall(database.sql, randomBytes(10));
    const failing = {
      stat: objects.stat,
      // biome-ignore lint/correctness/useYield: fails before the first byte
      async *read(): AsyncGenerator<Buffer> {
        throw new Error('disk error');
      },
    };
    const attempt = backUp({
      ...{ sql: database.sql, objects: failing, file, node: null, secretKey: null, withKey: false, tandemVersion: '1' },
      ...{ now: NOW, onProgress: () => {} },
    });
    await expect(attempt).rejects.toThrow('disk error');
    expect((await readdir(folder)).filter((name) => name.startsWith('tandem.tar'))).toEqual([]);
    await back(database.sql);
    await expect(back(database.sql)).rejects.toMatchObject({ code: 'BACKUP_EXISTS' });
  });

  it('never mixes two backups that run at once under one name', async () => {
    const [first, second] = await Promise.all([createArchive(file, { now: NOW }), createArchive(file, { now: NOW })]);
    await first.addBuffer('database/calls', Buffer.alloc(2_000, 1));
    await second.addBuffer('database/calls', Buffer.alloc(9_000, 2));
    const manifest = { format: 'tandem-backup', version: 1 } as never;
    await first.finish(manifest);
    await expect(second.finish(manifest)).rejects.toMatchObject({ code: 'BACKUP_EXISTS' });
    await second.abandon();
    await using archive = await openArchive(file);
    await verifyArchive(archive, () => {});
    expect((await readdir(folder)).filter((name) => name.startsWith('tandem.tar'))).toEqual(['tandem.tar']);
  });

  it('may be idle in its transaction without limit, because a disk may stall', async () => {
    let shown: Promise<readonly object[]> | null = null;
    let transaction: Tx | null = null;
    const begin = (work: (tx: Tx) => unknown) =>
      database.sql.begin((tx) => {
        transaction = tx;
        return work(tx);
      });
    const sql = new Proxy(database.sql, {
      get: (target, key) => (key === 'begin' ? begin : Reflect.get(target, key)),
    });
    await back(sql, {
      onProgress: () => {
        shown ??= transaction!`show idle_in_transaction_session_timeout`.execute();
      },
    });
    expect(await shown).toEqual([{ idleInTransactionSessionTimeout: '0' }]);
  });

  it('names the file that cannot be written', async () => {
    await rm(folder, { recursive: true });
    await expect(back(database.sql)).rejects.toMatchObject({
      code: 'NOT_WRITTEN',
      message: expect.stringMatching(/^\S*tandem\.tar cannot be written: ENOENT/),
    });
  });

  it('asks for room if the disk is full meanwhile', async () => {
    await seedCall(database.sql, randomBytes(10));
    const stat = () => Promise.reject(FULL);
    await expect(back(database.sql, { objects: { ...objects, stat } })).rejects.toMatchObject({
      code: 'NOT_WRITTEN',
      message: 'The disk is full: ENOSPC: no space left on device. Make room, then back up again.',
    });
  });

  it.skipIf(!canMount)('asks for room in the same words if the disk of the file is full', async () => {
    await seedCall(database.sql, null);
    const disk = join(folder, 'disk');
    await mkdir(disk);
    expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4k', 'tmpfs', disk]).status).toBe(0);
    file = join(disk, 'tandem.tar');
    await expect(back(database.sql).finally(() => spawnSync('umount', [disk]))).rejects.toMatchObject({
      code: 'NOT_WRITTEN',
      message: 'The disk is full: ENOSPC: no space left on device, write. Make room, then back up again.',
    });
  });

  it('excludes the master key by default', async () => {
    await back(database.sql);
    const withoutKey = await readFile(file);
    expect(withoutKey.includes(KEY.toString('base64'))).toBe(false);
    await rm(file);
    await back(database.sql, { withKey: true });
    expect((await readFile(file)).includes(KEY.toString('base64'))).toBe(true);
    await restoreInto(target.sql, { configuredKey: null });
    const restored = Buffer.from(await readFile(join(targetDir, 'secret-key'), 'utf8'), 'base64');
    expect(keyIdOf(restored)).toBe(keyIdOf(KEY));
  });

  it('requires its own master key for a restore, unless overridden', async () => {
    await seedCall(database.sql, null);
    await back(database.sql);
    const without = { configuredKey: null };
    await expect(restoreInto(target.sql, without)).rejects.toMatchObject({ code: 'SECRET_KEY_REQUIRED' });
    const other = { configuredKey: Buffer.alloc(32, 6) };
    await expect(restoreInto(target.sql, other)).rejects.toMatchObject({ code: 'SECRET_KEY_DIFFERS' });
    expect(await target.sql`select 1 from calls`).toHaveLength(0);
    expect(await restoreInto(target.sql, { ...without, withoutKey: true })).toMatchObject({ key: 'missing' });
  });

  it('requires an empty database for a restore, unless it may replace the data', async () => {
    const { callId } = await seedCall(database.sql, randomBytes(10));
    await back(database.sql);
    await seedCall(target.sql, null);
    const before = await contentsOf(target.sql);
    await expect(restoreInto(target.sql)).rejects.toMatchObject({ code: 'TARGET_NOT_EMPTY' });
    expect(await contentsOf(target.sql)).toEqual(before);
    await target.sql`create table of_another_program (id integer)`;
    await restoreInto(target.sql, { replace: true });
    const calls = await target.sql<{ callId: string }[]>`select call_id from calls`;
    expect(calls.map((row) => row.callId)).toEqual([callId]);
    expect(await target.sql`select * from of_another_program`).toHaveLength(0);
  });

  it('leaves out the id sequences of another program in the database', async () => {
    for (const { sql } of [database, target]) await sql`create table of_another_program (id serial)`;
    await database.sql`insert into of_another_program default values`;
    await target.sql`insert into of_another_program select nextval('of_another_program_id_seq') from generate_series(1, 9)`;
    await back(database.sql);
    await restoreInto(target.sql);
    expect(await target.sql`select nextval('of_another_program_id_seq')::int as next`).toEqual([{ next: 10 }]);
    await using third = await createTestDatabase();
    await restoreInto(third.sql);
    expect(await third.sql`select to_regclass('of_another_program') as found`).toEqual([{ found: null }]);
  });

  it('rolls back if a balance differs from its ledger entries', async () => {
    const { workspaceId } = await seedCall(database.sql, null);
    await database.sql`
      update accounts set balance_nano = balance_nano + 1 where workspace_id = ${workspaceId} and kind = 'wallet'`;
    await back(database.sql);
    await expect(restoreInto(target.sql)).rejects.toMatchObject({
      code: 'RESTORE_NOT_VERIFIED',
      message: expect.stringContaining('1 balances differ'),
    });
    expect(await target.sql`select 1 from calls union all select 1 from workspaces`).toHaveLength(0);
  });

  it('asks for room if the disk is full', async () => {
    await seedCall(database.sql, randomBytes(10));
    await back(database.sql);
    const put = () => Promise.reject(FULL);
    await expect(restoreInto(target.sql, { put })).rejects.toMatchObject({
      code: 'NOT_WRITTEN',
      message: 'The disk is full: ENOSPC: no space left on device. Make room, then restore again.',
    });
    await restoreInto(target.sql);
  });

  it.each([
    [
      'could not write to file "pg_wal/xlogtemp.7": No space left on device',
      'The disk is full: could not write to file "pg_wal/xlogtemp.7": No space left on device. Make room, then restore again.',
    ],
    [null, 'The database failed: read ECONNRESET. See its log, then restore again.'],
  ])('says why the database ended the connection, for the crash %j', async (databaseCrash, message) => {
    await back(database.sql);
    const begin = () => Promise.reject(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }));
    const sql = new Proxy(target.sql, {
      get: (_, key) => (key === 'begin' ? begin : Reflect.get(target.sql, key)),
    });
    await expect(restoreInto(sql, { databaseCrash })).rejects.toMatchObject({ code: 'NOT_WRITTEN', message });
    await restoreInto(target.sql);
  });

  it('leaves the replaced data unchanged if the load fails', async () => {
    const { workspaceId } = await seedCall(database.sql, randomBytes(10));
    await database.sql`
      update accounts set balance_nano = balance_nano + 1 where workspace_id = ${workspaceId} and kind = 'wallet'`;
    await back(database.sql, { withKey: true });
    await seedCall(target.sql, null);
    const before = await contentsOf(target.sql);
    const files = {
      ...{ 'secret-key': 'another key', 'node-id': 'node-2' },
      ...{ 'objects/recordings/old.wav': 'old', 'objects/.deleted/recordings/older.wav': '' },
    };
    for (const [name, text] of Object.entries(files)) await writeNew(join(targetDir, name), text);
    const restoring = restoreInto(target.sql, { replace: true, configuredKey: null });
    await expect(restoring).rejects.toMatchObject({ code: 'RESTORE_NOT_VERIFIED' });
    expect(await contentsOf(target.sql)).toEqual(before);
    for (const [name, text] of Object.entries(files)) expect(await readFile(join(targetDir, name), 'utf8')).toBe(text);
    expect((await readdir(targetDir)).sort()).toEqual(['node-id', 'objects', 'secret-key']);
  });

  it('restores into a linked folder of another disk, and deletes what it replaces there', async () => {
    const { key } = await seedCall(database.sql, Buffer.from('new'));
    await back(database.sql);
    const disk = join(targetDir, 'disk');
    await mkdir(join(disk, 'objects/recordings'), { recursive: true });
    await symlink('disk/objects', join(targetDir, 'objects'));
    const old = join(disk, 'objects/recordings/old.wav');
    await writeFile(old, 'old');
    const deletion = join(disk, 'objects/.deleted', key);
    await writeNew(deletion, '');
    const put = () => Promise.reject(FULL);
    await expect(restoreInto(target.sql, { replace: true, put })).rejects.toMatchObject({ code: 'NOT_WRITTEN' });
    expect(await readFile(old, 'utf8')).toBe('old');
    await restoreInto(target.sql, { replace: true });
    expect(await readlink(join(targetDir, 'objects'))).toBe('disk/objects');
    expect(await readFile(join(disk, 'objects', key), 'utf8')).toBe('new');
    expect(await readdir(disk)).toEqual(['objects']);
    for (const replaced of [old, deletion]) await expect(stat(replaced)).rejects.toMatchObject({ code: 'ENOENT' });
    expect((await readdir(targetDir)).sort()).toEqual(['disk', 'heartbeat', 'node-id', 'objects']);
  });

  it('keeps a folder beside a linked folder of objects, whatever its name', async () => {
    await seedCall(database.sql, randomBytes(10));
    await back(database.sql);
    const disk = join(folder, 'disk');
    const oldIn = (name: string) => join(disk, name, 'recordings/old.wav');
    for (const name of ['objects', 'objects.replaced']) await writeNew(oldIn(name), name);
    await symlink(join(disk, 'objects'), join(targetDir, 'objects'));
    const put = () => Promise.reject(FULL);
    const failing = () => restoreInto(target.sql, { replace: true, put });
    await expect(failing()).rejects.toMatchObject({ code: 'NOT_WRITTEN' });
    await expect(failing()).rejects.toMatchObject({ code: 'NOT_WRITTEN' });
    expect(await readFile(oldIn('objects'), 'utf8')).toBe('objects');
    await restoreInto(target.sql, { replace: true });
    expect(await readFile(oldIn('objects.replaced'), 'utf8')).toBe('objects.replaced');
  });

  it('restores into two links that lead to one folder', async () => {
    const { key } = await seedCall(database.sql, Buffer.from('new'));
    await back(database.sql);
    const disk = join(folder, 'disk');
    const old = join(disk, 'recordings/old.wav');
    await writeNew(old, 'old');
    for (const name of ['objects', 'recordings']) await symlink(disk, join(targetDir, name));
    const put = () => Promise.reject(FULL);
    await expect(restoreInto(target.sql, { replace: true, put })).rejects.toMatchObject({ code: 'NOT_WRITTEN' });
    expect(await readFile(old, 'utf8')).toBe('old');
    await restoreInto(target.sql, { replace: true });
    expect(await readFile(join(disk, key), 'utf8')).toBe('new');
    expect(await readdir(disk)).toEqual(['recordings']);
    await expect(stat(old)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it.skipIf(!canMount)('restores into a mount point, and keeps other files there', async () => {
    const { key } = await seedCall(database.sql, Buffer.from('new'));
    await back(database.sql);
    const mounted = join(targetDir, 'objects');
    await mkdir(mounted);
    expect(spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', mounted]).status).toBe(0);
    try {
      const old = join(mounted, 'recordings/old.wav');
      await writeNew(old, 'old');
      await mkdir(join(mounted, 'lost+found'));
      const put = () => Promise.reject(FULL);
      await expect(restoreInto(target.sql, { replace: true, put })).rejects.toMatchObject({ code: 'NOT_WRITTEN' });
      expect(await readFile(old, 'utf8')).toBe('old');
      await restoreInto(target.sql, { replace: true });
      expect(await readFile(join(mounted, key), 'utf8')).toBe('new');
      await expect(stat(old)).rejects.toMatchObject({ code: 'ENOENT' });
      expect((await readdir(mounted)).sort()).toEqual(['lost+found', 'recordings']);
    } finally {
      spawnSync('umount', [mounted]);
    }
  });

  it('leaves all objects in place if one of their folders leads to another disk', async () => {
    await back(database.sql);
    const kept = { 'disk/old.wav': 'old', 'objects/announcements/old.wav': 'older' };
    for (const [name, text] of Object.entries(kept)) await writeNew(join(targetDir, name), text);
    const linked = join(targetDir, 'objects/recordings');
    await symlink('../disk', linked);
    await expect(restoreInto(target.sql, { replace: true })).rejects.toMatchObject({
      code: 'NOT_WRITTEN',
      message: `${linked} is a link or mount point, which --replace cannot set aside. Nothing was restored. Empty it and the database, then restore without --replace.`,
    });
    for (const [name, text] of Object.entries(kept)) expect(await readFile(join(targetDir, name), 'utf8')).toBe(text);
    expect((await readdir(join(targetDir, 'objects'))).sort()).toEqual(['announcements', 'recordings']);
  });

  it('returns the replaced objects if a restore fails after one that was interrupted', async () => {
    await seedCall(database.sql, Buffer.from('new'));
    await back(database.sql);
    const old = join(targetDir, 'objects/recordings/old.wav');
    await writeNew(old, 'old');
    const interrupted = join(folder, 'interrupted');
    // Copies the data folder as an interruption at this moment would leave it.
    const put: KeptObjects['put'] = async ({ key, sourcePath }) => {
      await writeNew(join(targetDir, 'objects', key), await readFile(sourcePath));
      await cp(targetDir, interrupted, { recursive: true });
      throw FULL;
    };
    await expect(restoreInto(target.sql, { replace: true, put })).rejects.toMatchObject({ code: 'NOT_WRITTEN' });
    expect(await readdir(join(targetDir, 'objects/recordings'))).toEqual(['old.wav']);
    await rm(targetDir, { recursive: true });
    await rename(interrupted, targetDir);
    await expect(stat(old)).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(restoreInto(target.sql, { replace: true, put })).rejects.toMatchObject({ code: 'NOT_WRITTEN' });
    expect(await readdir(join(targetDir, 'objects/recordings'))).toEqual(['old.wav']);
    expect(await readFile(old, 'utf8')).toBe('old');
    expect(await readdir(targetDir)).toEqual(['objects']);
  });

  it('keeps recordings made after a restore that failed at its end, if the next restore fails', async () => {
    await back(database.sql, { withKey: true });
    await mkdir(join(targetDir, 'objects/recordings'), { recursive: true });
    await writeFile(join(targetDir, 'objects/recordings/old.wav'), 'old');
    // A key that cannot be written.
    await mkdir(join(targetDir, 'secret-key'));
    await expect(restoreInto(target.sql, { replace: true, configuredKey: null })).rejects.toThrow('EISDIR');
    await mkdir(join(targetDir, 'objects/recordings'), { recursive: true });
    await writeFile(join(targetDir, 'objects/recordings/new.wav'), 'new');
    const { workspaceId } = await seedCall(database.sql, randomBytes(10));
    await database.sql`
      update accounts set balance_nano = balance_nano + 1 where workspace_id = ${workspaceId} and kind = 'wallet'`;
    await rm(file);
    await back(database.sql, { withKey: true });
    await expect(restoreInto(target.sql, { replace: true, configuredKey: null })).rejects.toMatchObject({
      code: 'RESTORE_NOT_VERIFIED',
    });
    expect(await readFile(join(targetDir, 'objects/recordings/new.wav'), 'utf8')).toBe('new');
  });

  it('rejects a database with a newer schema', async () => {
    await back(database.sql);
    await target.sql`insert into schema_migrations (name, checksum) values ('9999_later', 'x')`;
    await expect(restoreInto(target.sql, { replace: true })).rejects.toMatchObject({ code: 'TARGET_TOO_NEW' });
  });

  it('migrates an older schema', async () => {
    const { callId } = await seedCall(database.sql, null);
    // The schema before the last migrations.
    await database.sql`drop table number_verifications`;
    await database.sql`delete from schema_migrations where name >= '0035'`;
    await undoLaterMigrations(database.sql);
    await back(database.sql);
    await restoreInto(target.sql);
    expect(await getCallById(target.sql, callId)).not.toBeNull();
    expect(await target.sql`select * from number_verifications`).toHaveLength(0);
    const [last] = await target.sql<{ name: string }[]>`select max(name) as name from schema_migrations`;
    expect(last!.name >= '0035').toBe(true);
  });

  it('with a newer schema fails before anything is written', async () => {
    await database.sql`insert into schema_migrations (name, checksum) values ('9999_later', 'x')`;
    await back(database.sql);
    await expect(restoreInto(target.sql)).rejects.toMatchObject({
      code: 'BACKUP_TOO_NEW',
      message: expect.stringContaining('9999_later'),
    });
    expect(await readdir(targetDir)).toEqual([]);
  });

  it('with any changed byte or another length fails before anything is written', async () => {
    await seedCall(database.sql, randomBytes(2_000));
    await back(database.sql, { withKey: true });
    const whole = await readFile(file);
    await using archive = await openArchive(file);
    const places = [0, 156, whole.length - 1];
    // Every header, and the first and last byte of every file.
    for await (const { offset, sizeBytes } of archive.entries())
      places.push(offset - 512, offset, offset + sizeBytes - 1);
    for (const place of places) {
      const changed = Buffer.from(whole);
      changed[place]! ^= 1;
      await writeFile(file, changed);
      await expect(restoreInto(target.sql), `byte ${place}`).rejects.toMatchObject({ code: 'BACKUP_DAMAGED' });
    }
    for (const length of [0, 511, 512, 5_000, whole.length - 512, whole.length - 1]) {
      await writeFile(file, whole);
      await truncate(file, length);
      await expect(restoreInto(target.sql), `length ${length}`).rejects.toMatchObject({ code: 'BACKUP_DAMAGED' });
    }
    await writeFile(file, Buffer.concat([whole, Buffer.alloc(512)]));
    await expect(restoreInto(target.sql)).rejects.toMatchObject({ code: 'BACKUP_DAMAGED' });
    expect(await readdir(targetDir)).toEqual([]);
    await writeFile(file, whole);
    await restoreInto(target.sql);
  });
});

describe.skipIf(!hasS3Server)('backup of an S3 bucket', () => {
  it('restores into another bucket, even if some objects were on local disk', async () => {
    await using server = await startS3Server();
    const [first, second] = [await server.createBucket(), await server.createBucket()];
    await using database = await createTestDatabase();
    await using target = await createTestDatabase();
    const settingsOf = (bucket: typeof first): S3Config => ({
      ...{ s3Endpoint: bucket.endpoint, s3PublicEndpoint: null, s3Region: bucket.region, s3Bucket: bucket.bucket },
      ...{ s3Prefix: 'tandem/', s3PathStyle: 'true', s3AccessKeyId: bucket.accessKeyId },
      s3SecretAccessKey: bucket.secretAccessKey,
    });
    const stored = randomBytes(6_000_000);
    const { key } = await seedCall(database.sql, null);
    const local = await seedCall(database.sql, randomBytes(1_000));
    await using inBucket = await openKeptObjects(settingsOf(first), { folder: join(folder, 'objects') });
    const sourcePath = join(folder, 'recording');
    await writeFile(sourcePath, stored);
    await inBucket.put({ key, sourcePath });
    expect(await server.keysIn(first.bucket)).toEqual([`tandem/${key}`]);
    const { manifest } = await backUp({
      ...{ sql: database.sql, objects: inBucket, file, node: null, secretKey: null, withKey: false },
      ...{ tandemVersion: '1', now: NOW, onProgress: () => {} },
    });
    expect(manifest.objects).toMatchObject({ count: 2, missing: 0 });
    // A deletion that waits for the bucket.
    const deletion = join(targetDir, 'objects/.deleted', key);
    await writeNew(deletion, '');
    await using kept = await openKeptObjects(settingsOf(second), { folder: join(targetDir, 'objects') });
    await restore({
      ...{ file, replace: false, withoutKey: false, newNode: randomUUID, onProgress: () => {} },
      openTarget: async () => ({
        ...{ sql: target.sql, objects: kept, dataDir: targetDir, configuredKey: null, previousKeys: [] },
        databaseCrash: async () => null,
        [Symbol.asyncDispose]: async () => {},
      }),
    });
    expect(await server.keysIn(second.bucket)).toEqual([`tandem/${key}`, `tandem/${local.key}`].toSorted());
    await expect(stat(deletion)).rejects.toMatchObject({ code: 'ENOENT' });
    const chunks: Uint8Array[] = [];
    for await (const chunk of kept.read((await kept.stat(key))!)) chunks.push(chunk);
    expect(Buffer.concat(chunks).equals(stored)).toBe(true);
  });
});

async function undoLaterMigrations(sql: Sql): Promise<void> {
  await sql`drop table if exists erasures, erased_recordings, nodes, idempotent_requests`;
  await sql`drop trigger if exists calls_placement_count on calls`;
  await sql`drop table if exists login_links, call_quality_samples, trunk_probes, placement_counts`;
  await sql`alter table calls drop column if exists owner_seen_at, drop column if exists request_hash`;
  await sql`alter table call_events drop column if exists transaction_id`;
  await sql`alter table sessions
    drop column if exists last_used_at, drop column if exists user_agent, drop column if exists address`;
  await sql`alter table recordings drop column if exists node`;
  await sql`alter table workspaces drop column if exists position, drop column if exists created_by_user_id`;
  await sql`drop index if exists deliveries_replay_of, deliveries_created, call_events_at`;
  await sql`drop index if exists calls_live_workspace, calls_agent_digits, calls_customer_digits`;
  await sql`drop index if exists usage_logs_resource, judge_evaluations_call, judge_evaluations_user`;
}

describe('tar header', () => {
  it('holds names of up to 255 bytes that can be split at a slash', () => {
    const name = `objects/recordings/${'a'.repeat(100)}/${'b'.repeat(84)}.wav.sealed`;
    expect(decodeHeader(encodeHeader({ name, sizeBytes: 123_456_789 }, NOW))).toEqual({ name, sizeBytes: 123_456_789 });
    expect(() => encodeHeader({ name: 'c'.repeat(101), sizeBytes: 0 }, NOW)).toThrow(RangeError);
    expect(decodeHeader(Buffer.alloc(512, 1))).toBeNull();
  });
});
