import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { signObjectUrl, verifyObjectUrl } from '../../storage/object-urls.ts';
import { type ObjectStore, openObjectStore } from '../../storage/objects.ts';
import { openBucket } from '../../storage/s3/bucket.ts';
import { openS3ObjectStore } from '../../storage/s3/object-store.ts';
import * as fc from '../properties.ts';
import { hasS3Server, type S3Server, startS3Server } from './s3/s3-server.ts';

let server: S3Server | null = null;
beforeAll(async () => {
  server = hasS3Server ? await startS3Server() : null;
});
afterAll(() => server?.[Symbol.asyncDispose]());

/** `settle` waits until the object is in its final place. */
type OpenStore = (folder: string) => Promise<{ store: ObjectStore; settle: () => Promise<void> }>;

async function openFolder(folder: string) {
  return { store: await openObjectStore({ folder }), settle: async () => {} };
}

async function openS3(folder: string) {
  const bucket = openBucket({ ...(await server!.createBucket()), prefix: 'tandem/' });
  const store = await openS3ObjectStore({ folder, bucket, logger: { info() {}, warn() {}, error() {} } });
  return { store, settle: () => store.settled() };
}

const BACKENDS: { name: string; isThere: boolean; open: OpenStore }[] = [
  { name: 'a folder', isThere: true, open: openFolder },
  { name: 'an S3 bucket', isThere: hasS3Server, open: openS3 },
];

for (const { name, isThere, open } of BACKENDS) {
  describe.skipIf(!isThere)(`object store in ${name}`, () => {
    let folder: string;
    let store: ObjectStore;
    let settle: () => Promise<void>;
    beforeEach(async () => {
      folder = await mkdtemp(path.join(tmpdir(), 'tandem-objects-'));
      ({ store, settle } = await open(path.join(folder, 'objects')));
    });
    afterEach(async () => {
      await store.close();
      await rm(folder, { recursive: true, force: true });
    });

    async function put(key: string, content: string) {
      const sourcePath = path.join(folder, 'source');
      await writeFile(sourcePath, content);
      const stored = await store.putFile({ key, sourcePath });
      await settle();
      return stored;
    }

    it('moves a file into place and reads it whole or by range', async () => {
      expect(await put('w/2026/call.wav', 'hello world')).toMatchObject({ key: 'w/2026/call.wav', sizeBytes: 11 });
      await expect(stat(path.join(folder, 'source'))).rejects.toMatchObject({ code: 'ENOENT' });
      const read = async (range: object) =>
        (await buffer(await store.read({ key: 'w/2026/call.wav', ...range }))).toString();
      expect(await read({})).toBe('hello world');
      expect(await read({ start: 6 })).toBe('world');
      expect(await read({ start: 0, end: 4 })).toBe('hello');
      expect(await store.stat('w/2026/call.wav')).toMatchObject({ sizeBytes: 11 });
    });

    it('replaces an object completely', async () => {
      await put('a', 'old and long');
      await put('a', 'new');
      expect((await buffer(await store.read({ key: 'a' }))).toString()).toBe('new');
      expect(await store.stat('a')).toMatchObject({ sizeBytes: 3 });
    });

    it('deletes existing and missing objects', async () => {
      await put('a', 'x');
      await store.delete('a');
      await store.delete('a');
      expect(await store.stat('a')).toBeNull();
      await settle();
      expect(await store.stat('a')).toBeNull();
      await expect(store.read({ key: 'a' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    });

    it('stays inside its folder for any key', async () => {
      const outside = path.join(folder, 'outside');
      await writeFile(outside, 'private');
      for (const key of [
        '../outside',
        '..',
        '.',
        '',
        '/etc/passwd',
        'a/../../outside',
        'a//b',
        'a\\..\\b',
        'a\0b',
        '.hidden',
      ]) {
        await expect(store.read({ key })).rejects.toMatchObject({ code: 'NOT_FOUND' });
        await expect(put(key, 'overwritten')).rejects.toMatchObject({ code: 'NOT_FOUND' });
        await expect(store.delete(key)).rejects.toMatchObject({ code: 'NOT_FOUND' });
      }
      expect(await readFile(outside, 'utf8')).toBe('private');
      await fc.assert(
        fc.asyncProperty(fc.string(), async (key) => {
          const found = await store.stat(key).catch((error: { code: string }) => error.code);
          expect([null, 'NOT_FOUND']).toContain(found);
        }),
      );
    });

    it('never reads a folder as an object', async () => {
      await put('a/b', 'x');
      expect(await store.stat('a')).toBeNull();
    });

    it('keeps an object that is stored again after its deletion', async () => {
      await put('a', 'first');
      await store.delete('a');
      await put('a', 'second');
      expect((await buffer(await store.read({ key: 'a' }))).toString()).toBe('second');
    });

    it('keeps an empty object', async () => {
      await put('a.wav', '');
      expect(await store.stat('a.wav')).toMatchObject({ sizeBytes: 0 });
      expect((await buffer(await store.read({ key: 'a.wav' }))).length).toBe(0);
    });

    it('keeps an object of several megabytes byte for byte', async () => {
      const content = randomBytes(12_000_000);
      const sourcePath = path.join(folder, 'source');
      await writeFile(sourcePath, content);
      await store.putFile({ key: 'large.wav', sourcePath });
      await settle();
      expect((await buffer(await store.read({ key: 'large.wav' }))).equals(content)).toBe(true);
      const part = await buffer(await store.read({ key: 'large.wav', start: 5_242_870, end: 5_242_890 }));
      expect(part.equals(content.subarray(5_242_870, 5_242_891))).toBe(true);
    });
  });
}

describe('object folder', () => {
  it('leaves no temporary file when it replaces an object', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'tandem-objects-'));
    const store = await openObjectStore({ folder: path.join(folder, 'objects') });
    for (const content of ['old and long', 'new']) {
      await writeFile(path.join(folder, 'source'), content);
      await store.putFile({ key: 'a', sourcePath: path.join(folder, 'source') });
    }
    expect(await readdir(path.join(folder, 'objects'))).toEqual(['a']);
    await rm(folder, { recursive: true });
  });
});

describe('signed object URL', () => {
  const secret = randomBytes(32);
  const expiresAt = new Date('2026-01-01T00:05:00.900Z');
  const now = new Date('2026-01-01T00:00:00Z');

  it('verifies until its expiry, for its own key only', () => {
    const token = signObjectUrl({ key: 'a/b.wav', expiresAt, secret });
    const verify = (changes: object) => () =>
      verifyObjectUrl({ key: 'a/b.wav', ...token, secrets: [secret], now, ...changes });
    expect(verify({})).not.toThrow();
    expect(verify({ now: new Date('2026-01-01T00:04:59.999Z') })).not.toThrow();
    expect(verify({ now: new Date('2026-01-01T00:05:00Z') })).toThrow(expect.objectContaining({ code: 'URL_EXPIRED' }));
    const forged = expect.objectContaining({ code: 'URL_SIGNATURE_INVALID' });
    expect(verify({ key: 'a/c.wav' })).toThrow(forged);
    expect(verify({ expires: token.expires + 1 })).toThrow(forged);
    expect(verify({ secrets: [randomBytes(32), secret] })).not.toThrow();
    expect(verify({ secrets: [randomBytes(32)] })).toThrow(forged);
    expect(verify({ secrets: [] })).toThrow(forged);
    for (const signature of ['', 'x', `${token.signature}AA`, token.signature.slice(1)]) {
      expect(verify({ signature })).toThrow(forged);
    }
  });
});
