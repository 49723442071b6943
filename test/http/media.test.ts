import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';
import { seedRecordedCall } from './seed-calls.ts';

const BYTES = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 251));

let fixture: HttpFixture;
let path: string;
let key: string;
beforeAll(async () => {
  fixture = await createHttpFixture();
  const { workspace } = await seedWorkspace(fixture.sql);
  const member = await fixture.addMemberWith('member', workspace.id);
  await seedTrunk(fixture.sql, { workspaceId: workspace.id });
  const { call, objectKey } = await seedRecordedCall(fixture, { by: member, bytes: BYTES });
  const { body } = await fixture.call('POST', `/dialer/click2call/${call.callId}/recording`, { as: member });
  path = body.data.recording.playback_url.replace('http://voice.test', '');
  key = objectKey;
});
afterAll(() => fixture[Symbol.asyncDispose]());

const fetchMedia = (headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET') =>
  fixture.call(method, path, { as: null, headers });

describe('signed media URL', () => {
  it('returns the whole file without a key', async () => {
    const { status, headers, raw } = await fetchMedia();
    expect(status).toBe(200);
    expect(raw.equals(BYTES)).toBe(true);
    expect(headers).toMatchObject({
      'content-type': 'audio/wav',
      'content-length': '1000',
      'accept-ranges': 'bytes',
      'content-disposition': `inline; filename="${key.split('/').at(-1)}"`,
    });
    expect(headers['x-ratelimit-remaining']).toBeDefined();
  });

  it.each([
    ['bytes=0-0', 0, 0],
    ['bytes=10-99', 10, 99],
    ['bytes=990-', 990, 999],
    ['bytes=-5', 995, 999],
    ['bytes=500-100000', 500, 999],
  ])('returns the range %s', async (range, start, end) => {
    const { status, headers, raw } = await fetchMedia({ range });
    expect(status).toBe(206);
    expect(headers['content-range']).toBe(`bytes ${start}-${end}/1000`);
    expect(headers['content-length']).toBe(String(end - start + 1));
    expect(raw.equals(BYTES.subarray(start, end + 1))).toBe(true);
  });

  it('answers 416 to a range beyond the end', async () => {
    const { status, headers, body } = await fetchMedia({ range: 'bytes=1000-' });
    expect([status, body.code]).toEqual([416, 'RANGE_NOT_SATISFIABLE']);
    expect(headers['content-range']).toBe('bytes */1000');
  });

  it('returns the whole file for multiple or unknown ranges', async () => {
    for (const range of ['bytes=0-1,3-4', 'bytes=9-1', 'lines=1-2']) {
      expect((await fetchMedia({ range })).raw.length).toBe(1000);
    }
  });

  it('answers HEAD with headers only', async () => {
    const { status, headers, raw } = await fetchMedia({}, 'HEAD');
    expect([status, headers['content-length'], raw.length]).toEqual([200, '1000', 0]);
    const part = await fetchMedia({ range: 'bytes=1-2' }, 'HEAD');
    expect([part.status, part.headers['content-length'], part.raw.length]).toEqual([206, '2', 0]);
  });

  it('honours If-Range and If-None-Match', async () => {
    const { etag, 'last-modified': lastModified } = (await fetchMedia()).headers;
    const range = 'bytes=0-9';
    expect((await fetchMedia({ range, 'if-range': String(etag) })).status).toBe(206);
    expect((await fetchMedia({ range, 'if-range': String(lastModified) })).status).toBe(206);
    expect((await fetchMedia({ range, 'if-range': '"other"' })).raw.length).toBe(1000);
    const unchanged = await fetchMedia({ 'if-none-match': `"x", ${etag}` });
    expect([unchanged.status, unchanged.raw.length]).toEqual([304, 0]);
  });

  it('opens only its own file', async () => {
    const query = path.split('?')[1];
    const elsewhere = [
      `/media/recordings/other.wav?${query}`,
      `/media/../../etc/passwd?${query}`,
      `/media/%2e%2e%2f%2e%2e%2fetc%2fpasswd?${query}`,
      `/media/${key}`,
      path.replace(/expires=\d+/, 'expires=99999999999'),
      path.replace(/expires=\d+/, 'expires=x'),
      path.replace(/signature=(.)/, (_, first) => `signature=${first === '-' ? 'A' : '-'}`),
      path.replace(/signature=.*/, 'signature='),
      path.replace(/signature=.*/, 'signature=%00'),
    ];
    for (const url of elsewhere) {
      const { status, body } = await fixture.call('GET', url, { as: null });
      expect([403, 404]).toContain(status);
      expect(['URL_SIGNATURE_INVALID', 'NOT_FOUND']).toContain(body.code);
    }
  });

  it('expires after five minutes', async () => {
    const before = fixture.now.current;
    fixture.now.current = new Date(before.getTime() + 5 * 60_000 - 1000);
    expect((await fetchMedia()).status).toBe(200);
    fixture.now.current = new Date(before.getTime() + 5 * 60_000);
    const { status, body } = await fetchMedia();
    fixture.now.current = before;
    expect([status, body.code]).toEqual([403, 'URL_EXPIRED']);
  });

  it('answers 404 for a deleted file', async () => {
    await fixture.objects.delete(key);
    const { status, body } = await fetchMedia();
    await fixture.putObject(key, BYTES);
    expect([status, body.code]).toEqual([404, 'NOT_FOUND']);
  });

  it('answers 404 as JSON for a file that is deleted during the request, whole or in part', async () => {
    const stat = fixture.objects.stat.bind(fixture.objects);
    for (const headers of [{}, { range: 'bytes=1-2' }] as Record<string, string>[]) {
      const deleting = vi.spyOn(fixture.objects, 'stat').mockImplementationOnce(async (wanted) => {
        const object = await stat(wanted);
        await fixture.objects.delete(wanted);
        return object;
      });
      const answer = await fetchMedia(headers);
      await fixture.putObject(key, BYTES);
      deleting.mockRestore();
      expect([answer.status, answer.body.code]).toEqual([404, 'NOT_FOUND']);
      expect(answer.headers['content-type']).toContain('application/json');
      for (const name of ['etag', 'content-range', 'content-disposition', 'last-modified']) {
        expect(answer.headers[name]).toBeUndefined();
      }
    }
  });
});
