import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type DownloadOptions, type DownloadProgress, download } from '../../../speech/models/download.ts';
import { type CuttingServer, type FileServer, type ServedFile, serve, serveFile } from './file-server.ts';

const BYTES = randomBytes(300_000);
const SHA256 = createHash('sha256').update(BYTES).digest('hex');

let home: string;
let path: string;
let progress: DownloadProgress[];
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'tandem-download-'));
  path = join(home, 'below', 'file');
  progress = [];
});
afterEach(() => rm(home, { recursive: true }));

async function fetchFrom(
  { url, taken = () => {} }: Pick<FileServer, 'url'> & Partial<CuttingServer>,
  more: Partial<DownloadOptions> = {},
) {
  const onProgress = (step: DownloadProgress) => {
    progress.push(step);
    taken(step.bytes);
  };
  return await download({ url, path, sha256: null, mostBytes: 1_000_000, onProgress, ...more });
}

function served(more: Partial<ServedFile> = {}): ServedFile {
  return { bytes: BYTES, etag: '"one"', ...more };
}

it('downloads a file with progress, size and checksum', async () => {
  await using server = await serveFile(served());
  expect(await fetchFrom(server)).toEqual({ bytes: BYTES.length, sha256: SHA256 });
  expect(await readFile(path)).toEqual(BYTES);
  expect(progress[0]).toEqual({ bytes: 0, totalBytes: BYTES.length });
  expect(progress.at(-1)).toEqual({ bytes: BYTES.length, totalBytes: BYTES.length });
});

describe('an interrupted download', () => {
  it('resumes after a connection loss', async () => {
    await using server = await serveFile(served({ cutAfter: [100_000, 50_000] }));
    expect(await fetchFrom(server, { sha256: SHA256 })).toEqual({ bytes: BYTES.length, sha256: SHA256 });
    expect(await readFile(path)).toEqual(BYTES);
    expect(server.requests.map(({ range }) => range)).toEqual([undefined, 'bytes=100000-', 'bytes=150000-']);
  });

  it('resumes at the next request', async () => {
    await using server = await serveFile(served({ cutAfter: [100_000] }));
    const abort = new AbortController();
    const onProgress = ({ bytes }: DownloadProgress) => {
      if (bytes >= 100_000) abort.abort(new Error('enough'));
    };
    const first = fetchFrom(server, { onProgress, signal: abort.signal });
    await expect(first).rejects.toThrow('enough');
    const kept = (await readFile(path)).length;
    expect(kept).toBe(100_000);
    expect(await fetchFrom(server)).toEqual({ bytes: BYTES.length, sha256: SHA256 });
    expect(server.requests[1]).toMatchObject({ range: `bytes=${kept}-`, 'if-range': '"one"' });
  });

  it('restarts if the file has changed', async () => {
    const file = served({ cutAfter: [100_000, 0] });
    await using server = await serveFile(file);
    await expect(fetchFrom(server)).rejects.toMatchObject({ code: 'DOWNLOAD_FAILED' });
    Object.assign(file, { bytes: Buffer.from(BYTES.toReversed()).subarray(0, 200_000), etag: '"two"', cutAfter: [] });
    expect(await fetchFrom(server)).toMatchObject({ bytes: 200_000 });
    expect(await readFile(path)).toEqual(file.bytes);
  });

  it('restarts if the server sends no validator', async () => {
    await using server = await serveFile(served({ etag: null, cutAfter: [100_000] }));
    expect(await fetchFrom(server)).toEqual({ bytes: BYTES.length, sha256: SHA256 });
    expect(server.requests.map(({ range }) => range)).toEqual([undefined, undefined]);
  });

  it('fails after repeated stalls, and can be resumed', async () => {
    await using server = await serveFile(served({ cutAfter: [100_000, 0] }));
    const failure = { code: 'DOWNLOAD_FAILED', message: expect.stringContaining('fetch again') };
    await expect(fetchFrom(server)).rejects.toMatchObject(failure);
    expect(await readFile(path)).toEqual(BYTES.subarray(0, 100_000));
  });
});

describe('a failed download', () => {
  it('leaves nothing behind after a checksum mismatch', async () => {
    await using server = await serveFile(served());
    const failure = { code: 'CHECKSUM_MISMATCH', message: expect.stringContaining(SHA256) };
    await expect(fetchFrom(server, { sha256: '0'.repeat(64) })).rejects.toMatchObject(failure);
    expect(await readdir(join(home, 'below'))).toEqual([]);
  });

  it.each([404, 403, 500])('reports status %i', async (status) => {
    await using server = await serve((response) => response.writeHead(status).end('no'));
    const failure = { code: 'DOWNLOAD_FAILED', message: expect.stringContaining(`${status}`) };
    await expect(fetchFrom(server)).rejects.toMatchObject(failure);
    expect(server.requests).toHaveLength(1);
  });

  it('reports a refused connection', async () => {
    const server = await serveFile(served());
    await server[Symbol.asyncDispose]();
    const failure = { code: 'DOWNLOAD_FAILED', message: expect.stringContaining('ECONNREFUSED') };
    await expect(fetchFrom(server)).rejects.toMatchObject(failure);
  });

  it.each([
    { what: 'announced', headers: { 'content-length': '2000000' } },
    { what: 'unannounced', headers: {} },
  ])('stops at a file that is too large, $what', async ({ headers }) => {
    await using server = await serve((response) => response.writeHead(200, headers).end(Buffer.alloc(2_000_000)));
    await expect(fetchFrom(server)).rejects.toMatchObject({ code: 'DOWNLOAD_FAILED' });
  });
});

it('follows a redirect', async () => {
  await using server = await serveFile(served());
  await using front = await serve((response) => response.writeHead(302, { location: server.url }).end());
  expect(await fetchFrom(front)).toEqual({ bytes: BYTES.length, sha256: SHA256 });
});

it('accepts a complete file whose end was not acknowledged', async () => {
  await using server = await serveFile(served({ cutAfter: [BYTES.length] }));
  const hasLength = await fetchFrom(server);
  expect(hasLength).toEqual({ bytes: BYTES.length, sha256: SHA256 });
});

it('restarts if the server rejects the range of a complete file', async () => {
  await using server = await serve((response, { range }) => {
    const { length } = server.requests;
    if (range !== undefined) return response.writeHead(416).end();
    response.writeHead(200, { etag: '"one"' });
    if (length > 1) response.end(BYTES);
    else response.write(BYTES);
  });
  const abort = new AbortController();
  const onProgress = ({ bytes }: DownloadProgress) => {
    if (bytes === BYTES.length) abort.abort(new Error('enough'));
  };
  await expect(fetchFrom(server, { onProgress, signal: abort.signal })).rejects.toThrow('enough');
  expect(await fetchFrom(server)).toEqual({ bytes: BYTES.length, sha256: SHA256 });
  expect(server.requests.map(({ range }) => range)).toEqual([undefined, `bytes=${BYTES.length}-`, undefined]);
});
