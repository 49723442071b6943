import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { basename } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { CommandError } from './command.ts';

export interface UploadOptions {
  url: URL;
  headers: Readonly<Record<string, string>>;
  filePath: string;
  /** Default: `file`. */
  fileField?: string;
  fields: readonly (readonly [name: string, value: string])[];
  /** Called as bytes are sent, and once when all are. */
  onProgress: (progress: { sentBytes: number; totalBytes: number }) => void;
}

/**
 * Uploads a file as a form, streamed from disk. Not with `fetch`, which reports no progress and fails if the response
 * takes five minutes. A response may arrive before everything is sent.
 * @throws CommandError NO_SUCH_FILE, FILE_NOT_READABLE; the connection's error
 */
export async function uploadFile(options: UploadOptions): Promise<{ status: number; text: string }> {
  const { url, filePath, onProgress } = options;
  const file = await stat(filePath).catch(() => null);
  if (!file?.isFile()) throw new CommandError('NO_SUCH_FILE', `there is no file ${JSON.stringify(filePath)}`);
  const { boundary, head, tail } = formAround(options);
  const totalBytes = file.size;
  const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
    method: 'POST',
    headers: {
      ...options.headers,
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': head.length + totalBytes + tail.length,
    },
  });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).once('error', reject);
  });
  answered.catch(() => undefined);

  async function* form() {
    yield head;
    let sentBytes = 0;
    onProgress({ sentBytes, totalBytes });
    for await (const chunk of bytesOf(filePath, totalBytes)) {
      yield chunk;
      sentBytes += chunk.length;
      onProgress({ sentBytes, totalBytes });
    }
    yield tail;
  }

  const sent = pipeline(form, request);
  sent.catch(() => undefined);
  const response = await answered.catch(async (error: unknown) => {
    // The request reports a file that cannot be read as a lost connection.
    await sent;
    throw error;
  });
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk as string;
  request.destroy();
  return { status: response.statusCode ?? 0, text };
}

/** Yields as many bytes as were announced, even if the file grows meanwhile. @throws CommandError FILE_NOT_READABLE */
async function* bytesOf(filePath: string, totalBytes: number): AsyncGenerator<Buffer> {
  if (totalBytes === 0) return;
  const stream = createReadStream(filePath, { end: totalBytes - 1 });
  try {
    for await (const chunk of stream) yield chunk as Buffer;
  } catch (cause) {
    throw notReadable(filePath, { reason: (cause as Error).message, cause });
  }
  // Without an error the server would wait for the missing bytes.
  if (stream.bytesRead < totalBytes) throw notReadable(filePath, { reason: 'it became shorter during the upload' });
}

function notReadable(filePath: string, { reason, cause }: { reason: string; cause?: unknown }): CommandError {
  return new CommandError('FILE_NOT_READABLE', `${JSON.stringify(filePath)} cannot be read: ${reason}`, { cause });
}

function formAround({ filePath, fileField = 'file', fields }: UploadOptions): {
  boundary: string;
  head: Buffer;
  tail: Buffer;
} {
  const boundary = `tandem-${randomUUID()}`;
  // As browsers do (WHATWG, multipart/form-data encoding algorithm).
  const name = basename(filePath).replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
  const parts = [
    ...fields.map(([field, value]) => `content-disposition: form-data; name="${field}"\r\n\r\n${value}\r\n`),
    `content-disposition: form-data; name="${fileField}"; filename="${name}"\r\ncontent-type: application/octet-stream\r\n\r\n`,
  ];
  return {
    boundary,
    head: Buffer.from(parts.map((part) => `--${boundary}\r\n${part}`).join('')),
    tail: Buffer.from(`\r\n--${boundary}--\r\n`),
  };
}
