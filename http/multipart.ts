import { createWriteStream } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import multipart, { type MultipartFile } from '@fastify/multipart';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { TandemError } from '../machines/errors.ts';
import { raceAbort } from '../runtime/waiting.ts';
import { type InvalidField, validationFailed } from './validation.ts';

/** A file of a form, on disk. */
export interface UploadedFile {
  path: string;
  bytes: number;
  /** As its sender calls it; null when it does not. */
  name: string | null;
  mediaType: string | null;
}

export interface ReceiveFormOptions {
  /** Field that the files are in; by default the one file there has to be. */
  fileField: string;
  /** Another name of the field, which some clients give to lists. */
  fileFieldAlias?: string;
  /** Default 1. */
  fewestFiles?: number;
  /** Default 1. */
  mostFiles?: number;
  /** Fields there are, and whether they may be given more than once. */
  fields: Readonly<Record<string, 'once' | 'repeated'>>;
  /** Where the file goes, or the one of that number, from 0; made, readable by its owner only. */
  pathOf: (index: number) => string;
  maxFileBytes: number;
  /** Of all files. Default: of as many as there may be. */
  maxBytes?: number;
  /** Aborting ends it with the reason. */
  signal: AbortSignal;
}

export interface ReceivedForm {
  /** In order. */
  files: UploadedFile[];
  /** Texts as they came. */
  fields: Record<string, string | string[]>;
}

const MAX_FIELDS = 60;
const MAX_FIELD_BYTES = 16 * 1024;
/** Fields, boundaries and the headers of parts, beside the file. */
const MAX_REST_BYTES = 256 * 1024;
/** Once a form is refused its sender has so long to notice, while what still comes is thrown away. */
const LINGER_MS = 5_000;

/** In this scope bodies are forms, which `receiveForm` reads; anything else is 415. */
export function acceptForms(scope: FastifyInstance, { mostFiles = 1 }: { mostFiles?: number } = {}): void {
  scope.removeAllContentTypeParsers();
  scope.register(multipart, {
    throwFileSizeLimit: false,
    limits: {
      files: mostFiles + 1,
      fields: MAX_FIELDS,
      fieldSize: MAX_FIELD_BYTES,
      fieldNameSize: 100,
      headerPairs: 32,
    },
  });
  scope.addContentTypeParser('*', (_request, payload, done) => {
    payload.resume();
    done(new TandemError('UNSUPPORTED_MEDIA_TYPE', 'Send the body as multipart/form-data.'));
  });
}

/**
 * Reads a form off the wire, in whatever order its parts come; its file goes straight to disk.
 * @throws TandemError `VALIDATION_FAILED`, `PAYLOAD_TOO_LARGE`, `UNSUPPORTED_MEDIA_TYPE`; the signal's reason
 */
export async function receiveForm(request: FastifyRequest, options: ReceiveFormOptions): Promise<ReceivedForm> {
  const { raw } = request;
  try {
    options.signal.throwIfAborted();
    if (!request.isMultipart()) {
      throw new TandemError('UNSUPPORTED_MEDIA_TYPE', 'Send the body as multipart/form-data.');
    }
    const mostBytes = mostBytesOf(options) + MAX_REST_BYTES;
    if (Number(raw.headers['content-length'] ?? 0) > mostBytes) throw tooLarge(options);
    return await readParts(request, { ...options, mostBytes });
  } catch (error) {
    discardRest(raw);
    options.signal.throwIfAborted();
    throw error instanceof TandemError ? error : malformed(error);
  }
}

async function readParts(
  request: FastifyRequest,
  { mostBytes, ...options }: ReceiveFormOptions & { mostBytes: number },
): Promise<ReceivedForm> {
  const stopped = new AbortController();
  const signal = AbortSignal.any([options.signal, stopped.signal]);
  const invalid: InvalidField[] = [];
  const fields: ReceivedForm['fields'] = {};
  const files: UploadedFile[] = [];
  const { fileField, fileFieldAlias = fileField, fewestFiles = 1, mostFiles = 1, pathOf } = options;
  const isFileField = (name: string) => name === fileField || name === fileFieldAlias;

  async function read(): Promise<void> {
    const limits = { fileSize: options.maxFileBytes };
    for await (const part of request.parts({ limits })) {
      if (part.type === 'field') {
        takeField(part);
        continue;
      }
      if (!isFileField(part.fieldname)) throw validationFailed([unknownField(part.fieldname)]);
      if (files.length === mostFiles) throw validationFailed([tooManyFiles(fileField, mostFiles)]);
      files.push(await storeFile(part, { ...options, path: pathOf(files.length), signal }));
    }
  }

  function takeField(part: { fieldname: string; value: unknown; valueTruncated: boolean }): void {
    const { fieldname, valueTruncated } = part;
    const path = fieldname.slice(0, 128);
    // A part of type application/json has been parsed.
    const value = typeof part.value === 'string' ? part.value : JSON.stringify(part.value);
    const kind = Object.hasOwn(options.fields, fieldname) ? options.fields[fieldname] : undefined;
    const given = fields[fieldname];
    if (isFileField(fieldname)) invalid.push({ path, message: 'must be a file' });
    else if (kind === undefined) invalid.push(unknownField(fieldname));
    else if (valueTruncated) invalid.push({ path, message: `must be at most ${MAX_FIELD_BYTES} bytes` });
    else if (given === undefined) fields[fieldname] = value;
    else if (kind === 'repeated') fields[fieldname] = [given, value].flat();
    else invalid.push({ path, message: 'is given more than once' });
  }

  let received = 0;
  request.raw.on('data', (chunk: Buffer) => {
    received += chunk.length;
    if (received > mostBytes) stopped.abort(tooLarge(options));
  });
  await raceAbort(read(), signal);
  if (files.length < fewestFiles) invalid.push({ path: fileField, message: 'is required' });
  if (invalid.length > 0) throw validationFailed(invalid.slice(0, 20));
  return { files, fields };
}

async function storeFile(
  { file, filename, mimetype }: MultipartFile,
  { path, maxFileBytes, signal }: Pick<ReceiveFormOptions, 'maxFileBytes' | 'signal'> & { path: string },
): Promise<UploadedFile> {
  const target = createWriteStream(path, { flags: 'wx', mode: 0o600 });
  await pipeline(file, target, { signal });
  if (file.truncated) throw tooLarge({ maxFileBytes });
  return { path, bytes: target.bytesWritten, name: filename || null, mediaType: mimetype || null };
}

/** The response is on its way: a sender that goes on would not see it if the connection were reset at once. */
function discardRest(raw: IncomingMessage): void {
  if (raw.complete || raw.readableEnded || raw.destroyed) return;
  raw.unpipe();
  raw.resume();
  const timer = setTimeout(() => raw.socket.destroy(), LINGER_MS).unref();
  for (const event of ['end', 'close'] as const) raw.once(event, () => clearTimeout(timer));
}

type Bounds = Pick<ReceiveFormOptions, 'maxFileBytes' | 'mostFiles' | 'maxBytes'>;

function mostBytesOf({ maxFileBytes, mostFiles = 1, maxBytes = maxFileBytes * mostFiles }: Bounds): number {
  return maxBytes;
}

/** One file is, or all of them together. */
function tooLarge(bounds: Bounds): TandemError {
  const limit = mostBytesOf(bounds);
  const subject = (bounds.mostFiles ?? 1) === 1 ? 'The file is' : 'The files together are';
  return new TandemError('PAYLOAD_TOO_LARGE', `${subject} larger than ${limit / 2 ** 20} MB.`, {
    details: { limit_bytes: limit },
  });
}

function tooManyFiles(path: string, mostFiles: number): InvalidField {
  return { path, message: mostFiles === 1 ? 'is given more than once' : `must be at most ${mostFiles} files` };
}

function unknownField(name: string): InvalidField {
  return { path: name.slice(0, 128), message: 'is not a field here' };
}

/** The parser's own messages are about its insides. */
function malformed(cause: unknown): unknown {
  const { code, message } = cause as { code?: string; message?: string };
  if (code === 'FST_PROTO_VIOLATION')
    return validationFailed([{ path: 'body', message: 'has a field with no name here' }]);
  if (code === 'FST_FIELDS_LIMIT' || code === 'FST_PARTS_LIMIT' || code === 'FST_FILES_LIMIT') {
    return validationFailed([{ path: 'body', message: 'has too many parts' }]);
  }
  const isOfTheForm = code?.startsWith('FST_') || code === undefined;
  if (!isOfTheForm) return cause;
  return new TandemError('VALIDATION_FAILED', 'The body is no well-formed multipart/form-data, or breaks off.', {
    cause: new Error(message),
  });
}
