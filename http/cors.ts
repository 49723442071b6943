import cors from '@fastify/cors';
import type { FastifyInstance } from 'fastify';

/**
 * Lets pages of these web sites use the API (`*`: of all). Credentials are a header, never a cookie, so no page can act
 * for somebody who did not give it a key. Whoever is not listed gets an answer like everybody, which the browser then
 * withholds from the page.
 *
 * It comes before the hooks that may refuse a request, for a page may read refusals too.
 */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const listed = new Set(origins);
  app.addHook('onRoute', (route) => {
    // A browser asks before many of its requests, without credentials: it is not counted for that.
    if (route.url === '*' && route.method === 'OPTIONS') route.config = { ...route.config, unlimited: true };
  });
  app.register(cors, {
    origin: listed.has('*')
      ? '*'
      : (origin, decide) => decide(null, origin !== undefined && listed.has(origin) ? origin : false),
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    exposedHeaders: EXPOSED_HEADERS,
    maxAge: PREFLIGHT_MAX_AGE_S,
    // The other hooks add their headers to the answer, and it is logged.
    preflightContinue: true,
    strictPreflight: false,
  });
  app.addHook('onRequest', async (request, reply) => {
    if (request.method === 'OPTIONS' && reply.hasHeader('access-control-allow-origin')) reply.code(204);
  });
}

/** What a page may read beyond the few headers it always may (Fetch Standard, CORS-safelisted response headers). */
const EXPOSED_HEADERS = [
  'x-request-id',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'retry-after',
  'x-credit-balance',
  'x-credit-charged',
  'x-billing-tx',
  'accept-ranges',
  'content-range',
  'content-disposition',
  'etag',
  'www-authenticate',
];

/** Beyond two hours no browser remembers it. */
const PREFLIGHT_MAX_AGE_S = 7_200;
