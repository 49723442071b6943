import { randomBytes, randomUUID } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Api, apiClient } from '../../bin/cli/api-client.ts';
import { createArchive } from '../../storage/backup/archive-writer.ts';
import { connect } from '../../storage/database.ts';
import { runningDatabaseUrl } from '../../storage/embedded/running.ts';
import { admitCall, settleCall } from '../../storage/queries/calls.ts';
import { createRecording, updateRecording } from '../../storage/queries/recordings.ts';
import { type ServerProcess, startServerProcess } from '../process/server-process.ts';
import { admission } from '../storage/seed.ts';
import { createTestDatabase } from '../storage/test-database.ts';
import { type CommandLineOptions, tandem, tandemProcess } from './command-line.ts';

/** A server with a call, its recording and transcript, money and a memory. */
const API_KEY = `sk_${'a'.repeat(32)}`;
const MEMORY = 'Asha prefers calls after six.';
const REFERENCE = 'order-4711';
const RECORDING = Buffer.concat([wavHeader(32_000), randomBytes(32_000)]);

let folder: string;
let dataDir: string;
let server: ServerProcess;
let api: Api;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-backup-'));
  dataDir = join(folder, 'first');
  await mkdir(dataDir);
  ({ server, api } = await startOn(dataDir));
  const topUp = await tandem(['wallet', 'top-up', '10'], { cwd: dataDir, env: { TANDEM_DATA_DIR: dataDir } });
  expect(topUp.exitCode).toBe(0);
  await api.post('/memory/ingest', { text: MEMORY });
  await seedCall();
});

afterAll(async () => {
  await stop(server);
  await rm(folder, { recursive: true, force: true });
});

describe('tandem backup and restore', () => {
  it('move a platform into an empty folder with its call, recording, balance and memory', async () => {
    const running = join(folder, 'running.tar');
    const made = await tandemProcess(['backup', running, '--with-key'], await optionsFor(dataDir));
    expect(made).toMatchObject({ exitCode: 0, stderr: '' });
    expect(made.stdout).toMatch(/^ledger +\d+ entries, .*in wallets$/m);
    expect(made.stdout).toContain('The backup contains the master key.');
    const restored = await tandemProcess(['restore', running, '--json'], await optionsFor(join(folder, 'second')));
    expect(restored).toMatchObject({ exitCode: 0, stderr: '', document: { success: true } });
    expect(restored.document.data).toMatchObject({
      objects: { count: 1, missing: 0 },
      secret_key: 'restored',
      rows: { calls: 1 },
    });
    const second = await startOn(join(folder, 'second'));
    try {
      const state = await stateOf(second.api);
      expect(state).toMatchObject({ isSameAudio: true, memories: [MEMORY], wallet: { held: 0 } });
      expect(state).toEqual(await stateOf(api));
    } finally {
      await stop(second.server);
    }
  });

  it('reject a folder in use by a server, and a folder with data', async () => {
    const file = join(folder, 'refused.tar');
    expect((await run(dataDir, 'backup', file)).exitCode).toBe(0);
    const inUse = await run(dataDir, 'restore', file, '--json');
    expect({ exitCode: inUse.exitCode, ...inUse.document }).toMatchObject({ exitCode: 1, code: 'TARGET_IN_USE' });
    const target = join(folder, 'other');
    const withoutKey = await run(target, 'restore', file, '--json');
    expect(withoutKey.document).toMatchObject({ code: 'SECRET_KEY_REQUIRED' });
    await cp(join(dataDir, 'secret-key'), join(target, 'secret-key'));
    expect((await run(target, 'restore', file)).stdout).toContain('all balances match the ledger');
    expect((await run(target, 'restore', file, '--json')).document).toMatchObject({ code: 'TARGET_NOT_EMPTY' });
    expect((await run(target, 'restore', file, '--replace')).exitCode).toBe(0);
  });

  it('reject a database that a server elsewhere uses', async () => {
    const file = join(folder, 'elsewhere.tar');
    expect((await run(dataDir, 'backup', file, '--with-key')).exitCode).toBe(0);
    await using elsewhere = await createTestDatabase();
    await elsewhere.sql`select 1`;
    const { cwd, env } = await optionsFor(join(folder, 'here'));
    const options = { cwd, env: { ...env, DATABASE_URL: elsewhere.url } };
    const refused = await tandem(['restore', file, '--replace', '--json'], options);
    expect({ exitCode: refused.exitCode, ...refused.document }).toMatchObject({ exitCode: 1, code: 'TARGET_IN_USE' });
  });

  it('reject a file that is not a backup, and a data folder without a database', async () => {
    const file = join(folder, 'text.tar');
    await writeFile(file, 'not a backup');
    const target = join(folder, 'nothing');
    await mkdir(target);
    expect((await run(target, 'restore', file, '--json')).document).toMatchObject({ code: 'BACKUP_DAMAGED' });
    for (const other of [join(folder, 'none.tar'), folder]) {
      expect((await run(target, 'restore', other, '--json')).document).toMatchObject({ code: 'BACKUP_NOT_FOUND' });
    }
    expect((await run(target, 'backup', join(folder, 'empty.tar'), '--json')).document).toMatchObject({
      code: 'NO_DATA',
    });
    expect(await readdir(target)).toEqual([]);
  });

  it('support a stopped server, and choose a file name in a folder', async () => {
    const before = await stateOf(api);
    await stop(server);
    const { file } = await dataOf<{ file: string }>(dataDir, 'backup', folder);
    expect(file).toMatch(/\/tandem-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.tar$/);
    ({ server, api } = await startOn(dataDir));
    expect(await stateOf(api)).toEqual(before);
    await expect(createArchive(file, { now: new Date() })).rejects.toMatchObject({ code: 'BACKUP_EXISTS' });
  });
});

async function startOn(dir: string): Promise<{ server: ServerProcess; api: Api }> {
  const started = startServerProcess({ TANDEM_DATA_DIR: dir, PORT: '0', SIP_PORT: '0', TANDEM_API_KEY: API_KEY });
  const { url } = (await started.logged('Tandem is ready')) as { url: string };
  return { server: started, api: apiClient({ url, apiKey: API_KEY }) };
}

async function stop({ child, exited }: ServerProcess): Promise<void> {
  child.kill('SIGTERM');
  await exited;
}

async function run(dir: string, ...argv: string[]) {
  return await tandem(argv, await optionsFor(dir));
}

async function optionsFor(dir: string): Promise<CommandLineOptions> {
  await mkdir(dir, { recursive: true });
  return { cwd: folder, env: { TANDEM_DATA_DIR: dir } };
}

async function dataOf<T = unknown>(dir: string, ...argv: string[]): Promise<T> {
  const { exitCode, stderr, document } = await run(dir, ...argv, '--json');
  expect({ exitCode, stderr, success: document.success }).toEqual({ exitCode: 0, stderr: '', success: true });
  return document.data;
}

async function stateOf(from: Api) {
  const { call } = await from.get<{ call: object }>(`/dialer/click2call/${REFERENCE}`);
  const { recording } = await from.post<{ recording: { playback_url: string } }>(
    `/dialer/click2call/${REFERENCE}/recording`,
  );
  const audio = Buffer.from(await (await fetch(recording.playback_url)).arrayBuffer());
  const { events } = await from.get<{ events: object[] }>(`/dialer/click2call/${REFERENCE}/events`);
  const { memories } = await from.get<{ memories: { excerpt: string }[] }>('/memory');
  return {
    call,
    events,
    isSameAudio: audio.equals(RECORDING),
    wallet: await from.get('/billing/wallet'),
    memories: memories.map(({ excerpt }) => excerpt),
  };
}

/** A finished, recorded call of the owner, as the server would store it. */
async function seedCall(): Promise<void> {
  const sql = connect({ url: (await runningDatabaseUrl(dataDir)) ?? '', max: 1 });
  try {
    const [owner] = await sql<{ workspaceId: string; userId: number }[]>`
      select id as workspace_id, owner_user_id as user_id from workspaces`;
    const { workspaceId, userId } = owner!;
    const trunk = { name: 'Carrier', sip_uri: 'sip:127.0.0.1:9', price_per_minute_usd: 0.6 };
    await api.post('/dialer/trunks', { ...trunk, numbers: ['+911140000001'], health: { mode: 'none' } });
    await api.post('/dialer/numbers', { e164: '+911140000001' });
    const at = new Date();
    const { call } = await admitCall(
      sql,
      admission({ workspaceId, createdByUserId: userId, referenceId: REFERENCE, record: true, now: at }),
    );
    const id = randomUUID();
    const objectKey = `recordings/${workspaceId}/${id}.wav`;
    await createRecording(sql, { id, callId: call.callId, workspaceId, node: call.ownerNode, now: at });
    await settleCall(sql, {
      callId: call.callId,
      ownerBoot: call.ownerBoot,
      move: {
        event: 'call.completed',
        state: 'completed',
        leg: null,
        sipStatus: null,
        hangupCause: null,
        at,
        detail: null,
      },
      ...{ terminalEvent: 'call.completed', hangupCause: 'NORMAL_CLEARING', leg: null, error: null, errorDetail: null },
      ...{
        answerTime: at,
        endTime: at,
        talkSeconds: 61,
        legSeconds: 0,
        totalSeconds: 70,
        quality: null,
        delivery: null,
      },
      recordingId: id,
    });
    const file = join(dataDir, 'objects', objectKey);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, RECORDING);
    const patch = { status: 'uploaded', objectKey, sizeBytes: RECORDING.length, durationMs: 1000 } as const;
    await updateRecording(sql, { id, now: at, patch });
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** 8 kHz, 16 bit, stereo. */
function wavHeader(bytes: number): Buffer {
  const header = Buffer.alloc(44);
  header.write('RIFF', 0);
  header.writeUInt32LE(36 + bytes, 4);
  header.write('WAVEfmt ', 8);
  for (const [value, offset, size] of [
    [16, 16, 4],
    [1, 20, 2],
    [2, 22, 2],
    [8_000, 24, 4],
    [32_000, 28, 4],
    [4, 32, 2],
    [16, 34, 2],
    [bytes, 40, 4],
  ] as const) {
    header.writeUIntLE(value, offset, size);
  }
  header.write('data', 36);
  return header;
}
