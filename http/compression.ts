import { constants } from 'node:zlib';
import compress from '@fastify/compress';
import type { FastifyInstance, FastifyReply, RouteOptions } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Responses are sent as they are, whatever the client accepts. Set by `markUncompressed`. */
    uncompressed?: boolean;
  }
}

/** Smaller bodies fit into a packet or two anyway. */
const THRESHOLD_BYTES = 1024;
/**
 * A list of 20 calls has 21 kB. Brotli makes it 1403 bytes in 67 us, and 1344 in 135 us with quality 4; gzip makes it
 * 1574 bytes in 49 us, and 1503 in 114 us with level 6. Other requests wait meanwhile.
 */
const BROTLI_QUALITY = 2;
const GZIP_LEVEL = 1;

/** Routes that are never compressed. */
export const UNCOMPRESSED: ReadonlySet<string> = new Set([
  // The response has a secret beside text of the request. Whoever can choose that text and see the length of many
  // compressed responses can guess the secret (BREACH).
  'POST /auth/register',
  'POST /auth/login',
  'GET /auth/password/reset',
  'GET /unsubscribe',
  'POST /user/onboarding',
  'POST /workspaces/:id/invitations',
  'POST /developer/api',
  'POST /webhooks',
  'POST /webhooks/:id/rotate-secret',
  'POST /phone/tokens',
  'POST /dialer/click2call/:id/stream-token',
  'POST /dialer/click2call/:id/recording',
  'POST /dialer/recordings/:id/playback-url',
  'GET /voices/:id',
  // ETags and byte ranges are those of the stored object.
  'GET /media/*',
]);

/**
 * Compresses responses with Brotli or gzip, as the client accepts. Streams go out as they are, except for CSV: others are
 * audio, or lines that must arrive at once. Register it after what stores or reads bodies.
 */
export function compressResponses(app: FastifyInstance): void {
  app.addHook('onRoute', markUncompressed);
  app.addHook('onSend', async (request, reply, payload) => {
    if (request.is404 || request.routeOptions.config.uncompressed) return payload;
    if (isCompressible(reply, payload)) addToVary(reply, 'accept-encoding');
    // The plugin does not ask whether a body is a stream, and counts some audio as compressible.
    else request.raw.headers['x-no-compression'] = 'true';
    return payload;
  });
  app.register(compress, {
    threshold: THRESHOLD_BYTES,
    encodings: ['br', 'gzip', 'identity'],
    brotliOptions: { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } },
    zlibOptions: { level: GZIP_LEVEL },
    // Compressed request bodies are rejected: they could expand without limit.
    globalDecompression: false,
  });
  // Once the plugin has its own hook.
  app.after(() => void app.addHook('onRoute', compressBeforeHead));
}

/** Fastify empties the body of its HEAD routes. The plugin must see it first, for the headers to be those of GET. */
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
