import { randomBytes, randomUUID } from 'node:crypto';
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Config } from '../../config.ts';
import { checkAddresses } from '../../diagnosis/addresses.ts';
import { checkClock } from '../../diagnosis/clock.ts';
import { checkDataFolder } from '../../diagnosis/data-folder.ts';
import { checkDatabase, checkRedis } from '../../diagnosis/database.ts';
import type { Finding } from '../../diagnosis/finding.ts';
import { checkMediaEncryption } from '../../diagnosis/media-encryption.ts';
import { checkMemoryIndex } from '../../diagnosis/memory-index.ts';
import { checkObjects } from '../../diagnosis/objects.ts';
import { checkStoredSecrets } from '../../diagnosis/stored-secrets.ts';
import { checkTrunks } from '../../diagnosis/trunks.ts';
import type { Sql } from '../../storage/database.ts';
import { createWebhook } from '../../storage/queries/webhooks.ts';
import { trunkPasswordContext, webhookSecretContext } from '../../storage/secret-contexts.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { seedCaller } from '../actors/seeds.ts';
import { fakeSql } from '../storage/fake-sql.ts';
import { hasPgvector } from '../storage/pgvector.ts';
import { hasS3Server, startS3Server } from '../storage/s3/s3-server.ts';
import { createTestDatabase, externalServer } from '../storage/test-database.ts';
import { REDIS_URL, redisIsReachable } from '../storage/test-redis.ts';
import { type Examination, openExamination } from './examination.ts';

const clean: (() => Promise<unknown> | unknown)[] = [];
let examination: Examination;

beforeEach(async () => {
  examination = await openExamination();
});

afterEach(async () => {
  for (const step of clean.splice(0).reverse()) await step();
  await examination[Symbol.asyncDispose]();
});

async function checkSchema(config: Config): Promise<Finding[]> {
  const { findings, sql } = await checkDatabase(config);
  await sql?.end();
  return findings;
}

function withDatabase<T>(check: (config: Config, sql: Sql) => Promise<T>): (config: Config) => Promise<T> {
  return async (config) => {
    const { sql } = await checkDatabase(config);
    try {
      return await check(config, sql!);
    } finally {
      await sql?.end();
    }
  };
}

describe('doctor on the data folder', () => {
  it('fails for a file', async () => {
    const file = join(examination.dataDir, 'file');
    await writeFile(file, '');
    const found = await examination.findings(checkDataFolder, { TANDEM_DATA_DIR: file });
    expect(found['data folder']).toMatchObject({ status: 'fail', message: expect.stringContaining('is not a folder') });
  });

  it('fails for a folder that cannot be created, although its parent is writable', async () => {
    const found = await examination.findings(checkDataFolder, { TANDEM_DATA_DIR: '/proc/tandem/data' });
    expect(found['data folder']).toMatchObject({
      status: 'fail',
      message: expect.stringMatching(/^\/proc\/tandem\/data cannot be written to: /),
    });
  });

  it('creates no folder', async () => {
    const folder = join(examination.dataDir, 'new');
    const found = await examination.findings(checkDataFolder, { TANDEM_DATA_DIR: folder });
    expect(found['data folder']).toMatchObject({ status: 'ok', message: `${folder}; the first start makes it` });
    expect(await readdir(examination.dataDir)).toEqual([]);
  });

  it('warns about little free space', async () => {
    // A file system without free space.
    expect((await examination.findings(checkDataFolder, { TANDEM_DATA_DIR: '/proc/tandem' })).disk).toMatchObject({
      status: 'warn',
    });
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
    await writeFile(join(examination.dataDir, 'secret-key'), content);
    await chmod(join(examination.dataDir, 'secret-key'), mode);
    expect((await examination.findings(checkDataFolder))['secret key']).toMatchObject({
      status,
      message: expect.stringContaining(says),
    });
  });

  it('fails when the key file is missing', async () => {
    await writeFile(join(examination.dataDir, 'node-id'), 'a node');
    expect((await examination.findings(checkDataFolder))['secret key']).toMatchObject({
      status: 'fail',
      message: expect.stringContaining('missing'),
    });
    const TANDEM_SECRET_KEY = Buffer.alloc(32, 1).toString('base64');
    expect((await examination.findings(checkDataFolder, { TANDEM_SECRET_KEY }))['secret key']).toMatchObject({
      status: 'ok',
    });
  });
});

describe('doctor on the database', () => {
  it('warns of a newer schema, and fails for a changed migration', async () => {
    await using database = await createTestDatabase();
    expect((await examination.findings(checkSchema, { DATABASE_URL: database.url })).schema).toMatchObject({
      status: 'ok',
    });
    await database.sql`insert into schema_migrations (name, checksum) values ('9999_future', 'x')`;
    const newer = await examination.findings(checkSchema, { DATABASE_URL: database.url });
    expect(newer.schema).toMatchObject({ status: 'fail', message: expect.stringContaining('9999_future') });
    await database.sql`delete from schema_migrations where name = '9999_future'`;
    await database.sql`update schema_migrations set checksum = 'x' where name = '0001_foundation'`;
    const changed = await examination.findings(checkSchema, { DATABASE_URL: database.url });
    expect(changed.schema).toMatchObject({ status: 'fail', message: expect.stringContaining('0001_foundation') });
  });

  it('accepts pending migrations, which the next start applies', async () => {
    await using database = await createTestDatabase();
    await database.sql`delete from schema_migrations where name > '0001_foundation'`;
    const { schema } = await examination.findings(checkSchema, { DATABASE_URL: database.url });
    expect(schema).toMatchObject({
      status: 'ok',
      message: expect.stringMatching(/^1 of \d+ migrations are applied; the next start/),
    });
  });

  it('warns when pgvector is configured and the server lacks it', async () => {
    await using database = await createTestDatabase();
    const wanted = (
      await examination.findings(withDatabase(checkMemoryIndex), {
        DATABASE_URL: database.url,
        MEMORY_INDEX: 'pgvector',
      })
    )['memory index'];
    expect(wanted).toMatchObject({
      status: 'warn',
      message: 'every point is compared: the server has no extension vector',
    });
    const exact = (
      await examination.findings(withDatabase(checkMemoryIndex), { DATABASE_URL: database.url, MEMORY_INDEX: 'exact' })
    )['memory index'];
    expect(exact).toMatchObject({ status: 'ok', message: 'every point is compared, as MEMORY_INDEX says' });
  });

  it.skipIf(!hasPgvector)('reports that pgvector indexes large collections', async () => {
    const server = externalServer();
    await using database = await server.createDatabase();
    const wanted = (
      await examination.findings(withDatabase(checkMemoryIndex), {
        DATABASE_URL: database.url,
        MEMORY_INDEX: 'pgvector',
      })
    )['memory index'];
    expect(wanted).toMatchObject({ status: 'ok', message: expect.stringContaining('looks large collections up') });
  });

  it('warns of loopback addresses when a carrier is remote', async () => {
    await using database = await createTestDatabase();
    const now = new Date();
    const trunk = { id: '9f0c3a3e-6c1c-4d0e-9a55-0d5fb9f9f001', name: 'x', createdAt: now, updatedAt: now };
    await database.sql`insert into trunks ${database.sql({ ...trunk, sipUri: 'sip:127.0.0.1:5070' })}`;
    const inside = await examination.findings(withDatabase(checkAddresses), { DATABASE_URL: database.url });
    expect([inside.SIP_HOST?.status, inside.RTP_HOST?.status]).toEqual(['ok', 'ok']);
    await database.sql`update trunks set sip_uri = 'sip:carrier.example:5060'`;
    const outside = await examination.findings(withDatabase(checkAddresses), { DATABASE_URL: database.url });
    expect(outside.RTP_HOST).toMatchObject({ status: 'warn', message: expect.stringContaining('carrier.example') });
    expect(outside.SIP_HOST).toMatchObject({ status: 'warn', advice: expect.stringContaining('SIP_HOST') });
    const advertised = await examination.findings(withDatabase(checkAddresses), {
      DATABASE_URL: database.url,
      RTP_HOST: '203.0.113.7',
    });
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
    const found = await examination.findings(
      withDatabase((_, sql) => checkTrunks(sql, { isRunning: false })),
      { DATABASE_URL: database.url },
    );
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
    const found = await examination.findings(
      withDatabase((_, sql) => checkMediaEncryption(sql)),
      { DATABASE_URL: database.url },
    );
    expect(found['media encryption of carrier none']).toBeUndefined();
    expect(found['media encryption of carrier required']).toMatchObject({
      status: 'warn',
      message: expect.stringContaining('readable in SIP over UDP'),
    });
    expect(found['media encryption of carrier optional']?.status).toBe('ok');
  });
});

describe('doctor on stored secrets', () => {
  it('fails if another key encrypted some, and names the remedy', async () => {
    await using database = await createTestDatabase();
    const { sql } = database;
    const [old, present] = [randomBytes(32), randomBytes(32)];
    const check = (...[key, ...previous]: Buffer[]) =>
      examination.findings(withDatabase(checkStoredSecrets), {
        DATABASE_URL: database.url,
        TANDEM_SECRET_KEY: key!.toString('base64'),
        TANDEM_SECRET_KEY_PREVIOUS: previous.map((each) => each.toString('base64')).join(),
      });
    expect(await check(present)).toEqual({});
    const { workspaceId, did } = await seedCaller(sql);
    const [oldBox, box] = [createSecretBox(old), createSecretBox(present)];
    const sealed = oldBox.seal('secret', trunkPasswordContext('t')).toString('base64');
    await sql`update numbers set inbound = jsonb_build_object('secretSealed', ${sealed}::text) where e164 = ${did}`;
    await sql`update trunks set username = 'u', password_encrypted = ${box.seal('secret', trunkPasswordContext('t'))}`;
    const webhook = { url: 'https://hooks.example.com/', events: ['voice.ready' as const], now: new Date() };
    const secretEncrypted = oldBox.seal('secret', webhookSecretContext('w'));
    await createWebhook(sql, { ...webhook, id: randomUUID(), secretEncrypted, workspaceId });
    expect((await check(present))['stored secrets']).toMatchObject({
      status: 'fail',
      message: expect.stringMatching(/^Another key encrypted 2 of 3 /),
      advice: expect.stringContaining('TANDEM_SECRET_KEY_PREVIOUS'),
    });
    expect((await check(present, old))['stored secrets']).toMatchObject({
      status: 'ok',
      message: 'the key decrypts all 3',
    });
    await sql`update webhook_subscriptions set deleted_at = now()`;
    expect((await check(present))['stored secrets']?.message).toMatch(/^Another key encrypted 1 of 2 /);
  });
});

describe('doctor on the clock', () => {
  const serverAt = (aheadMs: number) => fakeSql(async () => [{ now: new Date(Date.now() + aheadMs) }]);

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

describe('doctor on objects', () => {
  it('names the data folder without S3', async () => {
    expect((await examination.findings(checkObjects)).objects).toMatchObject({
      status: 'ok',
      message: expect.stringContaining(join(examination.dataDir, 'objects')),
    });
  });

  it.skipIf(!hasS3Server)('checks that a bucket is writable, with the number of pending files', async () => {
    const server = await startS3Server();
    clean.push(() => server[Symbol.asyncDispose]());
    const { bucket, endpoint, accessKeyId, secretAccessKey } = await server.createBucket();
    const env = { S3_ENDPOINT: endpoint!, S3_ACCESS_KEY_ID: accessKeyId, S3_SECRET_ACCESS_KEY: secretAccessKey };
    await mkdir(join(examination.dataDir, 'objects', 'recordings'), { recursive: true });
    await writeFile(join(examination.dataDir, 'objects', 'recordings', 'a.wav'), 'audio');
    const found = (await examination.findings(checkObjects, { ...env, S3_BUCKET: bucket })).objects;
    expect(found).toMatchObject({ status: 'ok', message: expect.stringContaining('files waiting for upload: 1') });
    expect(await server.keysIn(bucket)).toEqual([]);
    const wrong = (await examination.findings(checkObjects, { ...env, S3_BUCKET: 'no-such-bucket' })).objects;
    expect(wrong).toMatchObject({ status: 'fail', message: expect.stringContaining('does not exist') });
  });
});

const isRedisReachable = await redisIsReachable();

describe('doctor on Redis', () => {
  it('fails with the reason for an unreachable server, without its password', async () => {
    const { Redis: finding } = await examination.findings(checkRedis, { REDIS_URL: 'redis://:geheim@127.0.0.1:9' });
    expect(finding).toMatchObject({ status: 'fail', message: expect.stringContaining('ECONNREFUSED') });
    expect(JSON.stringify(finding)).not.toContain('geheim');
  });

  it.skipIf(!isRedisReachable)('reports the version of a reachable server (needs a Redis)', async () => {
    const { Redis: finding } = await examination.findings(checkRedis, { REDIS_URL });
    expect(finding?.message).toMatch(/^Redis \d+\.\d+/);
  });
});
