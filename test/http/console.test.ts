import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHttpFixture, type HttpFixture } from './fixture.ts';

const INDEX = '<!doctype html><meta name="csp-nonce" content="__CSP_NONCE__"><style nonce="__CSP_NONCE__"></style>';

let fixture: HttpFixture;
let folder: string;
let origin: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-console-'));
  const dist = join(folder, 'dist');
  await mkdir(join(dist, 'assets'), { recursive: true });
  await writeFile(join(folder, 'secret.html'), 'secret');
  const files = {
    'index.html': INDEX,
    'icon.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
    '.hidden.json': '{}',
    'assets/index-a1b2.js': 'plain',
    'assets/index-a1b2.js.br': 'brotli',
    'assets/index-a1b2.js.gz': 'gzip',
    'assets/index-a1b2.css': 'a{}',
    'assets/font-a1b2.woff2': 'font',
  };
  for (const [name, content] of Object.entries(files)) await writeFile(join(dist, name), content);
  fixture = await createHttpFixture({
    consoleFolder: dist,
    objectOrigin: 'https://bucket.s3.example',
    rateLimits: { anonymousPerMinute: 100_000 },
  });
  origin = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  await fixture[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const get = (url: string, headers: Record<string, string> = {}) => fixture.call('GET', url, { as: null, headers });
const policyOf = ({ headers }: { headers: Record<string, unknown> }) =>
  new Map(
    String(headers['content-security-policy'])
      .split('; ')
      .map((directive) => [directive.split(' ', 1)[0], directive.split(' ').slice(1)] as const),
  );

describe('GET /', () => {
  it('redirects browsers to the console, and lists the entry points for programs', async () => {
    for (const headers of [{}, { accept: '*/*' }, { accept: 'text/html,application/json;q=0.9' }]) {
      const { status, headers: sent } = await get('/', headers as Record<string, string>);
      expect([status, sent.location]).toEqual([302, '/console/']);
    }
    const head = await fixture.call('HEAD', '/', { as: null });
    expect([head.status, head.headers.location]).toEqual([302, '/console/']);
    const { status, body } = await get('/', { accept: 'application/json' });
    expect([status, body.data]).toEqual([200, { console: '/console/', docs: '/docs', openapi: '/openapi.json' }]);
    expect((await get('/console')).headers.location).toBe('/console/');
    expect((await fixture.call('POST', '/', { as: null })).status).toBe(405);
  });
});

describe('GET /console/', () => {
  it.each([
    '',
    'index.html',
    'login?token=x',
    'calls',
    'calls/5f0c6f0e-8a54-4b0e',
    'numbers/%2B912240000001',
    'a%20b/',
  ])('returns the page: %s', async (path) => {
    const { status, headers, raw } = await get(`/console/${path}`);
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(headers['cache-control']).toBe('no-cache');
    expect(raw.toString()).not.toContain('__CSP_NONCE__');
  });

  it('puts a fresh nonce into each page and its policy', async () => {
    const nonces = await Promise.all(
      [1, 2].map(async () => {
        const page = await get('/console/');
        const [nonce] = /(?<=content=")[^"]+/.exec(page.raw.toString())!;
        expect(page.raw.toString()).toContain(`<style nonce="${nonce}">`);
        expect(policyOf(page).get('style-src')).toEqual(["'self'", `'nonce-${nonce}'`]);
        return nonce;
      }),
    );
    expect(nonces[0]).not.toBe(nonces[1]);
  });

  it('allows only own files, the object store and the microphone, without inline scripts', async () => {
    const page = await get('/console/');
    const policy = policyOf(page);
    policy.delete('style-src');
    expect(Object.fromEntries(policy)).toEqual({
      'default-src': ["'none'"],
      'script-src': ["'self'"],
      'style-src-attr': ["'unsafe-inline'"],
      'img-src': ["'self'", 'data:', 'blob:'],
      'font-src': ["'self'"],
      'connect-src': ["'self'", 'https://bucket.s3.example'],
      'media-src': ["'self'", 'blob:', 'https://bucket.s3.example'],
      'worker-src': ["'self'", 'blob:'],
      'manifest-src': ["'self'"],
      'base-uri': ["'none'"],
      'form-action': ["'self'"],
      'frame-ancestors': ["'none'"],
    });
    expect(page.headers).toMatchObject({
      'permissions-policy': 'microphone=(self), camera=(), geolocation=()',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    });
    const elsewhere = await get('/console-of-mine');
    expect(elsewhere.headers['content-security-policy']).not.toContain('script-src');
    expect(elsewhere.headers).not.toHaveProperty('permissions-policy');
  });

  it('revalidates a cached page without a policy that its nonce would violate', async () => {
    const { etag } = (await get('/console/')).headers as { etag: string };
    const { status, headers, raw } = await get('/console/calls', { 'if-none-match': `"other", W/${etag}` });
    expect([status, raw.length]).toEqual([304, 0]);
    expect(headers).not.toHaveProperty('content-security-policy');
    expect((await get('/console/', { 'if-none-match': '"other"' })).status).toBe(200);
  });

  it.each<[string, string, string]>([
    ['assets/index-a1b2.css', 'text/css; charset=utf-8', 'public, max-age=31536000, immutable'],
    ['assets/font-a1b2.woff2', 'font/woff2', 'public, max-age=31536000, immutable'],
    ['icon.svg', 'image/svg+xml', 'no-cache'],
  ])('serves %s with its type', async (path, type, cacheControl) => {
    const { status, headers } = await get(`/console/${path}`);
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([200, type, cacheControl]);
    const head = await fixture.call('HEAD', `/console/${path}`, { as: null });
    expect([head.status, head.headers['content-length'], head.raw.length]).toEqual([200, headers['content-length'], 0]);
    const again = await get(`/console/${path}`, { 'if-none-match': String(headers.etag) });
    expect([again.status, again.raw.length]).toEqual([304, 0]);
  });

  it.each([
    ['br, gzip', 'br', 'brotli'],
    ['gzip', 'gzip', 'gzip'],
    ['BR;q=1.0', 'br', 'brotli'],
    ['br;q=0, gzip;q=0.5', 'gzip', 'gzip'],
    ['br;q=0.0', undefined, 'plain'],
    ['identity', undefined, 'plain'],
    ['', undefined, 'plain'],
  ])('serves the copy that matches Accept-Encoding: %s', async (accepted, encoding, content) => {
    const { headers, raw } = await get('/console/assets/index-a1b2.js', { 'accept-encoding': accepted });
    expect([headers['content-encoding'], raw.toString(), headers.vary]).toEqual([encoding, content, 'accept-encoding']);
    expect(headers['content-type']).toBe('text/javascript; charset=utf-8');
    const { etag } = (await get('/console/assets/index-a1b2.js', { 'accept-encoding': 'zstd' })).headers;
    if (encoding !== undefined) expect(headers.etag).not.toBe(etag);
  });

  it('serves files without a compressed copy uncompressed', async () => {
    const { headers } = await get('/console/assets/index-a1b2.css', { 'accept-encoding': 'br' });
    expect(headers).not.toHaveProperty('content-encoding');
  });

  it.each([
    'assets/missing.js',
    'assets/missing',
    'missing.png',
    '.hidden.json',
    '%2e%2e%2fsecret.html',
    'assets/..%2f..%2fsecret.html',
    'assets/..%5c..%5csecret.html',
    '..%5csecret',
    '%2fetc/passwd.html',
    '%00.html',
    'index.html%00.js',
    'a%00b',
    'assets/index-a1b2.js.br',
    'assets/index-a1b2.js/',
  ])('answers 404 at %s', async (path) => {
    const { raw, status, body } = await get(`/console/${path}`);
    expect([status, body?.code]).toEqual([404, 'NOT_FOUND']);
    expect(raw.toString()).not.toContain('secret');
  });

  it('answers 404 to unnormalised paths outside its folder', async () => {
    const paths = [
      '/console/../secret.html',
      '/console//../../secret.html',
      '/console/..;/secret.html',
      '/console/%2e%2e/',
      '/console/%2e%2e/secret.html',
      '/console/assets/%2e%2e/%2e%2e/secret.html',
      '/console/%2E./secret.html',
    ];
    for (const path of paths) {
      const { hostname, port } = new URL(origin);
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        httpRequest({ hostname, port, path }, resolve).on('error', reject).end();
      });
      expect(Buffer.concat(await response.toArray()).toString(), path).not.toContain('secret');
      expect(response.statusCode, path).toBe(404);
    }
  });

  it('answers 404 to a path that is too long for a file', async () => {
    expect((await get(`/console/${'long/'.repeat(1000)}index.js`)).status).toBe(404);
  });

  it('rejects other methods', async () => {
    const { status, headers } = await fixture.call('POST', '/console/', { as: null });
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD']);
  });

  it('does not count against the rate limit', async () => {
    await using strict = await createHttpFixture({ rateLimits: { anonymousPerMinute: 2 } });
    for (let i = 0; i < 5; i += 1) {
      expect((await strict.call('GET', '/console/icon.svg', { as: null })).headers['x-ratelimit-remaining']).toBe('2');
    }
  });

  it('answers 503 with build instructions while unbuilt, and the API works', async () => {
    await using bare = await createHttpFixture({ consoleFolder: join(folder, 'nowhere') });
    const { status, headers, raw } = await bare.call('GET', '/console/', { as: null });
    expect([status, headers['content-type']]).toEqual([503, 'text/html; charset=utf-8']);
    expect(raw.toString()).toContain('npm run console:build');
    expect((await bare.call('GET', '/console/assets/index-a1b2.js', { as: null })).status).toBe(404);
    expect((await bare.call('GET', '/dialer/pool')).status).toBe(200);
  });

  it('stays out of the OpenAPI document', async () => {
    const { body } = await fixture.call('GET', '/openapi.json', { as: null });
    expect(Object.keys(body.paths).filter((path) => path === '/' || path.startsWith('/console'))).toEqual([]);
  });
});
