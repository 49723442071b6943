import { randomBytes } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { TandemError } from '../../machines/errors.ts';
import { type ConsoleFile, isConsolePage, readConsoleFile } from '../console-files.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { success } from '../schemas/envelope.ts';
import { consolePolicy } from '../security-headers.ts';

const INDEX = 'index.html';
/** Placeholder in index.html for the response's nonce. */
const NONCE_PLACEHOLDER = '__CSP_NONCE__';
/** Names of these files contain a hash of their content. */
const HASHED = 'assets/';

/**
 * Serves the built web console and redirects `/` to it. Files need no credentials, because the console calls the API,
 * which does. They are exempt from the rate limit, because a page loads dozens.
 */
export function consoleRoutes(app: HttpApp, { consoleFolder, objectOrigin }: HttpContext): void {
  const hidden = { config: { access: 'public', unlimited: true }, schema: { hide: true } } as const;

  app.get('/', hidden, async ({ headers: { accept = '' } }, reply) => {
    reply.header('vary', 'accept');
    if (accept.includes('application/json') && !accept.includes('text/html')) {
      return reply.send(success({ console: '/console/', docs: '/docs', openapi: '/openapi.json' }));
    }
    return reply.redirect('/console/');
  });

  app.get('/console', hidden, async (_request, reply) => reply.redirect('/console/'));

  // The build contains compressed copies.
  const uncompressed = { ...hidden, compress: false, config: { ...hidden.config, uncompressed: true } } as const;
  app.get('/console/*', uncompressed, async (request, reply) => {
    const path = (request.params as { '*': string })['*'] || INDEX;
    const acceptEncoding = request.headers['accept-encoding'];
    const file = path === INDEX ? null : await readConsoleFile(consoleFolder, { path, acceptEncoding });
    if (file !== null) return sendFile(request, reply, { file, isHashed: path.startsWith(HASHED) });
    if (path !== INDEX && !isConsolePage(path)) throw new TandemError('NOT_FOUND', 'The console has no such file.');
    const index = await readConsoleFile(consoleFolder, { path: INDEX });
    return index === null ? sendNotBuilt(reply) : sendIndex(request, reply, index);
  });

  function sendIndex(request: FastifyRequest, reply: FastifyReply, file: ConsoleFile): FastifyReply {
    reply.headers({ 'cache-control': 'no-cache', etag: file.etag });
    if (isCached(request, file)) {
      // A new policy would replace that of the cached page, whose nonce differs.
      reply.removeHeader('content-security-policy');
      return reply.code(304).send();
    }
    const nonce = randomBytes(16).toString('base64');
    reply.header('content-security-policy', consolePolicy({ nonce, objectOrigin }));
    return reply.type(file.contentType).send(file.content.toString().replaceAll(NONCE_PLACEHOLDER, nonce));
  }
}

function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  { file, isHashed }: { file: ConsoleFile; isHashed: boolean },
): FastifyReply {
  reply.headers({
    'cache-control': isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    etag: file.etag,
    vary: 'accept-encoding',
  });
  if (isCached(request, file)) return reply.code(304).send();
  if (file.contentEncoding !== null) reply.header('content-encoding', file.contentEncoding);
  return reply.type(file.contentType).send(file.content);
}

/** Weak comparison (RFC 9110 §13.1.2), because a compressing proxy weakens the tag. */
function isCached({ headers }: FastifyRequest, { etag }: ConsoleFile): boolean {
  const known = headers['if-none-match']?.split(',').map((each) => each.trim().replace(/^W\//, '')) ?? [];
  return known.includes(etag) || known.includes('*');
}

function sendNotBuilt(reply: FastifyReply): FastifyReply {
  const page = [
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Tandem</title></head><body>',
    '<h1>The console is not built</h1><p>Run <code>npm run console:build</code> on the server, then reload this page.</p>',
    '<p>The API works without it: see its <a href="/docs">reference</a>.</p></body></html>',
  ];
  return reply.code(503).type('text/html; charset=utf-8').send(page.join('\n'));
}
