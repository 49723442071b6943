import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { topUp, walletOf } from '../../storage/ledger.ts';
import { eventually } from '../actors/fakes.ts';
import { MemoryQueue } from '../actors/memory-queue.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';

let fixture: HttpFixture;
let owner: Member;
beforeAll(async () => {
  fixture = await createHttpFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(async () => {
  owner = await fixture.addWorkspace();
  await fund(owner, 1_000_000_000n);
});

async function fund({ workspaceId }: Member, amountNano: bigint): Promise<void> {
  const operationKey = `fund:${workspaceId}`;
  await topUp(fixture.sql, { workspaceId, amountNano, paymentType: 'one_time', operationKey });
}

const balance = async () => (await walletOf(fixture.sql, owner.workspaceId)).availableNano;
const post = (url: string, body: unknown, as: Member = owner) =>
  fixture.call('POST', url, { as, body: body as object });
const get = (url: string, as: Member = owner) => fixture.call('GET', url, { as });

async function ready(id: string, as: Member = owner): Promise<void> {
  await eventually(async () => {
    expect((await get(`/memory/${id}/status`, as)).body.data.status).toBe('ready');
  });
}

describe('POST /memory/ingest', () => {
  it('answers at once with what was queued, the collection and the three billing headers', async () => {
    const text = 'Asha Rao moved to Mumbai. 😀';
    const { status, body, headers } = await post('/memory/ingest', {
      text,
      title: 'Call',
      metadata: { customer: 'C-1' },
    });
    expect(status).toBe(202);
    expect(body).toEqual({
      success: true,
      data: {
        collection_id: expect.any(String),
        collection_label: 'Personal',
        memory_type: 'user',
        total_queued: 1,
        results: [{ id: expect.any(String), status: 'pending', message: 'Queued.' }],
      },
    });
    const characters = [...text].length;
    expect(characters).toBe(27);
    expect(headers['x-credit-charged']).toBe('0.0000027');
    expect(headers['x-credit-balance']).toBe('0.9999973');
    const usage = await get('/billing/usage-logs?service=memory');
    expect(usage.body.data).toMatchObject({
      entries: [{ id: headers['x-billing-tx'], operation: 'ingest', resource_id: body.data.results[0].id }],
    });
    await ready(body.data.results[0].id);
    const { body: one } = await get(`/memory/${body.data.results[0].id}`);
    expect(one.data).toMatchObject({
      text,
      title: 'Call',
      stored_as: 'chunks',
      facts: [],
      metadata: { customer: 'C-1' },
    });
  });

  it('is found by its words as soon as it returned', async () => {
    fixture.memoryQueue.state = 'lost';
    try {
      const { body } = await post('/memory/ingest', { text: 'The brass lantern hangs at the harbour gate.' });
      const found = await post('/memory/search', { query: 'lanterns' });
      expect(found.body.data.results.map(({ id }: { id: string }) => id)).toEqual([body.data.results[0].id]);
      expect(found.body.data.results[0]).toMatchObject({ type: 'user', collection_id: body.data.collection_id });
    } finally {
      fixture.memoryQueue.state = 'working';
    }
  });

  it('stores and charges the same once, and something else with the same text apart', async () => {
    const body = { text: 'The harbour opens at seven.', metadata: { a: 1, b: [2] } };
    const first = await post('/memory/ingest', body);
    const before = await balance();
    const again = await post('/memory/ingest', { ...body, metadata: { b: [2], a: 1 } });
    const { id } = first.body.data.results[0];
    expect(again.status).toBe(202);
    expect(again.body.data.total_queued).toBe(0);
    expect(again.body.data.results[0]).toMatchObject({ id, deduplicated_into: id });
    expect(again.headers['x-billing-tx']).toBeUndefined();
    expect(await balance()).toBe(before);
    expect((await post('/memory/ingest', { ...body, metadata: { a: 2 } })).body.data.total_queued).toBe(1);
  });

  it('stores and charges the same once when it comes at the same time', async () => {
    const before = await balance();
    const text = 'Seven lanterns.';
    const answers = await Promise.all(Array.from({ length: 8 }, () => post('/memory/ingest', { text })));
    expect(new Set(answers.map(({ body }) => body.data.results[0].id)).size).toBe(1);
    expect(answers.filter(({ body }) => body.data.total_queued === 1)).toHaveLength(1);
    expect(before - (await balance())).toBe(1_500n);
  });

  it('refuses whom the wallet does not cover, and stores nothing', async () => {
    const poor = await fixture.addWorkspace();
    const { status, body } = await post('/memory/ingest', { text: 'x'.repeat(1_000) }, poor);
    expect(status).toBe(402);
    expect(body).toMatchObject({
      code: 'INSUFFICIENT_CREDITS',
      details: { required: 0.0001, available: 0, shortfall: 0.0001 },
    });
    expect((await get('/memory', poor)).body.data.pagination.total).toBe(0);
    expect((await get('/memory/collections', poor)).body.data.collections).toEqual([]);
  });

  it('denies viewers, and the workspace’s memories to all but owners and admins', async () => {
    const viewer = await fixture.addMemberWith('viewer', owner.workspaceId);
    const member = await fixture.addMemberWith('member', owner.workspaceId);
    const admin = await fixture.addMemberWith('admin', owner.workspaceId);
    for (const [as, type] of [
      [viewer, 'user'],
      [viewer, 'knowledge'],
      [member, 'knowledge'],
      [member, 'hive'],
    ] as const) {
      const { status, body } = await post('/memory/ingest', { text: 'A rule.', type }, as);
      expect([status, body.code]).toEqual([403, 'POLICY_DENY']);
    }
    const stored = await post('/memory/ingest', { text: 'The harbour closes at nine.', type: 'knowledge' }, admin);
    expect(stored.body.data).toMatchObject({
      memory_type: 'knowledge',
      collection_label: 'Knowledge',
      total_queued: 1,
    });
    const found = await post('/memory/search', { query: 'When does the harbour close?' }, viewer);
    expect(found.body.data.results).toHaveLength(1);
  });

  it('refuses what is no memory, and stores nothing of it', async () => {
    for (const body of [
      {},
      { text: '' },
      { text: ' \n\t ' },
      { text: '\u0000\u0000' },
      { text: 42 },
      { text: 'x'.repeat(100_001) },
      { text: `e${'\u0301'.repeat(100_001)}` },
      { text: 'a', type: 'team' },
      { text: 'a', type: '__proto__' },
      { text: 'a', infer: 'yes' },
      { text: 'a', metadata: [] },
      { text: 'a', metadata: { note: 'x'.repeat(9_000) } },
      { text: 'a', title: 'x'.repeat(501) },
      { text: 'a', extra: 1 },
    ]) {
      const { status, body: refused } = await post('/memory/ingest', body);
      expect([status, refused.code]).toEqual([400, 'VALIDATION_FAILED']);
    }
    for (const collection_id of ['nonsense', '00000000-0000-4000-8000-000000000000', "' or 1=1"]) {
      const { status, body } = await post('/memory/ingest', { text: 'a', collection_id });
      expect([status, body.code]).toEqual([404, 'COLLECTION_NOT_FOUND']);
    }
    expect((await get('/memory')).body.data.pagination.total).toBe(0);
  });

  it('takes 100 000 characters of any kind, and NUL and torn surrogates are left out', async () => {
    for (const text of ['😀'.repeat(100_000), '\n'.repeat(99_999).concat('x'), 'ab '.repeat(33_000)]) {
      expect((await post('/memory/ingest', { text })).status).toBe(202);
    }
    const odd = {
      text: 'Asha\u0000 likes \ud800tea.',
      title: 'a\u0000\nb',
      metadata: { k: '\u0000\udc00', constructor: 1, __proto__: 2 },
    };
    const { body } = await fixture.call('POST', '/memory/ingest', {
      as: owner,
      body: JSON.stringify(odd),
      headers: { 'content-type': 'application/json' },
    });
    const one = await get(`/memory/${body.data.results[0].id}`);
    expect(one.body.data).toMatchObject({ text: 'Asha likes \ufffdtea.', title: 'a b' });
    await ready(body.data.results[0].id);
  });

  it('says that memory is being set up until it is', async () => {
    const queue = new MemoryQueue();
    queue.state = 'closed';
    await using starting = await createHttpFixture({}, { memoryQueue: queue });
    for (const [url, body] of [
      ['/memory/ingest', { text: 'a' }],
      ['/memory/search', { query: 'a' }],
      ['/memory/context', { query: 'a' }],
    ] as const) {
      const answer = await starting.call('POST', url, { body });
      expect([answer.status, answer.body.code]).toEqual([503, 'MEMORY_INFRA_NOT_READY']);
      expect(answer.headers['retry-after']).toBe('10');
    }
  });

  it('pays back and keeps what cannot be queued', async () => {
    const before = await balance();
    fixture.memoryQueue.state = 'refusing';
    try {
      const { status, body, headers } = await post('/memory/ingest', { text: 'Bring the lantern.' });
      expect([status, body.code]).toEqual([503, 'MEMORY_UNREACHABLE']);
      expect(headers['retry-after']).toBeDefined();
      expect(await balance()).toBe(before);
      await ready(body.details.ids[0]);
    } finally {
      fixture.memoryQueue.state = 'working';
    }
  }, 30_000);
});

describe('POST /memory/ingest/batch', () => {
  it('answers with one result for each memory in their order, and what all of them cost', async () => {
    const member = await fixture.addMemberWith('member', owner.workspaceId);
    const memories = [
      { text: 'First.' },
      { text: 'A rule.', type: 'hive' },
      { text: 'First.' },
      { text: 'Second.', collection_id: '00000000-0000-4000-8000-000000000000' },
      { text: 'Third.' },
    ];
    const before = await balance();
    const { status, body, headers } = await post('/memory/ingest/batch', { memories }, member);
    expect(status).toBe(202);
    const [first] = body.data.results;
    expect(body.data).toMatchObject({
      total_queued: 2,
      total_failed: 2,
      total_charged: 0.0000012,
      memory_type: 'user',
    });
    expect(body.data.results).toMatchObject([
      { status: 'pending' },
      { id: null, status: 'failed', code: 'POLICY_DENY' },
      { id: first.id, deduplicated_into: first.id },
      { id: null, status: 'failed', code: 'COLLECTION_NOT_FOUND' },
      { status: 'pending' },
    ]);
    expect(headers['x-credit-charged']).toBe('0.0000012');
    expect(before - (await balance())).toBe(1_200n);
  });

  it('takes a hundred, in any of which nothing may be wrong', async () => {
    const memories = Array.from({ length: 100 }, (_, index) => ({ text: `Memory ${index}.` }));
    expect((await post('/memory/ingest/batch', { memories })).body.data.total_queued).toBe(100);
    const before = await balance();
    for (const wrong of [[...memories, { text: 'One more.' }], [], [{ text: 'Good.' }, { text: ' ' }], [null], {}]) {
      expect((await post('/memory/ingest/batch', { memories: wrong })).status).toBe(400);
    }
    const long = { memories: [{ text: 'Good.' }, { text: `e${'\u0301'.repeat(100_001)}` }] };
    expect((await post('/memory/ingest/batch', long)).body.details).toMatchObject([{ path: 'memories.1.text' }]);
    expect(await balance()).toBe(before);
  });

  it('stores nothing when the wallet does not cover the sum, which it names', async () => {
    const poor = await fixture.addWorkspace();
    await fund(poor, 1_000n);
    const memories = [{ text: '123456' }, { text: '1234567' }];
    const { status, body } = await post('/memory/ingest/batch', { memories }, poor);
    expect([status, body.details]).toEqual([402, { required: 0.0000013, available: 0.000001, shortfall: 0.0000003 }]);
    expect((await get('/memory', poor)).body.data.pagination.total).toBe(0);
  });

  it('is refused as the first one is when none may be stored', async () => {
    const viewer = await fixture.addMemberWith('viewer', owner.workspaceId);
    const { status, body } = await post('/memory/ingest/batch', { memories: [{ text: 'a' }, { text: 'b' }] }, viewer);
    expect([status, body.code]).toEqual([403, 'POLICY_DENY']);
  });

  it('has a limit of its own on the body', async () => {
    const memories = Array.from({ length: 30 }, () => ({ text: 'x'.repeat(90_000) }));
    const { status, body } = await post('/memory/ingest/batch', { memories });
    expect([status, body.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    expect(body.message).toContain('2048 KiB');
  });
});

describe('a memory', () => {
  it('of one person is there for nobody else, owners included', async () => {
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

  it('that is deleted is gone from every answer and the database, and its cost stays', async () => {
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

  it('is retried only after it failed', async () => {
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

  it('is listed newest first, with filters and pages', async () => {
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

  it('finds by words, with scores, and is billed by the characters of the query', async () => {
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

  it('filters by metadata and type, and refuses filters that mean nothing', async () => {
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

  it('answers queries of every sort without a charge that is not its own', async () => {
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

  it('refuses whom the wallet does not cover', async () => {
    const poor = await fixture.addWorkspace();
    for (const url of ['/memory/search', '/memory/context']) {
      expect((await post(url, { query: 'Asha' }, poor)).status).toBe(402);
    }
  });

  it('assembles a context within its tokens, framed as data, with its sources', async () => {
    const { body, headers } = await post('/memory/context', { query: 'Where does Asha live?', max_tokens: 200 });
    expect(body.data.context).toContain('{"text":"Asha Rao lives in Mumbai."}');
    expect(body.data.token_count).toBeLessThanOrEqual(200);
    expect(body.data.sources[0]).toMatchObject({ id: expect.any(String), score: expect.any(Number) });
    expect(headers['x-credit-charged']).toBe('0.0000021');
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'What is the name of the boat?' },
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

  it('logs nothing of what is remembered or asked', () => {
    const lines = fixture.logLines.join('\n');
    for (const secret of ['Asha', 'Vega', 'lantern', 'Mumbai']) expect(lines).not.toContain(secret);
  });
});

describe('collections', () => {
  it('of a team are made by members, seen by its members and deleted by who made them', async () => {
    const maker = await fixture.addMemberWith('member', owner.workspaceId);
    const mate = await fixture.addMemberWith('member', owner.workspaceId);
    const other = await fixture.addMemberWith('member', owner.workspaceId);
    const made = await post('/memory/collections', { name: ' Support ', member_ids: [mate.userId] }, maker);
    expect(made.status).toBe(201);
    const { collection_id } = made.body.data;
    expect(made.body.data).toMatchObject({
      name: 'Support',
      label: 'Support',
      type: 'team',
      memory_count: 0,
      created_by: maker.userId,
    });
    const { body } = await post('/memory/ingest', { text: 'Call Asha back.', type: 'user', collection_id }, mate);
    expect(body.data).toMatchObject({ collection_id, memory_type: 'team', collection_label: 'Support' });
    const hidden = await post('/memory/ingest', { text: 'x', collection_id }, other);
    expect(hidden.body.code).toBe('COLLECTION_NOT_FOUND');
    const listed = await get('/memory/collections?type=team', maker);
    expect(listed.body.data.collections).toMatchObject([{ collection_id, memory_count: 1 }]);
    expect(listed.body.data.pagination).toEqual({ page: 1, limit: 20, total: 1, pages: 1 });
    expect((await get('/memory/collections', other)).body.data.collections).toEqual([]);
    const refused = await fixture.call('DELETE', `/memory/collections/${collection_id}`, { as: mate });
    expect(refused.body.code).toBe('POLICY_DENY');
    const deleted = await fixture.call('DELETE', `/memory/collections/${collection_id}`, { as: maker });
    expect(deleted.body.data).toEqual({ collection_id, deleted: true, memories: 1 });
    expect((await get(`/memory/${body.data.results[0].id}`, maker)).status).toBe(404);
    const audit = await get('/audit?limit=5', owner);
    const actions = JSON.stringify(audit.body);
    expect(actions).toContain('memory_collection.created');
    expect(actions).toContain('memory_collection.deleted');
  });

  it('of the workspace are for owners and admins to make, once under each name', async () => {
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
  it('shows owners the workspace and its wallet, and all others what they did themselves', async () => {
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
});
