import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CATALOGUE } from '../../../speech/models/catalogue.ts';
import { checkFiles } from '../../../speech/models/check-model.ts';
import { fetchModel, type WantedModel, wantedModel } from '../../../speech/models/fetch-model.ts';
import { readLockFile } from '../../../speech/models/lock-file.ts';
import { serveFile } from './file-server.ts';
import { type ArchivedEntry, tarOf } from './tar-archive.ts';

const ENTRIES: ArchivedEntry[] = [
  { name: 'published-en/', type: '5' },
  { name: 'published-en/model.onnx', content: 'a model' },
  { name: 'published-en/tokens.txt', content: 'a 1' },
];
const ARCHIVE = gzipSync(tarOf(ENTRIES));
const SHA256 = createHash('sha256').update(ARCHIVE).digest('hex');

let modelsDir: string;
beforeEach(async () => {
  modelsDir = await mkdtemp(join(tmpdir(), 'tandem-models-'));
});
afterEach(() => rm(modelsDir, { recursive: true }));

async function fetchIt(url: string, more: Partial<WantedModel> = {}) {
  const wanted: WantedModel = { name: 'mine', kind: 'stt', url, sha256: null, manifest: null, ...more };
  return await fetchModel(wanted, { modelsDir, onProgress: () => {} });
}

async function remains(): Promise<string[]> {
  const paths = await readdir(modelsDir, { recursive: true });
  return paths.sort();
}

it('installs the model with its manifest and leaves no temporary files', async () => {
  await using server = await serveFile({ bytes: ARCHIVE, etag: '"one"' });
  const fetched = await fetchIt(server.url, { manifest: { type: 'tdnn', languages: ['en'] } });
  const folder = join(modelsDir, 'stt/mine');
  expect(fetched).toEqual({ folder, sha256: SHA256, bytes: ARCHIVE.length, files: 2, wasVerified: false });
  expect(await readFile(join(folder, 'model.onnx'), 'utf8')).toBe('a model');
  expect(JSON.parse(await readFile(join(folder, 'tandem.json'), 'utf8'))).toEqual({ type: 'tdnn', languages: ['en'] });
  expect(await remains()).toEqual([
    '.downloads',
    'models.lock.json',
    'stt',
    'stt/mine',
    'stt/mine/model.onnx',
    'stt/mine/tandem.json',
    'stt/mine/tokens.txt',
  ]);
});

it('accepts an archive without a top folder, and its own manifest', async () => {
  const flat = tarOf([
    { name: 'model.onnx', content: 'm' },
    { name: 'tandem.json', content: '{"languages":["hi"]}' },
  ]);
  await using server = await serveFile({ bytes: flat, etag: null });
  const { folder } = await fetchIt(server.url, { manifest: { languages: ['en'] } });
  expect(await readFile(join(folder, 'tandem.json'), 'utf8')).toBe('{"languages":["hi"]}');
});

describe('lock file', () => {
  it('detects changed and missing files', async () => {
    await using server = await serveFile({ bytes: ARCHIVE, etag: null });
    const { folder } = await fetchIt(server.url);
    const locked = (await readLockFile(modelsDir))['stt/mine']!;
    expect(locked).toMatchObject({ url: server.url, sha256: SHA256 });
    expect(await checkFiles(folder, locked)).toEqual([]);
    await writeFile(join(folder, 'model.onnx'), 'A model');
    await rm(join(folder, 'tokens.txt'));
    expect(await checkFiles(folder, locked)).toEqual([
      'model.onnx has changed since it was fetched',
      'tokens.txt is missing',
    ]);
    await writeFile(join(folder, 'model.onnx'), 'another model');
    expect((await checkFiles(folder, locked))[0]).toBe('model.onnx has 13 bytes, not 7');
  });

  it('pins the checksum of a URL', async () => {
    const file = { bytes: ARCHIVE, etag: null };
    await using server = await serveFile(file);
    const { folder } = await fetchIt(server.url);
    await rm(folder, { recursive: true });
    expect(await fetchIt(server.url)).toMatchObject({ wasVerified: true });
    await rm(folder, { recursive: true });
    file.bytes = gzipSync(tarOf([...ENTRIES, { name: 'published-en/worm', content: 'x' }]));
    await expect(fetchIt(server.url)).rejects.toMatchObject({ code: 'CHECKSUM_MISMATCH' });
    await expect(readdir(folder)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('fails before any download if damaged', async () => {
    await using server = await serveFile({ bytes: ARCHIVE, etag: null });
    await writeFile(join(modelsDir, 'models.lock.json'), '{"stt/mine": {}}');
    await expect(fetchIt(server.url)).rejects.toMatchObject({ code: 'BAD_LOCK_FILE' });
    expect(server.requests).toEqual([]);
  });
});

describe('a rejected model', () => {
  it('does not replace an installed one', async () => {
    await using server = await serveFile({ bytes: ARCHIVE, etag: null });
    await mkdir(join(modelsDir, 'stt/mine'), { recursive: true });
    await expect(fetchIt(server.url)).rejects.toMatchObject({ code: 'ALREADY_INSTALLED' });
    expect(server.requests).toEqual([]);
  });

  it('leaves nothing after a checksum mismatch', async () => {
    await using server = await serveFile({ bytes: ARCHIVE, etag: '"one"' });
    await expect(fetchIt(server.url, { sha256: '0'.repeat(64) })).rejects.toMatchObject({ code: 'CHECKSUM_MISMATCH' });
    expect(await remains()).toEqual(['.downloads']);
  });

  it('leaves nothing after a hostile archive', async () => {
    const bytes = gzipSync(tarOf([...ENTRIES, { name: '../../escaped', content: 'x' }]));
    await using server = await serveFile({ bytes, etag: '"one"' });
    await expect(fetchIt(server.url)).rejects.toMatchObject({ code: 'BAD_ARCHIVE' });
    expect(await remains()).toEqual(['.downloads', 'stt']);
  });
});

describe('model argument', () => {
  it('accepts a catalogue name', () => {
    const [model] = CATALOGUE;
    expect(wantedModel(model!.name)).toEqual({
      ...{ name: model!.name, kind: 'stt', url: model!.url, sha256: null },
      manifest: { type: 'streaming-transducer', languages: ['en'] },
    });
  });

  it('accepts a URL, which gives the folder name by default', () => {
    const url = 'https://models.example/a/my-model.v2.tar.bz2?token=1';
    expect(wantedModel(url)).toEqual({ name: 'my-model.v2', kind: 'stt', url, sha256: null, manifest: null });
    const given = { name: 'mine', kind: 'punctuation', sha256: SHA256 } as const;
    expect(wantedModel(url, given)).toMatchObject(given);
  });

  it.each(['whisper-enormous', 'file:///etc/passwd', 'ftp://models.example/x.tar', ''])('rejects %j', (asked) => {
    expect(wantedModel(asked)).toBeNull();
  });
});

it('resolves unique catalogue names at https URLs', () => {
  expect(new Set(CATALOGUE.map(({ name }) => name)).size).toBe(CATALOGUE.length);
  for (const { name, url } of CATALOGUE) expect(url).toMatch(new RegExp(`^https://.*/${name}\\.tar\\.bz2$`));
});
