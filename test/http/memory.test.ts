import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { lastMemoryCharge } from '../../storage/queries/memory-charges.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { type MemoryRequests, memoryRequests } from './memory-requests.ts';

let fixture: HttpFixture;
let owner: Member;
let requests: MemoryRequests;
beforeAll(async () => {
  fixture = await createHttpFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(async () => {
  requests = await memoryRequests(fixture);
  owner = requests.owner;
});

const post: MemoryRequests['post'] = (...request) => requests.post(...request);
const get: MemoryRequests['get'] = (...request) => requests.get(...request);
const ready: MemoryRequests['ready'] = (...memory) => requests.ready(...memory);
const balance = () => requests.balance();

describe('single memory', () => {
  it('exists only for the user who created it, not for owners', async () => {
    const member = await fixture.addMemberWith('member', owner.workspaceId);
    const stranger = await fixture.addWorkspace();
    const { body } = await post('/memory/ingest', { text: 'My secret lantern.' }, member);
    const { id } = body.data.results[0];
    for (const as of [owner, stranger]) {
      for (const path of [`/memory/${id}`, `/memory/${id}/status`]) {
        expect((await get(path, as)).body.code).toBe('MEMORY_NOT_FOUND');
      }
      expect((await fixture.call('DELETE', `/memory/${id}`, { as })).body.code).toBe('MEMORY_NOT_FOUND');
      expect((await post(`/memory/${id}/retry`, undefined, as)).body.code).toBe('MEMORY_NOT_FOUND');
      expect((await get('/memory', as)).body.data.memories).toEqual([]);
    }
    expect((await get(`/memory/${id}`, member)).status).toBe(200);
    expect((await get('/memory/nonsense')).body.code).toBe('MEMORY_NOT_FOUND');
  });

  it('disappears from every response and the database when deleted, except its cost', async () => {
    const { body } = await post('/memory/ingest', {
      text: 'The violet lantern.',
      title: 'Violet',
      metadata: { v: 'violet' },
    });
    const { id } = body.data.results[0];
    await ready(id);
    const before = await balance();
    expect((await fixture.call('DELETE', `/memory/${id}`, { as: owner })).body.data).toEqual({ id, deleted: true });
    expect((await get(`/memory/${id}`)).status).toBe(404);
    expect((await post('/memory/search', { query: 'violet lantern' })).body.data.results).toEqual([]);
    const [left] = await fixture.sql`
      select (select count(*)::int from memory_units where memory_id = ${id}) as units,
        (select count(*)::int from memories where memories::text like '%iolet%') as rows,
        (select count(*)::int from memory_words where word like 'violet%') as words`;
    expect(left).toEqual({ units: 0, rows: 0, words: 0 });
    expect((await get('/billing/usage-logs?service=memory')).body.data.pagination.total).toBeGreaterThan(0);
    expect(await balance()).toBeLessThan(before);
  });

  it('can be retried only after a failure', async () => {
    const { body } = await post('/memory/ingest', { text: 'A lantern.' });
    const { id } = body.data.results[0];
    await ready(id);
    const refused = await post(`/memory/${id}/retry`, undefined);
    expect([refused.status, refused.body.code]).toEqual([409, 'MEMORY_NOT_FAILED']);
    await fixture.sql`update memories set status = 'failed', error_code = 'INTERNAL', error = 'x' where id = ${id}`;
    expect((await get(`/memory/${id}/status`)).body.data.error).toEqual({ code: 'INTERNAL', message: 'x' });
    const retried = await post(`/memory/${id}/retry`, undefined);
    expect([retried.status, retried.body.data.id]).toEqual([202, id]);
    expect(retried.headers['x-credit-charged']).toBe('0.000001');
    await ready(id);
  });

  it('charges so that a failure is refunded when the request has its id in capitals', async () => {
    const { body } = await post('/memory/ingest', { text: 'A lantern.' });
    const { id } = body.data.results[0];
    await ready(id);
    await fixture.sql`update memories set status = 'failed', error_code = 'INTERNAL', error = 'x' where id = ${id}`;
    const path = `/memory/${id.toUpperCase()}`;
    const attempts = async () => (await get(`/memory/${id}/status`)).body.data.attempts;
    const charged = async () => (await lastMemoryCharge(fixture.sql, { memoryId: id, attempts: 99 }))?.attempts;
    const before = await attempts();
    expect((await post(`${path}/retry`, undefined)).status).toBe(202);
    expect(await charged()).toBe(before);
    await ready(id);
    const update = await fixture.call('PATCH', path, { as: owner, body: { text: 'A crimson kettle.' } });
    expect(update.status).toBe(200);
    expect(await charged()).toBe(before + 2);
    await ready(id);
    const { entries } = (await get('/billing/usage-logs?service=memory')).body.data;
    expect(new Set(entries.map((entry: { resource_id: string }) => entry.resource_id))).toEqual(new Set([id]));
  });

  it('charges and indexes a new text, and changes title and metadata free of charge', async () => {
    const { body } = await post('/memory/ingest', { text: 'The violet lantern.', metadata: { a: 1, b: 2 } });
    const { id } = body.data.results[0];
    await ready(id);
    const patch = (change: unknown, as = owner) =>
      fixture.call('PATCH', `/memory/${id}`, { as, body: change as object });
    const relabelled = await patch({ title: ' Lamp\n', metadata: { a: null, c: 3 } });
    expect(relabelled.status).toBe(200);
    expect(relabelled.body.data).toMatchObject({ id, title: 'Lamp', metadata: { b: 2, c: 3 }, status: 'ready' });
    expect(relabelled.headers['x-credit-charged']).toBeUndefined();
    const rewritten = await patch({ text: 'A crimson kettle.', title: null });
    expect(rewritten.body.data).toMatchObject({ text: 'A crimson kettle.', title: null });
    expect(rewritten.headers['x-credit-charged']).toBe('0.0000017');
    await ready(id);
    const search = async (query: string) => (await post('/memory/search', { query })).body.data.results;
    expect(await search('crimson kettle')).toMatchObject([{ id, memory: 'A crimson kettle.' }]);
    const { body: usage } = await get('/memory/usage');
    expect(usage.data.breakdown).toContainEqual(expect.objectContaining({ operation: 'update', count: 1 }));
  });

  it('rejects changes by other workspaces and viewers, and invalid bodies', async () => {
    const { body } = await post('/memory/ingest', { text: 'The violet lantern.', type: 'hive' });
    const { id } = body.data.results[0];
    const patch = async (change: unknown, as = owner) =>
      (await fixture.call('PATCH', `/memory/${id}`, { as, body: change as object })).body.code;
    expect(await patch({ title: 'x' }, await fixture.addWorkspace())).toBe('MEMORY_NOT_FOUND');
    const viewer = await fixture.addMemberWith('viewer', owner.workspaceId);
    const member = await fixture.addMemberWith('member', owner.workspaceId);
    expect(await patch({ title: 'x' }, viewer)).toBe('POLICY_DENY');
    expect(await patch({ text: 'x' }, member)).toBe('POLICY_DENY');
    const large = { metadata: { a: 'x'.repeat(9_000) } };
    const invalid = [
      {},
      { text: '' },
      { text: ' \u0000' },
      { text: null },
      { type: 'user' },
      { metadata: null },
      large,
    ];
    for (const change of invalid) expect(await patch(change)).toBe('VALIDATION_FAILED');
    expect((await get(`/memory/${id}`)).body.data).toMatchObject({ text: 'The violet lantern.', title: null });
  });

  it('appears in the list newest first, with filters and pages', async () => {
    const text = 'Lantern '.repeat(100);
    for (const title of ['a', 'b', 'c']) {
      fixture.now.current = new Date(fixture.now.current.getTime() + 1_000);
      await post('/memory/ingest', { text, title });
    }
    const { body } = await get('/memory?limit=2&type=user');
    expect(body.data.memories.map(({ title }: { title: string }) => title)).toEqual(['c', 'b']);
    expect(body.data.pagination).toEqual({ page: 1, limit: 2, total: 3, pages: 2 });
    expect(body.data.memories[0].excerpt).toHaveLength(200);
    expect(body.data.memories[0].text).toBeUndefined();
    expect((await get('/memory?type=hive')).body.data.memories).toEqual([]);
    expect((await get('/memory?collection_id=nonsense')).body.data.memories).toEqual([]);
    expect((await get('/memory?status=late')).status).toBe(400);
  });
});

describe('POST /memory/search and /memory/context', () => {
  beforeEach(async () => {
    const memories = [
      { text: 'Asha Rao lives in Mumbai.', metadata: { customer: 'C-1', year: 2025 } },
      { text: 'Bo Lind has a boat named Vega.', metadata: { customer: 'C-2', year: 2024 } },
    ];
    const { body } = await post('/memory/ingest/batch', { memories });
    for (const { id } of body.data.results) await ready(id);
  });

  it('finds by words with scores, and charges the characters of the query', async () => {
    const query = 'Where does Asha live?';
    const { status, body, headers } = await post('/memory/search', { query, limit: 1 });
    expect(status).toBe(200);
    expect(body.data).toMatchObject({
      results: [{ memory: 'Asha Rao lives in Mumbai.', metadata: { customer: 'C-1', year: 2025 } }],
      degraded: false,
    });
    const [hit] = body.data.results;
    expect(hit.score).toBeGreaterThan(0);
    expect(hit.score).toBeLessThanOrEqual(1);
    expect(body.data.timing_ms).toBeGreaterThan(0);
    expect(headers['x-credit-charged']).toBe('0.0000021');
    const { body: usage } = await get('/memory/usage');
    expect(usage.data.breakdown).toMatchObject([
      { operation: 'ingest_batch', count: 2 },
      { operation: 'search', count: 1, units: 0.021, amount_usd: 0.0000021 },
    ]);
  });

  it('filters by metadata and type, and rejects invalid filters', async () => {
    const search = async (more: object) =>
      (await post('/memory/search', { query: 'Asha Bo boat lives', ...more })).body;
    expect((await search({ filters: { customer: 'C-2' } })).data.results).toHaveLength(1);
    expect((await search({ filters: { year: { $gte: 2025 } } })).data.results).toHaveLength(1);
    expect((await search({ type: 'hive' })).data.results).toEqual([]);
    expect((await search({ filters: { constructor: 'x', __proto__: 'y' } })).data.results).toEqual([]);
    expect((await search({ filters: { year: { $where: '1' } } })).code).toBe('VALIDATION_FAILED');
    expect((await search({ collection_ids: ['00000000-0000-4000-8000-000000000000'] })).code).toBe(
      'COLLECTION_NOT_FOUND',
    );
    expect((await search({ threshold: 2 })).code).toBe('VALIDATION_FAILED');
    for (const query of ['', ' ', 'x'.repeat(2_001), null]) {
      expect((await post('/memory/search', { query })).status).toBe(400);
    }
  });

  it('answers odd queries, each with its own charge', async () => {
    for (const query of [
      "'; drop table memories; --",
      '"',
      '-',
      '((((',
      '\u0000',
      '😀',
      ':*',
      '\\',
      'a'.repeat(2_000),
      '%_%',
    ]) {
      expect((await post('/memory/search', { query })).status).toBe(200);
    }
  });

  it('answers 402 without credit', async () => {
    const poor = await fixture.addWorkspace();
    for (const url of ['/memory/search', '/memory/context']) {
      expect((await post(url, { query: 'Asha' }, poor)).status).toBe(402);
    }
  });

  it('builds a context of relevant memories only, below the token limit', async () => {
    const sourcesOf = async (asked: object) => (await post('/memory/context', asked)).body.data.sources;
    const found = await post('/memory/search', { query: 'Which harbour is Vega moored in, and is Asha there?' });
    expect(found.body.data.results).toHaveLength(2);
    const query = 'Tell me about sailing';
    expect(await sourcesOf({ query, max_tokens: 16_000 })).toMatchObject([{ id: found.body.data.results[0].id }]);
    const { body } = await post('/memory/context', { query: 'zxqvw' });
    expect(body.data).toMatchObject({ context: '', token_count: 0, sources: [] });
  });

  it('builds a context of everything above a given threshold', async () => {
    const { body } = await post('/memory/context', {
      query: 'Asha Rao lives in Mumbai and has a boat',
      threshold: 0.01,
    });
    expect(body.data.sources).toHaveLength(2);
    const strict = await post('/memory/context', { query: 'Asha Rao lives in Mumbai and has a boat', threshold: 1 });
    expect(strict.body.data.sources).toEqual([]);
  });

  it('builds a context within its tokens, marked as data, with its sources', async () => {
    const { body, headers } = await post('/memory/context', { query: 'Where does Asha live?', max_tokens: 200 });
    expect(body.data.context).toContain('{"text":"Asha Rao lives in Mumbai."}');
    expect(body.data.token_count).toBeLessThanOrEqual(200);
    expect(body.data.sources[0]).toMatchObject({ id: expect.any(String), score: expect.any(Number) });
    expect(headers['x-credit-charged']).toBe('0.0000021');
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'assistant', content: null, tool_calls: [] },
      { role: 'user', content: [{ type: 'text', text: 'What is the name of the boat?' }, { type: 'image_url' }] },
    ];
    const asked = await post('/memory/context', { messages });
    expect(asked.body.data.context).toContain('Vega');
    expect(asked.headers['x-credit-charged']).toBe('0.0000029');
    for (const wrong of [
      {},
      { query: 'a', messages },
      { messages: [{ role: 'system', content: 'Be brief.' }] },
      { query: 'a', max_tokens: 1 },
    ]) {
      expect((await post('/memory/context', wrong)).body.code).toBe('VALIDATION_FAILED');
    }
  });

  it('logs neither memories nor queries', () => {
    const lines = fixture.logLines.join('\n');
    for (const secret of ['Asha', 'Vega', 'lantern', 'Mumbai']) expect(lines).not.toContain(secret);
  });
});

describe('collections', () => {
  it('for a team belong to its members, and are deleted by their creator', async () => {
    const maker = await fixture.addMemberWith('member', owner.workspaceId);
    const teammate = await fixture.addMemberWith('member', owner.workspaceId);
    const other = await fixture.addMemberWith('member', owner.workspaceId);
    const made = await post('/memory/collections', { name: ' Support ', member_ids: [teammate.userId] }, maker);
    expect(made.status).toBe(201);
    const { collection_id } = made.body.data;
    expect(made.body.data).toMatchObject({
      name: 'Support',
      label: 'Support',
      type: 'team',
      memory_count: 0,
      created_by: maker.userId,
    });
    const { body } = await post('/memory/ingest', { text: 'Call Asha back.', type: 'user', collection_id }, teammate);
    expect(body.data).toMatchObject({ collection_id, memory_type: 'team', collection_label: 'Support' });
    const hidden = await post('/memory/ingest', { text: 'x', collection_id }, other);
    expect(hidden.body.code).toBe('COLLECTION_NOT_FOUND');
    const listed = await get('/memory/collections?type=team', maker);
    expect(listed.body.data.collections).toMatchObject([{ collection_id, memory_count: 1 }]);
    expect(listed.body.data.pagination).toEqual({ page: 1, limit: 20, total: 1, pages: 1 });
    expect((await get('/memory/collections', other)).body.data.collections).toEqual([]);
    const refused = await fixture.call('DELETE', `/memory/collections/${collection_id}`, { as: teammate });
    expect(refused.body.code).toBe('POLICY_DENY');
    const deleted = await fixture.call('DELETE', `/memory/collections/${collection_id}`, { as: maker });
    expect(deleted.body.data).toEqual({ collection_id, deleted: true, memories: 1 });
    expect((await get(`/memory/${body.data.results[0].id}`, maker)).status).toBe(404);
    const audit = await get('/audit?limit=5', owner);
    const actions = JSON.stringify(audit.body);
    expect(actions).toContain('memory_collection.created');
    expect(actions).toContain('memory_collection.deleted');
  });

  it('for the workspace are created by owners and admins, once per name', async () => {
    const member = await fixture.addMemberWith('member', owner.workspaceId);
    const viewer = await fixture.addMemberWith('viewer', owner.workspaceId);
    for (const [as, type] of [
      [member, 'hive'],
      [member, 'knowledge'],
      [viewer, 'team'],
    ] as const) {
      expect((await post('/memory/collections', { name: 'x', type }, as)).body.code).toBe('POLICY_DENY');
    }
    expect((await post('/memory/collections', { name: 'Rules', type: 'hive' })).status).toBe(201);
    expect((await post('/memory/collections', { name: 'RULES', type: 'hive' })).body.code).toBe(
      'COLLECTION_NAME_TAKEN',
    );
    expect((await post('/memory/collections', { name: 'Rules', type: 'hive', member_ids: [1] })).status).toBe(400);
    expect((await post('/memory/collections', { name: 'Team', member_ids: [2_000_000_000] })).body.code).toBe(
      'MEMBER_NOT_FOUND',
    );
    for (const wrong of [{ name: ' ' }, { name: 'x', type: 'user' }, { name: 'x', member_ids: ['1'] }]) {
      expect((await post('/memory/collections', wrong)).status).toBe(400);
    }
    await post('/memory/ingest', { text: 'Mine.' });
    const mine = (await get('/memory/collections?type=user')).body.data.collections[0];
    const refused = await fixture.call('DELETE', `/memory/collections/${mine.collection_id}`, { as: owner });
    expect(refused.body.code).toBe('POLICY_DENY');
    const wrongType = await post('/memory/ingest', { text: 'x', type: 'hive', collection_id: mine.collection_id });
    expect(wrongType.body.code).toBe('VALIDATION_FAILED');
  });
});

describe('GET /memory/usage', () => {
  it('shows owners the whole workspace and its wallet, and others their own usage', async () => {
    const member = await fixture.addMemberWith('member', owner.workspaceId);
    await post('/memory/ingest', { text: '1234567890' });
    await post('/memory/ingest', { text: '12345' }, member);
    const all = (await get('/memory/usage')).body.data;
    expect(all).toMatchObject({ total_usd: 0.0000015, wallet: { balance: 0.9999985, currency: 'USD' } });
    const own = (await get('/memory/usage', member)).body.data;
    expect(own).toMatchObject({ total_usd: 0.0000005, wallet: null });
    const month = fixture.now.current.toISOString().slice(0, 7);
    expect(all.period.from).toBe(`${month}-01T00:00:00.000Z`);
    expect((await get('/memory/usage?month=2020-02')).body.data).toMatchObject({
      period: { from: '2020-02-01T00:00:00.000Z', to: '2020-03-01T00:00:00.000Z' },
      total_usd: 0,
      breakdown: [],
    });
    expect((await get('/memory/usage?month=2020-13')).status).toBe(400);
  });

  it.each([
    [['memory:read'], null],
    [['memory:read', 'billing:manage'], { balance: 1, currency: 'USD' }],
  ])('shows the wallet to a key with the scopes %j as GET /billing/wallet does', async (scopes, wallet) => {
    await fixture.sql`update api_keys set scopes = ${scopes} where id = ${owner.keyId}`;
    const { status } = await get('/billing/wallet');
    expect(status).toBe(wallet === null ? 403 : 200);
    expect((await get('/memory/usage')).body.data.wallet).toEqual(wallet);
  });
});
