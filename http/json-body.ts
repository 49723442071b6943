import type { FastifyInstance } from 'fastify';
import { TandemError } from '../machines/errors.ts';
import { parseExactJson } from '../storage/exact-json.ts';

/**
 * Metadata of 2048 bytes can nest 1024 arrays and must be returned unchanged. JSON.stringify and our recursive
 * functions can handle far more.
 */
const MAX_DEPTH = 1040;

/** Exact parsing is ten times slower. Larger bodies contain more than metadata and get ordinary numbers. */
const MAX_EXACT_BYTES = 64 * 1024;

/** Replaces Fastify's parsers: accepts UTF-8 JSON of bounded depth or no body, and rejects others with 415. */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  addJsonParser(app);
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => {
    // Clients send a content type with empty bodies too.
    if (body.length === 0) done(null, undefined);
    else done(new TandemError('UNSUPPORTED_MEDIA_TYPE', 'Send the body as application/json.'));
  });
}

export function addJsonParser(app: Pick<FastifyInstance, 'addContentTypeParser'>): void {
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    try {
      requireNoEncoding(request.headers['content-encoding']);
      done(null, parseJsonBody(body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
}

/** Accepts signed bodies: passes on the raw bytes of any content type. */
export function acceptRawBodies(
  app: Pick<FastifyInstance, 'removeAllContentTypeParsers' | 'addContentTypeParser'>,
): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
}

function requireNoEncoding(encoding: string | undefined): void {
  if (encoding === undefined || /^\s*(identity)?\s*$/i.test(encoding)) return;
  throw new TandemError('UNSUPPORTED_MEDIA_TYPE', 'Send the body uncompressed, without Content-Encoding.');
}

/** Undefined for an empty body. @throws TandemError MALFORMED_JSON */
export function parseJsonBody(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  if (exceedsDepth(body)) {
    throw new TandemError('MALFORMED_JSON', `The body must be nested at most ${MAX_DEPTH} levels deep.`);
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw new TandemError('MALFORMED_JSON', 'The body is not valid UTF-8.');
  }
  try {
    const value = JSON.parse(text) as unknown;
    // Keep every digit of metadata, because it must be returned unchanged.
    if (body.length <= MAX_EXACT_BYTES && hasMetadata(value))
      value.metadata = (parseExactJson(text) as typeof value).metadata;
    return value;
  } catch {
    // Do not use the parser's message, which quotes the body.
    throw new TandemError('MALFORMED_JSON', 'The body is not valid JSON.');
  }
}

function hasMetadata(value: unknown): value is { metadata: object } {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, 'metadata')) return false;
  const { metadata } = value as { metadata: unknown };
  // A raw JSON number alone would look like an object.
  return typeof metadata === 'object' && metadata !== null;
}

function exceedsDepth(body: Buffer): boolean {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < body.length; i++) {
    const byte = body[i];
    if (inString) {
      if (byte === 0x5c) i++;
      else if (byte === 0x22) inString = false;
    } else if (byte === 0x22) inString = true;
    else if (byte === 0x5b || byte === 0x7b) {
      if (++depth > MAX_DEPTH) return true;
    } else if (byte === 0x5d || byte === 0x7d) depth--;
  }
  return false;
}
