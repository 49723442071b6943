import type { FastifyRequest } from 'fastify';

/** `preValidation` hook for operations with an optional body. List them in `OPTIONAL_BODIES`. */
export async function defaultToEmptyBody(request: FastifyRequest): Promise<void> {
  request.body ??= {};
}

/** By operationId, for the document, because Fastify declares every body as required. */
export const OPTIONAL_BODIES: ReadonlySet<string> = new Set([
  'mintCallRecordingUrl',
  'mintPlaybackUrl',
  'rotateWebhookSecret',
  'testWebhook',
]);
