import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHttpFixture, type HttpFixture } from './fixture.ts';

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());

function get(url: string) {
  return fixture.call('GET', url, { as: null });
}

describe('documentation pages', () => {
  it('load for everyone, with all their files from this server', async () => {
    const page = await get('/docs');
    expect(page.status).toBe(200);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    const html = page.raw.toString();
    expect(html).toContain('<title>Tandem API</title>');
    const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => link!);
    expect(links.length).toBeGreaterThanOrEqual(5);
    for (const link of links) {
      const { href, host } = new URL(link, 'http://voice.test/docs');
      expect(host).toBe('voice.test');
      const file = await get(href.replace('http://voice.test', ''));
      expect(file.status, href).toBe(200);
      expect(file.raw.length).toBeGreaterThan(100);
      expect(file.headers['x-content-type-options']).toBe('nosniff');
    }
    const start = (await get('/docs/start.js')).raw.toString();
    expect(start).toContain("url: 'openapi.json'");
    expect(start).not.toContain('http');
  });

  it('run under a policy that allows only their own files', async () => {
    const { headers, raw } = await get('/docs');
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("connect-src 'self'");
    expect(policy).not.toMatch(/https?:|\*|unsafe-eval/);
    // The policy blocks inline scripts.
    expect(raw.toString()).not.toMatch(/<script(?! src=)|onload=/);
  });

  it('redirect from a trailing slash, and answer 404 to every path below', async () => {
    const moved = await get('/docs/');
    expect([moved.status, moved.headers.location]).toEqual([302, '../docs']);
    for (const url of [
      '/docs/csp.json',
      '/docs/..%2fpackage.json',
      '/docs/../package.json',
      '/docs/static/index.html',
    ]) {
      expect((await get(url)).body).toMatchObject({ success: false, code: 'NOT_FOUND' });
    }
  });

  it('count against the address of the client, not against a workspace', async () => {
    const before = await get('/docs');
    const after = await fixture.call('GET', '/docs');
    expect(after.status).toBe(200);
    expect(Number(after.headers['x-ratelimit-limit'])).toBe(Number(before.headers['x-ratelimit-limit']));
    expect(Number(after.headers['x-ratelimit-remaining'])).toBe(Number(before.headers['x-ratelimit-remaining']) - 1);
  });
});
