import { randomUUID } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkClock } from '../../diagnosis/clock.ts';
import type { Finding } from '../../diagnosis/finding.ts';
import { startEmbeddedSipServer } from '../../sip/embedded/embedded-sip-server.ts';
import type { Sql } from '../../storage/database.ts';
import { startModelServer } from '../language/model-server.ts';
import { startServerProcess } from '../process/server-process.ts';
import { writeHummingVits } from '../speech/humming-models.ts';
import { hasPgvector } from '../storage/pgvector.ts';
import { hasS3Server, startS3Server } from '../storage/s3/s3-server.ts';
import { createTestDatabase, externalServer } from '../storage/test-database.ts';
import { REDIS_URL, redisIsReachable } from '../storage/test-redis.ts';
import { type Run, tandem } from './command-line.ts';

const clean: (() => Promise<unknown> | unknown)[] = [];
let dataDir: string;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'tandem-doctor-'));
  clean.push(() => rm(dataDir, { recursive: true, force: true }));
});

afterEach(async () => {
  for (const step of clean.splice(0).reverse()) await step();
});

/** Runs the doctor on free ports. */
async function doctor(env: Record<string, string> = {}, ...argv: string[]): Promise<Run> {
  const defaults = { TANDEM_DATA_DIR: dataDir, PORT: '0', SIP_PORT: '0' };
  return await tandem(['doctor', ...argv], { cwd: dataDir, env: { ...defaults, ...env } });
}

async function findings(env: Record<string, string> = {}): Promise<Record<string, Finding>> {
  const { exitCode, document } = await doctor(env, '--json');
  const { findings: found } = document.data as { findings: Finding[] };
  const failed = found.some(({ status }) => status === 'fail');
  expect({ exitCode, success: document.success }).toEqual({ exitCode: failed ? 1 : 0, success: !failed });
  for (const { status, advice } of found) expect(advice === null).toBe(status === 'ok');
  return Object.fromEntries(found.map((finding) => [finding.check, finding]));
}

describe('tandem doctor', () => {
  it('passes on a fresh machine, announces what the first start does, and changes nothing', async () => {
    const { exitCode, stdout, stderr } = await doctor();
    expect({ exitCode, stderr }, stdout).toEqual({ exitCode: 0, stderr: '' });
    for (const check of [
      'runtime',
      'data folder',
      'disk',
      'secret key',
      'database',
      'clock',
      'RTP ports',
      'media sockets',
      'WebRTC',
      'SIP_HOST',
      'transcription',
    ]) {
      expect(stdout).toMatch(new RegExp(`^[✓!] (ok|warn) +${check} `, 'm'));
    }
    expect(stdout).toContain('the first start makes');
    const again = await findings();
    expect(again['speech synthesis']?.message).toBe('eSpeak NG: 36 languages, 227 voices');
    expect(again['optional programs']?.message).toMatch(/ffmpeg is (not )?there \(reads uploads/);
    expect(again['secret key']?.message).toContain('the first start makes');
  });

  it('checks a running server with its database, and recognises its own ports', async () => {
    const range = { RTP_PORT_MIN: '36000', RTP_PORT_MAX: '36999' };
    const env = { TANDEM_DATA_DIR: dataDir, PORT: '0', SIP_PORT: '0', ...range };
    const server = startServerProcess(env);
    clean.push(async () => {
      server.child.kill('SIGTERM');
      await server.exited;
    });
    const { url, sip } = (await server.logged('Tandem is ready')) as { url: string; sip: { port: number } };
    const found = await findings({ ...range, PORT: new URL(url).port, SIP_PORT: String(sip.port) });
    expect(Object.values(found).filter(({ status }) => status === 'fail')).toEqual([]);
    expect(found.server?.message).toBe(`runs at ${url}`);
    expect(found['HTTP port']?.message).toContain('held by the running server');
    expect(found.database?.message).toMatch(/^PostgreSQL 18/);
    expect(found.schema?.message).toMatch(/^all \d+ migrations are applied$/);
    expect(found['secret key']).toMatchObject({ status: 'ok', message: expect.stringContaining('keep a copy') });
    expect(found.clock).toMatchObject({ status: 'ok', message: expect.stringContaining("the database server's") });
  });

  it('prints the callable countries, and warns about `any`', async () => {
    const { NUMBER_PLAN: some } = await findings({ NUMBER_PLAN: 'IN,US' });
    expect(some).toMatchObject({ status: 'ok', message: 'calls to IN (mobile numbers), US' });
    const { NUMBER_PLAN: any } = await findings({ NUMBER_PLAN: 'any' });
    expect(any).toMatchObject({ status: 'warn' });
  });

  it('names a malformed setting', async () => {
    const { configuration } = await findings({ RTP_PORT_MIN: '3' });
    expect(configuration).toMatchObject({ status: 'fail', message: expect.stringContaining('RTP_PORT_MIN') });
  });

  it('prints the remedy below a failed check, and exits with 1', async () => {
    const { exitCode, stdout, stderr } = await doctor({ RTP_HOST: '0.0.0.0' });
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^✗ fail RTP_HOST .*\n +-> Set RTP_HOST to the address/m);
    expect(stderr).toMatch(/^tandem: 1 of \d+ checks failed.*\n$/);
  });
});

describe('tandem doctor on ports', () => {
  it('fails when another program uses them', async () => {
    const stranger = createServer((_, response) => void response.end('hello')).listen(0, '127.0.0.1');
    const socket = createSocket('udp4').bind(0, '127.0.0.1');
    clean.push(
      () => stranger.close(),
      () => socket.close(),
    );
    await Promise.all([once(stranger, 'listening'), once(socket, 'listening')]);
    const found = await findings({
      PORT: String((stranger.address() as AddressInfo).port),
      SIP_PORT: String(socket.address().port),
      // Outside the range of ephemeral ports, such as that of the socket above.
      RTP_PORT_MIN: '20000',
      RTP_PORT_MAX: '20003',
    });
    expect(found['HTTP port']).toMatchObject({ status: 'fail', advice: expect.stringContaining('PORT') });
    expect(found['SIP port']).toMatchObject({
      status: 'fail',
      message: expect.stringContaining('/udp cannot be opened'),
    });
  });

  it('fails when RTP and SIP overlap', async () => {
    const found = await findings({ SIP_PORT: '20002', RTP_PORT_MIN: '20000', RTP_PORT_MAX: '20003' });
    expect(found['SIP port']).toMatchObject({
      status: 'fail',
      message: expect.stringContaining('between RTP_PORT_MIN'),
    });
  });
});

describe('tandem doctor on the data folder', () => {
  it('fails for a file', async () => {
    const file = join(dataDir, 'file');
    await writeFile(file, '');
    const found = await findings({ TANDEM_DATA_DIR: file });
    expect(found['data folder']).toMatchObject({ status: 'fail', message: expect.stringContaining('is not a folder') });
  });

  it('warns about little free space', async () => {
    // A file system without free space.
    expect((await findings({ TANDEM_DATA_DIR: '/proc/tandem' })).disk).toMatchObject({ status: 'warn' });
  });

  it.each([
    { what: 'a damaged key', content: 'AAAA', mode: 0o600, status: 'fail', says: '32 bytes' },
    {
      what: 'a key that others can read',
      content: Buffer.alloc(32).toString('base64'),
      mode: 0o644,
      status: 'warn',
      says: 'others',
    },
  ])('handles $what', async ({ content, mode, status, says }) => {
    await writeFile(join(dataDir, 'secret-key'), content);
    await chmod(join(dataDir, 'secret-key'), mode);
    expect((await findings())['secret key']).toMatchObject({ status, message: expect.stringContaining(says) });
  });

  it('fails when the key file is missing', async () => {
    await writeFile(join(dataDir, 'node-id'), 'a node');
    expect((await findings())['secret key']).toMatchObject({
      status: 'fail',
      message: expect.stringContaining('missing'),
    });
    const TANDEM_SECRET_KEY = Buffer.alloc(32, 1).toString('base64');
    expect((await findings({ TANDEM_SECRET_KEY }))['secret key']).toMatchObject({ status: 'ok' });
  });
});

describe('tandem doctor on the database', () => {
  it('names an unreachable database without its password', async () => {
    const run = await doctor({ DATABASE_URL: 'postgres://me:geheim@127.0.0.1:9/x' });
    expect(run.exitCode).toBe(1);
    expect(run.stdout).toMatch(/^✗ fail database .*ECONNREFUSED/m);
    expect(run.stdout + run.stderr).not.toContain('geheim');
  });

  it('warns of a newer schema, and fails for a changed migration', async () => {
    await using database = await createTestDatabase();
    expect((await findings({ DATABASE_URL: database.url })).schema).toMatchObject({ status: 'ok' });
    await database.sql`insert into schema_migrations (name, checksum) values ('9999_future', 'x')`;
    const newer = await findings({ DATABASE_URL: database.url });
    expect(newer.schema).toMatchObject({ status: 'fail', message: expect.stringContaining('9999_future') });
    await database.sql`delete from schema_migrations where name = '9999_future'`;
    await database.sql`update schema_migrations set checksum = 'x' where name = '0001_foundation'`;
    const changed = await findings({ DATABASE_URL: database.url });
    expect(changed.schema).toMatchObject({ status: 'fail', message: expect.stringContaining('0001_foundation') });
  });

  it('accepts pending migrations, which the next start applies', async () => {
    await using database = await createTestDatabase();
    await database.sql`delete from schema_migrations where name > '0001_foundation'`;
    const { schema } = await findings({ DATABASE_URL: database.url });
    expect(schema).toMatchObject({
      status: 'ok',
      message: expect.stringMatching(/^1 of \d+ migrations are applied; the next start/),
    });
  });

  it('warns when pgvector is configured and the server lacks it', async () => {
    await using database = await createTestDatabase();
    const wanted = (await findings({ DATABASE_URL: database.url, MEMORY_INDEX: 'pgvector' }))['memory index'];
    expect(wanted).toMatchObject({
      status: 'warn',
      message: 'every point is compared: the server has no extension vector',
    });
    const exact = (await findings({ DATABASE_URL: database.url, MEMORY_INDEX: 'exact' }))['memory index'];
    expect(exact).toMatchObject({ status: 'ok', message: 'every point is compared, as MEMORY_INDEX says' });
  });

  it.skipIf(!hasPgvector)('reports that pgvector indexes large collections', async () => {
    const server = externalServer();
    await using database = await server.createDatabase();
    const wanted = (await findings({ DATABASE_URL: database.url, MEMORY_INDEX: 'pgvector' }))['memory index'];
    expect(wanted).toMatchObject({ status: 'ok', message: expect.stringContaining('looks large collections up') });
  });

  it('warns of loopback addresses when a carrier is remote', async () => {
    await using database = await createTestDatabase();
    const now = new Date();
    const trunk = { id: '9f0c3a3e-6c1c-4d0e-9a55-0d5fb9f9f001', name: 'x', createdAt: now, updatedAt: now };
    await database.sql`insert into trunks ${database.sql({ ...trunk, sipUri: 'sip:127.0.0.1:5070' })}`;
    const inside = await findings({ DATABASE_URL: database.url });
    expect([inside.SIP_HOST?.status, inside.RTP_HOST?.status]).toEqual(['ok', 'ok']);
    await database.sql`update trunks set sip_uri = 'sip:carrier.example:5060'`;
    const outside = await findings({ DATABASE_URL: database.url });
    expect(outside.RTP_HOST).toMatchObject({ status: 'warn', message: expect.stringContaining('carrier.example') });
    expect(outside.SIP_HOST).toMatchObject({ status: 'warn', advice: expect.stringContaining('SIP_HOST') });
    const advertised = await findings({ DATABASE_URL: database.url, RTP_HOST: '203.0.113.7' });
    expect(advertised.RTP_HOST).toMatchObject({ status: 'ok', message: expect.stringContaining('forward') });
  });

  it('reports which carriers respond, and since when', async () => {
    await using database = await createTestDatabase();
    const now = new Date('2026-01-31T09:30:00.000Z');
    const rows = (
      [
        ['down', 'no_response', now],
        ['up', 'call_answered', now],
        ['unknown', 'not_checked', null],
      ] as const
    ).map(([reachability, reachabilityReason, reachabilitySince]) => ({
      ...{ id: randomUUID(), name: reachability, sipUri: 'sip:127.0.0.1:5070', createdAt: now, updatedAt: now },
      ...{ reachability, reachabilityReason, reachabilitySince },
    }));
    await database.sql`insert into trunks ${database.sql(rows)}`;
    await database.sql`update trunks set register = true where name = 'up'`;
    await database.sql`
      insert into trunk_registrations (trunk_id, server, leased_until, state, last_error)
      select id, 'boot-1', now(), 'failed', '403 Forbidden' from trunks where register`;
    const found = await findings({ DATABASE_URL: database.url });
    expect(found['registration of up']).toMatchObject({
      status: 'warn',
      message: 'The carrier does not accept it: 403 Forbidden.',
    });
    expect(found['carrier of down']).toMatchObject({
      status: 'warn',
      message: expect.stringContaining(
        'not responded since 2026-01-31T09:30:00.000Z when the server ran last: no response',
      ),
      advice: expect.stringContaining('sip:127.0.0.1:5070 over UDP'),
    });
    expect(found['carrier of up']).toMatchObject({ status: 'ok', message: expect.stringContaining('call answered') });
    expect(found['carrier of unknown']).toMatchObject({ status: 'ok', message: expect.stringContaining('not known') });
  });

  it('warns about media encryption whose keys travel in readable SIP', async () => {
    await using database = await createTestDatabase();
    const now = new Date();
    const trunk = { sipUri: 'sip:127.0.0.1:5070', createdAt: now, updatedAt: now };
    const rows = (
      [
        ['none', 'udp'],
        ['required', 'udp'],
        ['optional', 'tls'],
      ] as const
    ).map(([mediaEncryption, transport]) => ({
      ...trunk,
      id: randomUUID(),
      name: `carrier ${mediaEncryption}`,
      mediaEncryption,
      transport,
    }));
    await database.sql`insert into trunks ${database.sql(rows)}`;
    const found = await findings({ DATABASE_URL: database.url });
    expect(found['media encryption of carrier none']).toBeUndefined();
    expect(found['media encryption of carrier required']).toMatchObject({
      status: 'warn',
      message: expect.stringContaining('readable in SIP over UDP'),
    });
    expect(found['media encryption of carrier optional']?.status).toBe('ok');
  });
});

describe('tandem doctor on the clock', () => {
  const serverAt = (aheadMs: number) => (async () => [{ now: new Date(Date.now() + aheadMs) }]) as unknown as Sql;

  it.each([
    { aheadMs: 0, status: 'ok' },
    { aheadMs: -900, status: 'ok' },
    { aheadMs: 5_000, status: 'warn' },
    { aheadMs: -5_000, status: 'warn' },
    { aheadMs: 3_600_000, status: 'fail' },
    { aheadMs: -3_600_000, status: 'fail' },
  ])('reports $aheadMs ms of difference to the database server as $status', async ({ aheadMs, status }) => {
    expect(await checkClock(serverAt(aheadMs))).toMatchObject({ status });
  });
});

describe('tandem doctor on objects', () => {
  it('names the data folder without S3', async () => {
    expect((await findings()).objects).toMatchObject({
      status: 'ok',
      message: expect.stringContaining(join(dataDir, 'objects')),
    });
  });

  it.skipIf(!hasS3Server)('checks that a bucket is writable, with the number of pending files', async () => {
    const server = await startS3Server();
    clean.push(() => server[Symbol.asyncDispose]());
    const { bucket, endpoint, accessKeyId, secretAccessKey } = await server.createBucket();
    const env = { S3_ENDPOINT: endpoint!, S3_ACCESS_KEY_ID: accessKeyId, S3_SECRET_ACCESS_KEY: secretAccessKey };
    await mkdir(join(dataDir, 'objects', 'recordings'), { recursive: true });
    await writeFile(join(dataDir, 'objects', 'recordings', 'a.wav'), 'audio');
    const found = (await findings({ ...env, S3_BUCKET: bucket })).objects;
    expect(found).toMatchObject({ status: 'ok', message: expect.stringContaining('files waiting for upload: 1') });
    expect(await server.keysIn(bucket)).toEqual([]);
    const wrong = (await findings({ ...env, S3_BUCKET: 'no-such-bucket' })).objects;
    expect(wrong).toMatchObject({ status: 'fail', message: expect.stringContaining('does not exist') });
  });
});

describe('tandem doctor on drachtio', () => {
  it('connects, and distinguishes a wrong secret from an unreachable server', async () => {
    const stopped = new AbortController();
    const server = await startEmbeddedSipServer({
      sipHost: '127.0.0.1',
      sipPort: 0,
      transports: ['udp'],
      secret: 'right',
      signal: stopped.signal,
    });
    clean.push(() => server.close());
    const DRACHTIO_PORT = String(server.controlPort);
    const at = { DRACHTIO_HOST: '127.0.0.1', DRACHTIO_PORT };
    expect((await findings({ ...at, DRACHTIO_SECRET: 'right' })).drachtio).toMatchObject({ status: 'ok' });
    const wrong = await findings({ ...at, DRACHTIO_SECRET: 'wrong' });
    expect(wrong.drachtio).toMatchObject({ status: 'fail', advice: expect.stringContaining('DRACHTIO_SECRET') });
    expect(wrong['SIP port']).toBeUndefined();
    await server.close();
    const gone = await findings({ ...at, DRACHTIO_SECRET: 'right' });
    expect(gone.drachtio).toMatchObject({ status: 'fail', advice: expect.stringContaining('DRACHTIO_PORT') });
  });
});

describe('tandem doctor on speech recognition', () => {
  it('lists engines with their languages, and how to add more', async () => {
    const found = await findings({ MODELS_DIR: join(dataDir, 'models') });
    expect(found.transcription?.message).toBe('1 of 39 languages: English (en)');
    expect(found.pocketsphinx?.message).toBe('en-us: English (en), with interim results');
    expect(found['sherpa-onnx']?.message).toContain('tandem models fetch');
    expect(found.openai?.message).toContain('STT_BASE_URL');
  });

  it('counts the voices of each engine', async () => {
    const MODELS_DIR = join(dataDir, 'models');
    await writeHummingVits(join(MODELS_DIR, 'tts', 'hum-en'));
    const { 'speech synthesis': found } = await findings({ MODELS_DIR });
    expect(found?.message).toMatch(/^sherpa-onnx: \d+ languages, 228 voices \(227 of eSpeak NG, 1 of sherpa-onnx\)$/);
  });

  it('checks an upstream server and its key', async () => {
    const statuses: Record<string, number> = { 'Bearer right': 200, 'Bearer wrong': 401 };
    const server = createServer(({ headers }, response) => {
      response.writeHead(statuses[headers.authorization ?? ''] ?? 503).end();
    }).listen(0, '127.0.0.1');
    clean.push(() => server.close());
    await once(server, 'listening');
    const STT_BASE_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const upstream = async (env: Record<string, string>) => (await findings({ STT_BASE_URL, ...env })).STT_BASE_URL;
    expect(await upstream({ STT_API_KEY: 'right' })).toMatchObject({ status: 'ok' });
    const wrong = await upstream({ STT_API_KEY: 'wrong' });
    expect(wrong).toMatchObject({ status: 'warn', advice: expect.stringContaining('STT_API_KEY') });
    expect(await upstream({})).toMatchObject({ status: 'warn', message: expect.stringContaining('503') });
    server.close();
    const gone = await upstream({ STT_API_KEY: 'right' });
    expect(gone).toMatchObject({ status: 'warn', message: expect.stringContaining('ECONNREFUSED') });
  });

  it('names a damaged model, and a preferred engine without models', async () => {
    const MODELS_DIR = join(dataDir, 'models');
    await mkdir(join(MODELS_DIR, 'stt', 'broken'), { recursive: true });
    const found = await findings({ MODELS_DIR, STT_ENGINE: 'sherpa-onnx' });
    expect(found.model).toMatchObject({ status: 'warn', message: expect.stringContaining('broken') });
    expect(found.STT_ENGINE).toMatchObject({ status: 'warn', message: expect.stringContaining('sherpa-onnx') });
  });
});

describe('tandem doctor on speech synthesis', () => {
  it('names a damaged model, and a preferred engine without voices', async () => {
    const MODELS_DIR = join(dataDir, 'models');
    await mkdir(join(MODELS_DIR, 'tts', 'broken'), { recursive: true });
    const found = await findings({ MODELS_DIR, TTS_ENGINE: 'sherpa-onnx' });
    expect(found.model).toMatchObject({ status: 'warn', message: expect.stringContaining('broken') });
    expect(found.TTS_ENGINE).toMatchObject({ status: 'warn', message: expect.stringContaining('sherpa-onnx') });
    expect(found['speech synthesis']).toMatchObject({ status: 'ok', message: expect.stringContaining('eSpeak NG') });
  });

  it('checks an upstream server and its key', async () => {
    const server = createServer(({ headers }, response) => {
      response.writeHead(headers.authorization === 'Bearer right' ? 200 : 401).end();
    }).listen(0, '127.0.0.1');
    clean.push(() => server.close());
    await once(server, 'listening');
    const TTS_BASE_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const upstream = async (key: string) => (await findings({ TTS_BASE_URL, TTS_API_KEY: key })).TTS_BASE_URL;
    expect(await upstream('right')).toMatchObject({ status: 'ok' });
    expect(await upstream('wrong')).toMatchObject({ advice: expect.stringContaining('TTS_API_KEY') });
    server.close();
    server.closeAllConnections();
    expect(await upstream('right')).toMatchObject({ message: expect.stringContaining('ECONNREFUSED') });
  });
});

const isRedisReachable = await redisIsReachable();

describe('tandem doctor on Redis', () => {
  it('fails with the reason for an unreachable server, without its password', async () => {
    const { stdout } = await doctor({ REDIS_URL: 'redis://:geheim@127.0.0.1:9' });
    expect(stdout).toMatch(/^✗ fail Redis .*ECONNREFUSED/m);
    expect(stdout).not.toContain('geheim');
  });

  it.skipIf(!isRedisReachable)('reports the version of a reachable server (needs a Redis)', async () => {
    const { Redis: finding } = await findings({ REDIS_URL });
    expect(finding?.message).toMatch(/^Redis \d+\.\d+/);
  });
});

describe('tandem doctor on language models', () => {
  it('accepts missing settings, and warns of incomplete ones', async () => {
    const none = (await findings())['language model'];
    expect(none).toMatchObject({ status: 'ok', message: expect.stringContaining('LLM_NOT_CONFIGURED') });
    const half = (await findings({ LLM_MODEL: 'tiny-1.0' }))['language model'];
    expect(half).toMatchObject({ status: 'warn', message: expect.stringContaining('LLM_BASE_URL') });
  });

  it('names the answering model, and models unknown to the server', async () => {
    await using server = await startModelServer();
    server.models = ['tiny-1.0', 'big-2.0'];
    server.apiKey = 'right';
    const at = { LLM_BASE_URL: server.baseUrl, LLM_API_KEY: 'right' };
    const found = await findings({ ...at, LLM_ALIASES: 'fast=tiny-1.0,odd=gone-3.0' });
    expect(found['language model']).toMatchObject({
      status: 'ok',
      message: 'chats are answered by tiny-1.0; the server is there and lists 2',
    });
    expect(found['alias odd']).toMatchObject({ status: 'warn', advice: expect.stringContaining('tiny-1.0, big-2.0') });
    expect(found['alias fast']).toBeUndefined();

    const other = await findings({ ...at, LLM_MODEL: 'big-2.0' });
    expect(other['language model']?.message).toContain('answered by big-2.0');
    expect(other.LLM_MODEL).toBeUndefined();
  });

  it('warns of an unreachable server and of a wrong key', async () => {
    const server = await startModelServer();
    server.apiKey = 'right';
    const at = { LLM_BASE_URL: server.baseUrl, LLM_API_KEY: 'wrong-key' };
    const wrong = (await findings(at))['language model'];
    expect(wrong).toMatchObject({ status: 'warn', message: expect.stringContaining('401') });
    expect(JSON.stringify(wrong)).not.toContain('wrong-key');
    await server[Symbol.asyncDispose]();
    const gone = (await findings(at))['language model'];
    expect(gone).toMatchObject({ status: 'warn', message: expect.stringContaining('ECONNREFUSED') });
    expect(gone?.advice).toContain('LLM_BASE_URL');
  });
});
