import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { type ErrorCode, TandemError } from '../../machines/errors.ts';
import { raceAbort } from '../../runtime/waiting.ts';
import { type CheckOptions, checkCallbackUrl, isLookupFailure } from './callback-url.ts';
import { failureOf, requestTo } from './safe-request.ts';

export interface SafeDownloadOptions extends CheckOptions {
  url: string;
  /** Path of the new file, readable by its owner only. The file is removed if the download fails. */
  filePath: string;
  mostBytes: number;
  timeoutMs: number;
  /** Error code and field if the URL is not allowed. */
  refusedAs: { code: ErrorCode; field: string };
  /** Error code if the download fails, or the file has more than `mostBytes`. */
  unreachableAs: ErrorCode;
  /** PEM certificates to trust instead of the system's, for tests. */
  ca?: string;
}

export interface DownloadedFile {
  /** Declared by the server; null if missing. */
  mediaType: string | null;
}

/**
 * Downloads a file from an untrusted URL with the protections of `safePost`: checked addresses only, without redirects,
 * proxies or kept connections.
 * @throws TandemError of `refusedAs` or `unreachableAs`; the signal's reason when aborted
 */
export async function safeDownload(options: SafeDownloadOptions): Promise<DownloadedFile> {
  const deadline = AbortSignal.timeout(options.timeoutMs);
  const signal = options.signal ? AbortSignal.any([options.signal, deadline]) : deadline;
  const unreachable = (reason: string, cause?: unknown) =>
    new TandemError(options.unreachableAs, `The file could not be fetched: ${reason}.`, { cause });
  try {
    signal.throwIfAborted();
    const checked = await raceAbort(checkCallbackUrl(options.url, { ...options, signal }), signal);
    const headers = { accept: 'audio/*, */*;q=0.5', 'accept-encoding': 'identity', 'user-agent': 'Tandem' };
    const { ca, timeoutMs } = options;
    const client = requestTo(checked, { method: 'GET', headers, ca, signal, timeoutMs });
    try {
      client.once('upgrade', () => client.destroy(new Error('an unexpected upgrade')));
      client.end();
      const [response] = (await once(client, 'response', { signal })) as [IncomingMessage];
      const { statusCode = 0 } = response;
      if (statusCode >= 300 && statusCode < 400) throw unreachable(`HTTP ${statusCode}, redirects are not followed`);
      if (statusCode !== 200) throw unreachable(`HTTP ${statusCode}`);
      await writeBody(response, options, () => unreachable(`it has more than ${options.mostBytes} bytes`));
      return { mediaType: response.headers['content-type']?.split(';', 1)[0]?.trim() || null };
    } finally {
      client.on('error', () => {});
      client.destroy();
    }
  } catch (error) {
    await rm(options.filePath, { force: true });
    options.signal?.throwIfAborted();
    if (deadline.aborted) throw unreachable(`it took more than ${options.timeoutMs / 1000} seconds`, error);
    if (isLookupFailure(error)) throw unreachable('the host cannot be looked up', error);
    if (error instanceof TandemError) throw error;
    throw unreachable(FAILURE_TEXTS[failureOf(error).failure] ?? 'the connection was lost', error);
  }
}

const FAILURE_TEXTS: Readonly<Record<string, string>> = {
  connection_failed: 'no connection',
  tls_failed: 'the certificate of the server is not valid',
  protocol_error: 'the server does not speak HTTP',
};

async function writeBody(
  response: IncomingMessage,
  { filePath, mostBytes }: SafeDownloadOptions,
  tooLarge: () => Error,
): Promise<void> {
  let bytes = 0;
  await pipeline(
    response,
    async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        bytes += chunk.length;
        if (bytes > mostBytes) throw tooLarge();
        yield chunk;
      }
    },
    createWriteStream(filePath, { flags: 'wx', mode: 0o600 }),
  );
}
