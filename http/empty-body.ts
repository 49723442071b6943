import type { FastifyRequest } from 'fastify';

/** Hook `preValidation` of operations whose body may be absent. List them in `OPTIONAL_BODIES`. */
export async function defaultToEmptyBody(request: FastifyRequest): Promise<void> {
  request.body ??= {};
}

/** By operationId, for the document: Fastify declares every body as required. */
export const OPTIONAL_BODIES: ReadonlySet<string> = new Set([
  'mintCallRecordingUrl',
  'mintPlaybackUrl',
  'rotateWebhookSecret',
  'testWebhook',
]);
