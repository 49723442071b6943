import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { IDEMPOTENCY_KEY } from './idempotent-operations.ts';

const digests = new WeakMap<FastifyRequest, string[]>();

/** Pipeline step that digests an upload, if the request has an Idempotency-Key. */
export function digestUpload(request: FastifyRequest) {
  return async function* digested(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
    if (request.headers[IDEMPOTENCY_KEY] === undefined) {
      yield* chunks;
      return;
    }
    const hash = createHash('sha256');
    for await (const chunk of chunks) {
      hash.update(chunk);
      yield chunk;
    }
    digests.set(request, [...uploadDigests(request), hash.digest('base64')]);
  };
}

/** SHA-256 of each upload, in order. */
export function uploadDigests(request: FastifyRequest): string[] {
  return digests.get(request) ?? [];
}
