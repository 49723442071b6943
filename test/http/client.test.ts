import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readOpenApi, schemaOf } from '../../client/build.ts';
import { createTandemClient } from '../../client/index.ts';
import { ROOT } from '../root.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';

let fixture: HttpFixture;
let url: string;
beforeAll(async () => {
  fixture = await createHttpFixture();
  url = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => fixture[Symbol.asyncDispose]());

describe('typed client', () => {
  it('matches openapi.json', async () => {
    const committed = await readFile(join(ROOT, 'client/schema.ts'), 'utf8');
    const generated = await schemaOf(await readOpenApi());
    expect(committed === generated, 'client/schema.ts is old: run npm run client:build').toBe(true);
  });

  it('lists calls with an API key', async () => {
    const client = createTandemClient({ baseUrl: `${url}/`, apiKey: fixture.owner.key });
    const { data } = await client.GET('/dialer/click2call', { params: { query: { limit: 5 } } });
    expect(data?.data).toMatchObject({ calls: [], pagination: { limit: 5 } });
  });

  it('returns the code and the message of an error response', async () => {
    const client = createTandemClient({ baseUrl: url, apiKey: 'sk_unknown' });
    const { error, response } = await client.GET('/billing/wallet');
    expect(response.status).toBe(401);
    expect(error).toMatchObject({ code: 'UNAUTHORIZED', message: expect.stringContaining('API key') });
  });

  it('names the workspace in the query and sends the body unchanged', async () => {
    const sent: { url: string; body: unknown }[] = [];
    const client = createTandemClient({
      baseUrl: url,
      workspaceId: () => 'c0ffee00-0000-4000-8000-000000000000',
      fetch: async (address, { body } = {}) => {
        sent.push({ url: String(address), body: JSON.parse(new TextDecoder().decode(body as ArrayBuffer)) });
        return Response.json({ success: true, data: {} });
      },
    });
    await client.POST('/developer/api', { body: { name: 'é' } });
    expect(sent).toEqual([
      { url: `${url}/developer/api?workspace_id=c0ffee00-0000-4000-8000-000000000000`, body: { name: 'é' } },
    ]);
  });

  it('works in Firefox, whose requests have no property body', async () => {
    class FirefoxRequest extends Request {
      constructor(...given: ConstructorParameters<typeof Request>) {
        super(...given);
        Object.defineProperty(this, 'body', { value: undefined });
      }
    }
    vi.stubGlobal('Request', FirefoxRequest);
    const client = createTandemClient({ baseUrl: url, apiKey: fixture.owner.key });
    vi.unstubAllGlobals();
    const { data } = await client.GET('/dialer/click2call');
    expect(data?.data.calls).toEqual([]);
    const stored = await client.POST('/dialer/do-not-call', { body: { numbers: ['+919833333333'] } });
    expect(stored.data?.data.added).toBe(1);
  });
});
