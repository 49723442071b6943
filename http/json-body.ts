import type { FastifyInstance } from 'fastify';
import { TandemError } from '../machines/errors.ts';
import { parseExactJson } from '../storage/exact-json.ts';

/**
 * Metadata of 2048 bytes can nest 1024 arrays and has to come back as it was sent; JSON.stringify and the walkers
 * that recurse over a body are safe far beyond that.
 */
const MAX_DEPTH = 1040;

/** Reading exactly takes ten times as long: what is larger holds something else beside metadata, and has plain numbers. */
const MAX_EXACT_BYTES = 64 * 1024;

/** Replaces fastify's parsers: UTF-8 JSON of bounded depth, or no body at all; anything else is 415. */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    try {
      requireNoEncoding(request.headers['content-encoding']);
      done(null, parseJsonBody(body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => {
    // Clients name a content type on requests without a body too.
    if (body.length === 0) done(null, undefined);
    else done(new TandemError('UNSUPPORTED_MEDIA_TYPE', 'Send the body as application/json.'));
  });
}

/** For signed bodies: the bytes as they came, whatever they are said to be. */
export function acceptRawBodies(
  app: Pick<FastifyInstance, 'removeAllContentTypeParsers' | 'addContentTypeParser'>,
): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
}

function requireNoEncoding(encoding: string | undefined): void {
  if (encoding === undefined || /^\s*(identity)?\s*$/i.test(encoding)) return;
  throw new TandemError('UNSUPPORTED_MEDIA_TYPE', 'Send the body as it is, without Content-Encoding.');
}

/** @throws TandemError MALFORMED_JSON. An empty body is undefined. */
export function parseJsonBody(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  if (exceedsDepth(body)) {
    throw new TandemError('MALFORMED_JSON', `The body is nested more than ${MAX_DEPTH} levels deep.`);
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw new TandemError('MALFORMED_JSON', 'The body is not valid UTF-8.');
  }
  try {
    const value = JSON.parse(text) as unknown;
    // What is echoed later has to be what was sent, to the last digit.
    if (body.length <= MAX_EXACT_BYTES && hasMetadata(value))
      value.metadata = (parseExactJson(text) as typeof value).metadata;
    return value;
  } catch {
    // The parser's own message quotes the body.
    throw new TandemError('MALFORMED_JSON', 'The body is not valid JSON.');
  }
}

function hasMetadata(value: unknown): value is { metadata: unknown } {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, 'metadata');
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
