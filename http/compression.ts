import { constants } from 'node:zlib';
import compress from '@fastify/compress';
import type { FastifyInstance, FastifyReply, RouteOptions } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Never compresses responses. Also set by `markUncompressed`. */
    uncompressed?: boolean;
  }
}

/** Smaller bodies fit into one or two packets anyway. */
const THRESHOLD_BYTES = 1024;
/**
 * Fast settings, because other requests wait meanwhile. A list of 20 calls has 21 kB. Brotli takes 67 us for 1403
 * bytes, and with quality 4 135 us for 1344. Gzip takes 49 us for 1574 bytes, and with level 6 114 us for 1503.
 */
const BROTLI_QUALITY = 2;
const GZIP_LEVEL = 1;

export const UNCOMPRESSED: ReadonlySet<string> = new Set([
  // The response has a secret beside text of the request. An attacker who chooses that text and sees the lengths of
  // many compressed responses can guess the secret (BREACH).
  'POST /auth/register',
  'POST /auth/login',
  'POST /auth/login-link',
  'GET /auth/password/reset',
  'GET /unsubscribe',
  'POST /user/onboarding',
  'POST /workspaces/:id/invitations',
  'POST /developer/api',
  'POST /webhooks',
  'POST /webhooks/:id/rotate-secret',
  'POST /phone/tokens',
  'POST /dialer/click2call/:id/stream-token',
  'POST /dialer/stream-token',
  'POST /dialer/click2call/:id/recording',
  'POST /dialer/recordings/:id/playback-url',
  'GET /voices/:id',
  // ETags and byte ranges refer to the stored object.
  'GET /media/*',
]);

/**
 * Compresses responses with Brotli or gzip if the client accepts it. Among streams it compresses only CSV, because others
 * are audio or lines that must arrive at once. Register it after hooks that store or read bodies.
 */
export function compressResponses(app: FastifyInstance): void {
  app.addHook('onRoute', markUncompressed);
  app.addHook('onSend', async (request, reply, payload) => {
    if (request.is404 || request.routeOptions.config.uncompressed) return payload;
    if (isCompressible(reply, payload)) addToVary(reply, 'accept-encoding');
    // The plugin would compress streams too, and some audio types.
    else request.raw.headers['x-no-compression'] = 'true';
    return payload;
  });
  app.register(compress, {
    threshold: THRESHOLD_BYTES,
    encodings: ['br', 'gzip', 'identity'],
    brotliOptions: { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } },
    zlibOptions: { level: GZIP_LEVEL },
    // Reject compressed request bodies, because they could expand without limit.
    globalDecompression: false,
  });
  // Add it after the plugin's own hook.
  app.after(() => void app.addHook('onRoute', compressBeforeHead));
}

/** Fastify empties the body of HEAD routes. Let the plugin see it first, so that the headers equal those of GET. */
function compressBeforeHead(route: RouteOptions): void {
  if (route.method === 'HEAD' && Array.isArray(route.onSend)) route.onSend = route.onSend.toReversed();
}

function markUncompressed(route: RouteOptions): void {
  // Fastify adds a HEAD route to each GET route.
  const names = [route.method].flat().map((method) => `${method === 'HEAD' ? 'GET' : method} ${route.url}`);
  if (!names.some((name) => UNCOMPRESSED.has(name))) return;
  route.compress = false;
  route.config = { ...route.config, uncompressed: true };
}

const TEXT = /^(?:text\/(?!event-stream)|application\/(?:json|x-subrip)\b)/;

function isCompressible(reply: FastifyReply, payload: unknown): boolean {
  const type = String(reply.getHeader('content-type') ?? '');
  const isBuffered = typeof payload === 'string' || Buffer.isBuffer(payload);
  return isBuffered ? TEXT.test(type) : type.startsWith('text/csv');
}

function addToVary(reply: FastifyReply, name: string): void {
  const given = reply.getHeader('vary');
  reply.header('vary', [...(given === undefined ? [] : [given]), name].flat().join(', '));
}
