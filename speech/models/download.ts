import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { replaceFetchTransport } from '../../runtime/fetch-transport.ts';
import { schemaCheck } from '../../runtime/schema-check.ts';
import { ModelError } from './model-error.ts';

export interface DownloadOptions {
  url: string;
  /** Partial file, which a later attempt continues. */
  path: string;
  /** Lower-case hexadecimal; null if unknown. */
  sha256: string | null;
  mostBytes: number;
  onProgress: (progress: DownloadProgress) => void;
  signal?: AbortSignal;
}

export interface DownloadProgress {
  bytes: number;
  /** Null if the server does not say. */
  totalBytes: number | null;
}

export interface Downloaded {
  bytes: number;
  sha256: string;
}

/**
 * Downloads a file. Continues an interrupted attempt if the server confirms that the file is the same (RFC 9110,
 * section 13.1.5). Reconnects after a broken connection while that makes progress.
 * @throws ModelError `DOWNLOAD_FAILED`, `CHECKSUM_MISMATCH`; the signal's reason
 */
export async function download(options: DownloadOptions): Promise<Downloaded> {
  const { url, path, sha256: expected, signal } = options;
  await replaceFetchTransport();
  await mkdir(dirname(path), { recursive: true });
  let bytesBefore = -1;
  while (true) {
    const part = await openPart(path, url);
    try {
      const downloaded = await continueDownload(part, options);
      if (expected !== null && downloaded.sha256 !== expected) {
        await forget(path);
        const message = `${url} has the SHA-256 checksum ${downloaded.sha256}, not ${expected}`;
        throw new ModelError('CHECKSUM_MISMATCH', message);
      }
      await rm(validatorPath(path), { force: true });
      return downloaded;
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof ConnectionBroken)) throw error;
      const reason = reasonOf(error.cause);
      const message =
        part.bytes === 0
          ? `${url} cannot be fetched (${reason})`
          : `the download broke off (${reason}): fetch again to continue it`;
      if (part.bytes <= bytesBefore) throw new ModelError('DOWNLOAD_FAILED', message, { cause: error });
      bytesBefore = part.bytes;
    } finally {
      await part.file.close();
    }
  }
}

/** The connection ended before the file did, so it can be continued. */
class ConnectionBroken extends Error {
  override readonly name = 'ConnectionBroken';
}

interface Part {
  file: FileHandle;
  bytes: number;
  hash: Hash;
  /** Proves that the server still has the same file; null if it cannot be continued. */
  validator: string | null;
}

const Validator = schemaCheck({
  type: 'object',
  required: ['url', 'validator'],
  properties: { url: { type: 'string' }, validator: { type: 'string', minLength: 1 } },
});

async function openPart(path: string, url: string): Promise<Part> {
  const validator = await readValidator(path, url);
  const hash = createHash('sha256');
  let bytes = 0;
  if (validator !== null) {
    bytes = (await stat(path).catch(() => null))?.size ?? 0;
    if (bytes > 0) for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  }
  const file = await open(path, bytes > 0 ? 'a' : 'w', 0o644);
  return { file, bytes, hash, validator: bytes > 0 ? validator : null };
}

/** @throws ConnectionBroken, ModelError */
async function continueDownload(part: Part, options: DownloadOptions): Promise<Downloaded> {
  const { url, path, mostBytes, onProgress, signal } = options;
  const response = await request(part, options);
  const isContinued = response.status === 206 && startOf(response) === part.bytes;
  if (!isContinued) await restart(part, path);
  const length = Number(response.headers.get('content-length') ?? Number.NaN);
  const totalBytes = Number.isSafeInteger(length) ? part.bytes + length : null;
  const tooLarge = new ModelError('DOWNLOAD_FAILED', `${url} is larger than ${mostBytes} bytes`);
  if (totalBytes !== null && totalBytes > mostBytes) throw tooLarge;
  await writeValidator(path, { url, response });
  onProgress({ bytes: part.bytes, totalBytes });
  for await (const chunk of chunksOf(response)) {
    if (part.bytes + chunk.byteLength > mostBytes) throw tooLarge;
    await part.file.writeFile(chunk);
    part.hash.update(chunk);
    part.bytes += chunk.byteLength;
    onProgress({ bytes: part.bytes, totalBytes });
    signal?.throwIfAborted();
  }
  if (totalBytes !== null && part.bytes !== totalBytes) throw new ConnectionBroken('too short');
  await part.file.sync();
  return { bytes: part.bytes, sha256: part.hash.digest('hex') };
}

/** @throws ConnectionBroken, ModelError */
async function request(part: Part, { url, signal }: DownloadOptions): Promise<Response> {
  const headers: Record<string, string> = { 'accept-encoding': 'identity' };
  if (part.validator !== null) Object.assign(headers, { range: `bytes=${part.bytes}-`, 'if-range': part.validator });
  let response: Response;
  try {
    response = await fetch(url, { headers, ...(signal !== undefined && { signal }) });
  } catch (error) {
    throw new ConnectionBroken('no answer', { cause: error });
  }
  if (url.startsWith('https:') && response.url.startsWith('http:')) {
    await response.body?.cancel();
    throw new ModelError('DOWNLOAD_FAILED', `${url} leads to an address without encryption`);
  }
  if (response.status === 200 || response.status === 206) return response;
  await response.body?.cancel();
  if (response.status === 416 && part.bytes > 0) {
    // No bytes follow: an earlier attempt ended just before it noticed the end, or the file changed.
    part.validator = null;
    return await request(part, { url, signal } as DownloadOptions);
  }
  throw new ModelError('DOWNLOAD_FAILED', `${url} cannot be fetched: the server answers ${response.status}`);
}

async function* chunksOf(response: Response): AsyncGenerator<Uint8Array> {
  const body = response.body?.[Symbol.asyncIterator]();
  if (body === undefined) return;
  try {
    while (true) {
      const next = await body.next().catch((error: unknown) => {
        throw new ConnectionBroken('the connection ended', { cause: error });
      });
      if (next.done) return;
      yield next.value;
    }
  } finally {
    await body.return?.(undefined).catch(() => {});
  }
}

/** Start of `bytes 1000-1999/2000`; null if malformed. */
function startOf(response: Response): number | null {
  const match = /^bytes (\d+)-/.exec(response.headers.get('content-range') ?? '');
  return match === null ? null : Number(match[1]);
}

async function restart(part: Part, path: string): Promise<void> {
  if (part.bytes === 0) return;
  await part.file.close();
  part.file = await open(path, 'w', 0o644);
  part.bytes = 0;
  part.hash = createHash('sha256');
}

function validatorPath(path: string): string {
  return `${path}.json`;
}

async function readValidator(path: string, url: string): Promise<string | null> {
  try {
    const kept: unknown = JSON.parse(await readFile(validatorPath(path), 'utf8'));
    return Validator.matches(kept) && kept.url === url ? kept.validator : null;
  } catch {
    return null;
  }
}

/** A weak ETag does not guarantee the same bytes. */
async function writeValidator(path: string, { url, response }: { url: string; response: Response }): Promise<void> {
  const etag = response.headers.get('etag');
  const validator = etag !== null && !etag.startsWith('W/') ? etag : response.headers.get('last-modified');
  if (validator === null) return await rm(validatorPath(path), { force: true });
  await writeFile(validatorPath(path), JSON.stringify({ url, validator }));
}

async function forget(path: string): Promise<void> {
  await rm(path, { force: true });
  await rm(validatorPath(path), { force: true });
}

function reasonOf(error: unknown): string {
  let deepest = error;
  while (deepest instanceof Error && deepest.cause instanceof Error) deepest = deepest.cause;
  return deepest instanceof Error ? deepest.message || deepest.name : 'it ended early';
}
