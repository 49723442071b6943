import { createWriteStream } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import multipart, { type MultipartFile } from '@fastify/multipart';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { TandemError } from '../machines/errors.ts';
import { raceAbort } from '../runtime/waiting.ts';
import { digestUpload } from './upload-digests.ts';
import { type InvalidField, validationFailed } from './validation.ts';

export interface UploadedFile {
  path: string;
  bytes: number;
  /** File name from the client; null if missing. */
  name: string | null;
  mediaType: string | null;
}

export interface ReceiveFormOptions {
  fileField: string;
  /** Alternative field name; some clients append `[]` to lists. */
  fileFieldAlias?: string;
  /** Default 1. */
  minFiles?: number;
  /** Default 1. */
  maxFiles?: number;
  /** The value is whether it may be repeated. */
  fields: Readonly<Record<string, 'once' | 'repeated'>>;
  /** Path for the file with this index (from 0). Created readable by its owner only. */
  pathOf: (index: number) => string;
  maxFileBytes: number;
  /** Limit of all files together. Default: `maxFiles` times `maxFileBytes`. */
  maxBytes?: number;
  /** Aborting rejects with its reason. */
  signal: AbortSignal;
}

export interface ReceivedForm {
  files: UploadedFile[];
  /** As received. */
  fields: Record<string, string | string[]>;
}

const FORM_EXPECTED = 'Send the body as multipart/form-data.';
const MAX_FIELDS = 60;
/** The longest field: 200 keywords of 100 characters with their weights, of three bytes a character. */
const MAX_FIELD_BYTES = 64 * 1024;
/** For fields, boundaries and part headers. */
const MAX_REST_BYTES = 256 * 1024;
/** Time for a client to read a rejection while the rest of its body is discarded. */
const LINGER_MS = 5_000;

/**
 * Makes this scope accept forms for `receiveForm`. Rejects other bodies without a parser with 415 and the message
 * `unsupported`.
 */
export function acceptForms(
  scope: FastifyInstance,
  { maxFiles = 1, unsupported = FORM_EXPECTED }: { maxFiles?: number; unsupported?: string } = {},
): void {
  scope.removeAllContentTypeParsers();
  scope.register(multipart, {
    throwFileSizeLimit: false,
    limits: {
      files: maxFiles + 1,
      fields: MAX_FIELDS,
      fieldSize: MAX_FIELD_BYTES,
      fieldNameSize: 100,
      headerPairs: 32,
    },
  });
  scope.addContentTypeParser('*', (_request, payload, done) => {
    payload.resume();
    done(new TandemError('UNSUPPORTED_MEDIA_TYPE', unsupported));
  });
}

/**
 * Receives a form with parts in any order and streams its files to disk.
 * @throws TandemError `VALIDATION_FAILED`, `PAYLOAD_TOO_LARGE`, `UNSUPPORTED_MEDIA_TYPE`, or the signal's reason
 */
export async function receiveForm(request: FastifyRequest, options: ReceiveFormOptions): Promise<ReceivedForm> {
  const { raw } = request;
  try {
    options.signal.throwIfAborted();
    if (!request.isMultipart()) {
      throw new TandemError('UNSUPPORTED_MEDIA_TYPE', FORM_EXPECTED);
    }
    const maxBodyBytes = maxFileBytesOf(options) + MAX_REST_BYTES;
    if (Number(raw.headers['content-length'] ?? 0) > maxBodyBytes) throw tooLarge(options);
    return await readParts(request, { ...options, maxBodyBytes });
  } catch (error) {
    discardRest(raw);
    options.signal.throwIfAborted();
    throw error instanceof TandemError ? error : malformed(error);
  }
}

async function readParts(
  request: FastifyRequest,
  { maxBodyBytes, ...options }: ReceiveFormOptions & { maxBodyBytes: number },
): Promise<ReceivedForm> {
  const stopped = new AbortController();
  const signal = AbortSignal.any([options.signal, stopped.signal]);
  const invalid: InvalidField[] = [];
  const fields: ReceivedForm['fields'] = {};
  const files: UploadedFile[] = [];
  const { fileField, fileFieldAlias = fileField, minFiles = 1, maxFiles = 1, pathOf } = options;
  const isFileField = (name: string) => name === fileField || name === fileFieldAlias;

  async function read(): Promise<void> {
    const limits = { fileSize: options.maxFileBytes };
    for await (const part of request.parts({ limits })) {
      if (part.type === 'field') {
        takeField(part);
        continue;
      }
      if (!isFileField(part.fieldname)) throw validationFailed([unknownField(part.fieldname)]);
      if (files.length === maxFiles) throw validationFailed([tooManyFiles(fileField, maxFiles)]);
      files.push(await storeFile(part, { ...options, request, path: pathOf(files.length), signal }));
    }
  }

  function takeField(part: { fieldname: string; value: unknown; valueTruncated: boolean }): void {
    const { fieldname, valueTruncated } = part;
    const path = fieldname.slice(0, 128);
    // The parser already parsed parts of type application/json.
    const value = typeof part.value === 'string' ? part.value : JSON.stringify(part.value);
    const kind = Object.hasOwn(options.fields, fieldname) ? options.fields[fieldname] : undefined;
    const given = fields[fieldname];
    if (isFileField(fieldname)) invalid.push({ path, message: 'must be a file' });
    else if (kind === undefined) invalid.push(unknownField(fieldname));
    else if (valueTruncated) invalid.push({ path, message: `must be at most ${MAX_FIELD_BYTES} bytes` });
    else if (given === undefined) fields[fieldname] = value;
    else if (kind === 'repeated') fields[fieldname] = [given, value].flat();
    else invalid.push({ path, message: 'must be sent only once' });
  }

  let received = 0;
  request.raw.on('data', (chunk: Buffer) => {
    received += chunk.length;
    if (received > maxBodyBytes) stopped.abort(tooLarge(options));
  });
  await raceAbort(read(), signal);
  if (files.length < minFiles) invalid.push({ path: fileField, message: 'is required' });
  if (invalid.length > 0) throw validationFailed(invalid.slice(0, 20));
  return { files, fields };
}

async function storeFile(
  { file, filename, mimetype }: MultipartFile,
  {
    request,
    path,
    maxFileBytes,
    signal,
  }: Pick<ReceiveFormOptions, 'maxFileBytes' | 'signal'> & { request: FastifyRequest; path: string },
): Promise<UploadedFile> {
  const target = createWriteStream(path, { flags: 'wx', mode: 0o600 });
  await pipeline(file, digestUpload(request), target, { signal });
  if (file.truncated) throw tooLarge({ maxFileBytes });
  return { path, bytes: target.bytesWritten, name: filename || null, mediaType: mimetype || null };
}

/** Keeps reading, because resetting the connection would hide the response from a client that is still sending. */
export function discardRest(raw: IncomingMessage): void {
  if (raw.complete || raw.readableEnded || raw.destroyed) return;
  raw.unpipe();
  raw.resume();
  const timer = setTimeout(() => raw.socket.destroy(), LINGER_MS).unref();
  for (const event of ['end', 'close'] as const) raw.once(event, () => clearTimeout(timer));
}

type Bounds = Pick<ReceiveFormOptions, 'maxFileBytes' | 'maxFiles' | 'maxBytes'>;

function maxFileBytesOf({ maxFileBytes, maxFiles = 1, maxBytes = maxFileBytes * maxFiles }: Bounds): number {
  return maxBytes;
}

export function tooLarge(bounds: Bounds): TandemError {
  const limit = maxFileBytesOf(bounds);
  const subject = (bounds.maxFiles ?? 1) === 1 ? 'The file' : 'The files together';
  return new TandemError('PAYLOAD_TOO_LARGE', `${subject} must be at most ${limit / 2 ** 20} MB.`, {
    details: { limit_bytes: limit },
  });
}

function tooManyFiles(path: string, maxFiles: number): InvalidField {
  return { path, message: maxFiles === 1 ? 'must be sent only once' : `must be at most ${maxFiles} files` };
}

function unknownField(name: string): InvalidField {
  return { path: name.slice(0, 128), message: 'is not a known field' };
}

/** Replaces parser messages that describe its internals. */
function malformed(cause: unknown): unknown {
  const { code, message } = cause as { code?: string; message?: string };
  if (code === 'FST_PROTO_VIOLATION') {
    return validationFailed([{ path: 'body', message: 'must not have a field with this name' }]);
  }
  if (code === 'FST_FIELDS_LIMIT' || code === 'FST_PARTS_LIMIT' || code === 'FST_FILES_LIMIT') {
    return validationFailed([{ path: 'body', message: 'must have fewer parts' }]);
  }
  const isParserError = code?.startsWith('FST_') || code === undefined;
  if (!isParserError) return cause;
  return new TandemError('VALIDATION_FAILED', 'The body is not valid multipart/form-data, or it is incomplete.', {
    cause: new Error(message),
  });
}
