import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { inTransaction } from '../../storage/database.ts';
import { setPrice } from '../../storage/price-book.ts';
import { nextRevision } from '../../storage/queries/memory-collections.ts';
import { MemoryQueue } from '../actors/memory-queue.ts';
import { eventually } from '../eventually.ts';
import { lockWaits } from '../storage/lock-waits.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { fund, type MemoryRequests, memoryRequests, overdraw } from './memory-requests.ts';

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

describe('POST /memory/ingest', () => {
  it('returns the queued memory, its collection and three billing headers at once', async () => {
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

  it('makes the memory searchable by its words before it returns', async () => {
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

  it('stores and charges a repetition once, and different metadata separately', async () => {
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

  it('stores the numbers of metadata as numbers, however they are written', async () => {
    const headers = { 'content-type': 'application/json' };
    const send = (method: 'POST' | 'PATCH', url: string, body: string) =>
      fixture.call(method, url, { as: owner, body, headers });
    const written = '{"price":5.0,"parts":[1.50],"size":{"kg":1e2}}';
    const { body } = await send('POST', '/memory/ingest', `{"text":"A brass lantern.","metadata":${written}}`);
    const { id } = body.data.results[0];
    const numbers = { price: 5, parts: [1.5], size: { kg: 100 } };
    expect((await get(`/memory/${id}`)).body.data.metadata).toEqual(numbers);
    const filters = { price: { $lte: 5 }, parts: 1.5, 'size.kg': 100 };
    const found = await post('/memory/search', { query: 'lantern', filters });
    expect(found.body.data.results).toMatchObject([{ id, metadata: numbers }]);
    const changed = await send('PATCH', `/memory/${id}`, '{"metadata":{"price":7.0}}');
    expect(changed.body.data.metadata).toEqual({ ...numbers, price: 7 });
  });

  it('stores and charges simultaneous repetitions once', async () => {
    const before = await balance();
    const text = 'Seven lanterns.';
    const answers = await Promise.all(Array.from({ length: 8 }, () => post('/memory/ingest', { text })));
    expect(new Set(answers.map(({ body }) => body.data.results[0].id)).size).toBe(1);
    expect(answers.filter(({ body }) => body.data.total_queued === 1)).toHaveLength(1);
    expect(before - (await balance())).toBe(1_500n);
  });

  it('leaves the wallet unlocked while it waits for its collection', async () => {
    const { collection_id } = (await post('/memory/ingest', { text: 'Before.' })).body.data;
    const before = await balance();
    let ingest: ReturnType<typeof post> | undefined;
    await inTransaction(fixture.sql, async (tx) => {
      await nextRevision(tx, collection_id);
      ingest = post('/memory/ingest', { text: 'Lanterns.' });
      await eventually(async () => expect(await lockWaits(fixture.sql)).toBeGreaterThan(0));
      const found = await post('/memory/search', { query: 'x' });
      expect([found.status, found.headers['x-credit-charged']]).toEqual([200, '0.0000001']);
    });
    expect((await ingest)!.status).toBe(202);
    expect(before - (await balance())).toBe(1_000n);
  });

  it('avoids a deadlock with a request that names the same collections in another order', async () => {
    const personal = (text: string) => ({ text });
    const shared = (text: string) => ({ text, type: 'hive' });
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) => {
        const memories = [personal(`Tea ${n}`), shared(`Coffee ${n}`)];
        return post('/memory/ingest/batch', { memories: n % 2 === 0 ? memories : memories.reverse() });
      }),
    );
    expect(answers.map(({ body }) => body.data?.total_queued)).toEqual(answers.map(() => 2));
    expect((await get('/memory/collections')).body.data.pagination.total).toBe(2);
  });

  it('answers 402 without credit, and stores nothing', async () => {
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

  it('refuses viewers, and restricts workspace memories to owners and admins', async () => {
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

  it('rejects invalid memories, and stores nothing', async () => {
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

  it('accepts 100,000 characters, and drops NUL and lone surrogates', async () => {
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

  it('answers 503 while memory starts', async () => {
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

  it('refunds and keeps a memory that cannot be queued', async () => {
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
  it('returns one result per memory in order, and the total cost', async () => {
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

  it('stores and charges a repetition in the same request once, however it is written', async () => {
    const before = await balance();
    const { body } = await post('/memory/ingest/batch', {
      memories: [
        { text: 'The caf\u00e9 opens at seven.', title: 'Caf\u00e9', metadata: { a: 1, b: { c: 2, d: 3 } } },
        { text: 'The cafe\u0301 opens at\0 seven.', title: 'Cafe\u0301', metadata: { b: { d: 3, c: 2 }, a: 1 } },
      ],
    });
    const [first, second] = body.data.results;
    expect(body.data.total_queued).toBe(1);
    expect(second).toMatchObject({ id: first.id, deduplicated_into: first.id });
    expect(before - (await balance())).toBe(2_400n);
  });

  it('accepts a hundred memories, and rejects all when one is invalid', async () => {
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

  it('stores nothing when the wallet does not cover the sum, and names the shortfall', async () => {
    const poor = await fixture.addWorkspace();
    await fund(fixture, poor, 1_000n);
    const memories = [{ text: '123456' }, { text: '1234567' }];
    const { status, body } = await post('/memory/ingest/batch', { memories }, poor);
    expect([status, body.details]).toEqual([402, { required: 0.0000013, available: 0.000001, shortfall: 0.0000003 }]);
    expect((await get('/memory', poor)).body.data.pagination.total).toBe(0);
  });

  it('stores what is free although the wallet is overdrawn', async () => {
    const { sql, now } = fixture;
    const { workspaceId } = owner;
    const repeated = { text: 'The harbour opens at seven.' };
    await post('/memory/ingest', repeated);
    await overdraw(fixture, owner);
    expect((await post('/memory/ingest', repeated)).body.data).toMatchObject({ total_queued: 0 });
    expect((await post('/memory/ingest', { text: 'Another text.' })).status).toBe(402);
    await setPrice(sql, { scope: { workspaceId }, item: 'memory', value: 0n, now: now.current });
    expect((await post('/memory/ingest', { text: 'Another text.' })).body.data.total_queued).toBe(1);
    expect((await post('/memory/search', { query: 'harbour' })).status).toBe(200);
    expect((await post('/v1/embeddings', { input: 'A text.' })).status).toBe(200);
  });

  it('answers with the first refusal when every memory is refused', async () => {
    const viewer = await fixture.addMemberWith('viewer', owner.workspaceId);
    const { status, body } = await post('/memory/ingest/batch', { memories: [{ text: 'a' }, { text: 'b' }] }, viewer);
    expect([status, body.code]).toEqual([403, 'POLICY_DENY']);
  });

  it('applies its own body limit', async () => {
    const memories = Array.from({ length: 30 }, () => ({ text: 'x'.repeat(90_000) }));
    const { status, body } = await post('/memory/ingest/batch', { memories });
    expect([status, body.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    expect(body.message).toContain('2048 KiB');
  });
});
