import cors from '@fastify/cors';
import type { FastifyInstance } from 'fastify';

/**
 * Allows pages of these origins to call the API (`*`: all origins). Pages send credentials in a header. Without
 * `Access-Control-Allow-Credentials`, browsers neither send them the session cookie nor store it, and `same-origin.ts`
 * would reject it. So a page can only act for a user who gave it a key. Other origins get a normal response, which the
 * browser withholds from the page.
 *
 * Register it before the hooks that reject requests, so that pages can read errors too.
 */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const listed = new Set(origins);
  app.addHook('onRoute', (route) => {
    // Preflight requests have no credentials and do not count against the rate limit.
    if (route.url === '*' && route.method === 'OPTIONS') route.config = { ...route.config, unlimited: true };
  });
  app.register(cors, {
    origin: listed.has('*')
      ? '*'
      : (origin, decide) => decide(null, origin !== undefined && listed.has(origin) ? origin : false),
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    exposedHeaders: EXPOSED_HEADERS,
    maxAge: PREFLIGHT_MAX_AGE_S,
    // Lets the other hooks add their headers and log the response.
    preflightContinue: true,
    strictPreflight: false,
  });
  app.addHook('onRequest', async (request, reply) => {
    if (request.method === 'OPTIONS' && reply.hasHeader('access-control-allow-origin')) reply.code(204);
  });
}

/** Headers that pages may read, beyond the CORS-safelisted ones (Fetch Standard). */
const EXPOSED_HEADERS = [
  'x-request-id',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'retry-after',
  'idempotency-replayed',
  'x-credit-balance',
  'x-credit-charged',
  'x-billing-tx',
  'accept-ranges',
  'content-range',
  'content-disposition',
  'etag',
  'www-authenticate',
];

/** Browsers cache a preflight for at most two hours. */
const PREFLIGHT_MAX_AGE_S = 7_200;
