import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type BucketOptions, openBucket } from '../../../storage/s3/bucket.ts';
import type { BucketSettings } from '../../../storage/s3/bucket-settings.ts';
import { checkBucket } from '../../../storage/s3/check-bucket.ts';
import { openS3ObjectStore, type S3ObjectStore } from '../../../storage/s3/object-store.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { hasS3Server, type S3Server, startS3Server } from './s3-server.ts';

/** The test server accepts parts that are smaller than those of S3. */
const PART_BYTES = 100_000;
const THREE_PARTS = 2.5 * PART_BYTES;

describe.skipIf(!hasS3Server)('S3 object store', () => {
  let server: S3Server;
  let proxy: FaultProxy;
  let settings: Awaited<ReturnType<S3Server['createBucket']>>;
  let folder: string;
  let logged: unknown[];
  const opened: { close(): Promise<void> }[] = [];
  beforeAll(async () => {
    server = await startS3Server();
  });
  afterAll(() => server[Symbol.asyncDispose]());
  beforeEach(async () => {
    proxy = await startFaultProxy(server.port);
    settings = { ...(await server.createBucket()), endpoint: proxy.endpoint };
    folder = await mkdtemp(join(tmpdir(), 'tandem-s3-'));
    logged = [];
  });
  afterEach(async () => {
    proxy.release();
    for (const store of opened.splice(0)) await store.close();
    await proxy[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  async function open(changes: Partial<BucketOptions> = {}): Promise<S3ObjectStore> {
    const log = (...entry: unknown[]) => void logged.push(entry);
    const bucket = openBucket({ ...settings, maxAttempts: 1, partBytes: PART_BYTES, ...changes });
    const options = { logger: { info: log, warn: log, error: log }, firstRetryMs: 10 };
    const store = await openS3ObjectStore({ folder: join(folder, 'objects'), bucket, ...options });
    opened.push(store);
    return store;
  }

  async function put(store: S3ObjectStore, key: string, content: Buffer | string = 'audio'): Promise<void> {
    await writeFile(join(folder, 'source'), content);
    await store.putFile({ key, sourcePath: join(folder, 'source') });
  }

  const filesOnDisk = async () =>
    (await readdir(join(folder, 'objects'), { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map((entry) => entry.name);
  const read = async (store: S3ObjectStore, key: string) => await buffer(await store.read({ key }));
  const inFiveMinutes = (key: string) => {
    const now = new Date();
    return { key, now, expiresAt: new Date(now.getTime() + 300_000) };
  };

  it('moves an object to the bucket under the prefix, then removes it from disk', async () => {
    const store = await open({ prefix: 'voice/eu/' });
    await put(store, 'recordings/a.wav');
    await store.settled();
    expect(await server.keysIn(settings.bucket)).toEqual(['voice/eu/recordings/a.wav']);
    expect(await filesOnDisk()).toEqual([]);
    expect((await read(store, 'recordings/a.wav')).toString()).toBe('audio');
  });

  it('moves objects that were stored before S3 was enabled', async () => {
    await mkdir(join(folder, 'objects', 'recordings'), { recursive: true });
    await writeFile(join(folder, 'objects', 'recordings', 'old.wav'), 'old');
    await writeFile(join(folder, 'objects', '.unfinished.partial'), 'cut');
    proxy.spoil(() => 'refuse');
    const store = await open();
    expect((await read(store, 'recordings/old.wav')).toString()).toBe('old');
    proxy.spoil(() => null);
    await store.settled();
    expect(await server.keysIn(settings.bucket)).toEqual(['recordings/old.wav']);
    expect((await read(store, 'recordings/old.wav')).toString()).toBe('old');
  });

  it.each([
    ['the store refuses connections', 'refuse'],
    ['the connection breaks during the upload', 'cut'],
    ['the store answers SlowDown', 'slowDown'],
    ['the store receives corrupted bytes', 'corrupt'],
  ] as const)('keeps the file and retries the upload when %s', async (_, fault) => {
    const content = Buffer.alloc(THREE_PARTS, 'recording');
    // All requests of the first attempts, then one part of a multipart upload, then none.
    let spoiled = 0;
    proxy.spoil(({ method, path }) => {
      const isBody = method === 'PUT' || (fault !== 'corrupt' && fault !== 'cut');
      if (!isBody || spoiled >= 5) return null;
      if (spoiled >= 3 && !path.includes('partNumber=2')) return null;
      spoiled += 1;
      return fault;
    });
    const store = await open();
    await put(store, 'call.wav', content);
    expect(await filesOnDisk()).toEqual(['call.wav']);
    expect((await store.stat('call.wav'))?.sizeBytes).toBe(content.length);
    await store.settled();
    expect(spoiled).toBe(5);
    expect(await filesOnDisk()).toEqual([]);
    expect((await read(store, 'call.wav')).equals(content)).toBe(true);
    expect(await server.unfinishedUploadsIn(settings.bucket)).toEqual([]);
  });

  it('serves an object from disk until the upload is acknowledged, then by presigned URL', async () => {
    const store = await open();
    proxy.spoil(({ method }) => (method === 'PUT' ? 'hold' : null));
    await put(store, 'call.wav', '0123456789');
    await proxy.held();
    expect(await store.presign(inFiveMinutes('call.wav'))).toBeNull();
    expect((await read(store, 'call.wav')).toString()).toBe('0123456789');
    proxy.release();
    await store.settled();
    const url = await store.presign(inFiveMinutes('call.wav'));
    expect(url).not.toContain(settings.secretAccessKey);
    const part = await fetch(url!, { headers: { range: 'bytes=2-4' } });
    expect([part.status, await part.text()]).toEqual([206, '234']);
    expect(Object.fromEntries(part.headers)).toMatchObject({
      'content-type': 'audio/wav',
      'content-range': 'bytes 2-4/10',
      'content-disposition': 'inline; filename="call.wav"',
    });
    expect(new URL(url!).searchParams.get('X-Amz-Expires')).toBe('300');
  });

  it('presigns URLs that the store rejects when expired or modified', async () => {
    const store = await open();
    await put(store, 'a.mp3');
    await store.settled();
    const now = new Date(Date.now() - 400_000);
    const expired = await store.presign({ key: 'a.mp3', now, expiresAt: new Date(now.getTime() + 300_000) });
    expect((await fetch(expired!)).status).toBe(403);
    const url = await store.presign(inFiveMinutes('a.mp3'));
    expect((await fetch(url!.replace('a.mp3', 'b.mp3'))).status).toBe(403);
    expect((await fetch(url!.replace('audio%2Fmpeg', 'text%2Fhtml'))).status).toBe(403);
  });

  it('presigns URLs at the public endpoint', async () => {
    const store = await open({ publicEndpoint: 'https://media.example.com' });
    await put(store, 'a.wav');
    await store.settled();
    const url = await store.presign(inFiveMinutes('a.wav'));
    expect(url).toMatch(new RegExp(`^https://media\\.example\\.com/${settings.bucket}/a\\.wav\\?`));
  });

  it('puts the bucket into the host name without path style', async () => {
    const store = await open({ endpoint: 'https://s3.example.com', pathStyle: false });
    const url = await store.presign(inFiveMinutes('a.wav'));
    expect(url).toMatch(new RegExp(`^https://${settings.bucket}\\.s3\\.example\\.com/a\\.wav\\?`));
  });

  it('hides a deleted object at once and deletes it once the bucket is reachable', async () => {
    const store = await open();
    await put(store, 'a.wav');
    await store.settled();
    proxy.spoil(() => 'refuse');
    await store.delete('a.wav');
    expect(await store.stat('a.wav')).toBeNull();
    await expect(store.read({ key: 'a.wav' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(await store.presign(inFiveMinutes('a.wav'))).toBeNull();
    expect(await server.keysIn(settings.bucket)).toEqual(['a.wav']);
    proxy.spoil(() => null);
    await store.settled();
    expect(await server.keysIn(settings.bucket)).toEqual([]);
    expect(await filesOnDisk()).toEqual([]);
  });

  it('leaves nothing in the bucket of an object deleted during its upload', async () => {
    const store = await open();
    proxy.spoil(({ path }) => (path.includes('partNumber=2') ? 'hold' : null));
    await put(store, 'a.wav', Buffer.alloc(THREE_PARTS));
    await proxy.held();
    await store.delete('a.wav');
    proxy.release();
    await store.settled();
    expect(await server.keysIn(settings.bucket)).toEqual([]);
    expect(await server.unfinishedUploadsIn(settings.bucket)).toEqual([]);
  });

  it('deletes the parts of a broken upload with the object', async () => {
    const store = await open();
    let isDown = false;
    proxy.spoil(({ path }) => {
      isDown ||= path.includes('partNumber=2');
      return isDown ? 'refuse' : null;
    });
    await put(store, 'a.wav', Buffer.alloc(THREE_PARTS));
    await expect.poll(() => logged.length).toBeGreaterThan(0);
    expect(await server.unfinishedUploadsIn(settings.bucket)).toEqual(['a.wav']);
    await store.delete('a.wav');
    proxy.spoil(() => null);
    await store.settled();
    expect(await server.keysIn(settings.bucket)).toEqual([]);
    expect(await server.unfinishedUploadsIn(settings.bucket)).toEqual([]);
  });

  it('stores the newer content when an object is replaced during its upload', async () => {
    const store = await open();
    proxy.spoil(({ method, count }) => (method === 'PUT' && count === 1 ? 'hold' : null));
    await put(store, 'a.wav', 'older');
    await proxy.held();
    await put(store, 'a.wav', 'newer');
    proxy.release();
    await store.settled();
    expect((await read(store, 'a.wav')).toString()).toBe('newer');
    expect(await filesOnDisk()).toEqual([]);
  });

  it('resumes transfers of a killed process', async () => {
    const before = await open();
    await put(before, 'expired.wav');
    await before.settled();
    await before.close();
    // The process, whose parts have the usual length, dies within the second part, before the deletion.
    proxy.spoil(({ method, path }) => {
      if (method === 'DELETE') return 'refuse';
      return path.includes('partNumber=2') ? 'hold' : null;
    });
    const script = join(import.meta.dirname, 'store-process.ts');
    const child = spawn(process.execPath, [script, join(folder, 'objects'), JSON.stringify(settings)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    await proxy.held();
    child.kill('SIGKILL');
    await once(child, 'exit');
    proxy.spoil(() => null);
    expect(await server.unfinishedUploadsIn(settings.bucket)).toEqual(['call.wav']);

    const store = await open({ partBytes: 5 * 2 ** 20 });
    expect(await store.stat('expired.wav')).toBeNull();
    expect((await store.stat('call.wav'))?.sizeBytes).toBe(12_000_000);
    await store.settled();
    expect(await server.keysIn(settings.bucket)).toEqual(['call.wav']);
    expect((await read(store, 'call.wav')).equals(Buffer.alloc(12_000_000, 'recording'))).toBe(true);
    expect(await server.unfinishedUploadsIn(settings.bucket)).toEqual([]);
    proxy.release();
  });

  it('resumes transfers that close interrupted', async () => {
    const store = await open();
    proxy.spoil(({ method }) => (method === 'PUT' ? 'hold' : null));
    await put(store, 'a.wav');
    await proxy.held();
    await store.close();
    expect(await filesOnDisk()).toEqual(['a.wav']);
    proxy.spoil(() => null);
    await (await open()).settled();
    expect(await server.keysIn(settings.bucket)).toEqual(['a.wav']);
  });

  it('fails a read with a truncated response', async () => {
    const store = await open();
    await put(store, 'a.wav', Buffer.alloc(PART_BYTES));
    await store.settled();
    proxy.spoil(({ method }) => (method === 'GET' ? 'truncateAnswer' : null));
    await expect(read(store, 'a.wav')).rejects.toThrow();
  });

  it('rejects reads with STORAGE_UNAVAILABLE during an outage', async () => {
    const store = await open();
    proxy.spoil(() => 'refuse');
    await expect(store.stat('a.wav')).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' });
    await expect(store.read({ key: 'a.wav' })).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' });
  });

  it('logs failures without credentials', async () => {
    const store = await open({ secretAccessKey: 'not-the-right-secret' });
    await put(store, 'a.wav');
    await expect.poll(() => logged.length).toBeGreaterThan(0);
    const text = JSON.stringify(logged);
    expect(text).toContain('Correct S3_SECRET_ACCESS_KEY');
    expect(text).not.toContain('not-the-right-secret');
    expect(text).not.toContain('tandem:test');
    expect(text).not.toContain('Signature=');
    await store.close();
  });
});

describe.skipIf(!hasS3Server)('S3 bucket check at start', () => {
  let server: S3Server;
  let settings: Awaited<ReturnType<S3Server['createBucket']>>;
  beforeAll(async () => {
    server = await startS3Server();
    settings = await server.createBucket();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  async function check(changes: Partial<BucketSettings> = {}): Promise<string> {
    const bucket = openBucket({ ...settings, ...changes, maxAttempts: 1 });
    try {
      return await checkBucket(bucket).then(
        () => 'ok',
        (error: Error) => error.message,
      );
    } finally {
      bucket.close();
    }
  }

  it('succeeds and leaves nothing behind', async () => {
    expect(await check()).toBe('ok');
    expect(await server.keysIn(settings.bucket)).toEqual([]);
  });

  it.each([
    ['a bucket that does not exist', { bucket: 'no-such-bucket' }, /no-such-bucket at 127.* does not exist.*S3_BUCKET/],
    ['an unknown access key', { accessKeyId: 'tandem:nobody' }, /S3_ACCESS_KEY_ID/],
    ['a wrong secret', { secretAccessKey: 'wrong' }, /rejects the signature\. Correct S3_SECRET_ACCESS_KEY,/],
    ['another region', { region: 'eu-west-9' }, /another region than eu-west-9\. Set S3_REGION/],
    ['a missing store', { endpoint: 'http://127.0.0.1:1' }, /cannot be reached.*ECONNREFUSED.*S3_ENDPOINT/],
    ['a host that does not exist', { endpoint: 'http://store.invalid' }, /cannot be reached.*S3_ENDPOINT/],
  ])('names %s in one line', async (_, changes, message) => {
    const text = await check(changes);
    expect(text).toMatch(message);
    expect(text).not.toContain('\n');
    expect(text).not.toContain(settings.secretAccessKey);
  });

  it('names a server that is not an S3 store', async () => {
    const web = createServer((request, answer) => {
      request.resume();
      answer.writeHead(200, { 'content-type': 'text/html' }).end('<html>Welcome</html>');
    });
    web.listen(0, '127.0.0.1');
    await once(web, 'listening');
    const text = await check({ endpoint: `http://127.0.0.1:${(web.address() as AddressInfo).port}` });
    web.close();
    expect(text).toMatch(/^S3 bucket /);
    expect(text).not.toContain('\n');
  });
});
