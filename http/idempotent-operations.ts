import type { FastifySchema, RouteOptions } from 'fastify';

export const IDEMPOTENCY_KEY = 'idempotency-key';
export const MAX_KEY_LENGTH = 255;

/**
 * Authenticated POST routes that ignore an Idempotency-Key. All others accept it. Public routes ignore it too, because
 * a key must have an owner.
 */
const IGNORING: ReadonlySet<string> = new Set([
  // They set a state, so repeating them changes nothing, and the call may have moved on.
  'POST /dialer/click2call/:id/hangup',
  'POST /dialer/click2call/:id/mute',
  'POST /dialer/click2call/:id/unmute',
  'POST /dialer/click2call/:id/hold',
  'POST /dialer/click2call/:id/resume',
  'POST /dialer/click2call/:id/recording/pause',
  'POST /dialer/click2call/:id/recording/resume',
  'POST /auth/logout',
  // They store nothing, are free, and their responses expire within minutes.
  'POST /dialer/click2call/:id/recording',
  'POST /dialer/recordings/:id/playback-url',
  'POST /dialer/do-not-call/check',
  'POST /phone/tokens',
  'POST /dialer/click2call/:id/stream-token',
  'POST /dialer/stream-token',
]);

/** Marks the routes that accept an Idempotency-Key. Runs after `applyPermission`. */
export function markIdempotent(route: RouteOptions): void {
  if (route.method !== 'POST' || (route.config?.access ?? 'public') === 'public') return;
  route.config = { ...route.config, idempotent: !IGNORING.has(`POST ${route.url}`) };
}

/** Documents the header in the operations that accept it. */
export function withIdempotencyKey(schema: FastifySchema, isIdempotent: boolean | undefined): FastifySchema {
  if (isIdempotent !== true) return schema;
  return {
    ...schema,
    headers: {
      type: 'object',
      properties: {
        [IDEMPOTENCY_KEY]: {
          type: 'string',
          minLength: 1,
          maxLength: MAX_KEY_LENGTH,
          description:
            'Makes it safe to repeat the request: a repetition with the same key within 24 hours returns the first response with `idempotency-replayed: true` and does nothing else. Use a random value, such as a UUID, for each request.',
        },
      },
    },
  };
}
