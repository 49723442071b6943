import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { charge, hold, refund, topUp } from '../../storage/ledger.ts';
import { setPrice } from '../../storage/price-book.ts';
import type { UsageFilters } from '../../storage/queries/usage.ts';
import { untilTruthy } from '../eventually.ts';
import { lockWaits } from '../storage/lock-waits.ts';
import { seedTrunk, USD } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';

let fixture: HttpFixture;
let origin: string;
beforeAll(async () => {
  fixture = await createHttpFixture();
  origin = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => fixture[Symbol.asyncDispose]());

const MINUTE_MS = 60_000;

/** A workspace with 10 USD and three charges a minute apart, the second one refunded. */
async function spender(): Promise<Member> {
  const { sql, now } = fixture;
  const owner = await fixture.addWorkspace();
  const { workspaceId, keyId: apiKeyId, userId } = owner;
  const at = (minute: number) => new Date(now.current.getTime() + minute * MINUTE_MS);
  await topUp(sql, {
    workspaceId,
    amountNano: 10n * USD,
    paymentType: 'one_time',
    operationKey: randomUUID(),
    description: 'Topped up by the operator',
    at: at(0),
  });
  const taken = (service: NonNullable<UsageFilters['service']>, minute: number) =>
    charge(sql, {
      workspaceId,
      amountNano: 123_400n,
      service,
      operation: 'ingest',
      resourceId: `=cmd|' /C calc'!A0,"${service}"`,
      quantity: 1.234,
      unit: '1000 characters',
      unitPriceNano: 100_000n,
      operationKey: `${workspaceId}:${service}`,
      apiKeyId: service === 'tts' ? apiKeyId : null,
      userId,
      at: at(minute),
    });
  await taken('memory', 1);
  await taken('tts', 2);
  await taken('stt', 3);
  await refund(sql, {
    workspaceId,
    reversesOperationKey: `${workspaceId}:tts`,
    operationKey: `${workspaceId}:tts:refund`,
    at: at(4),
  });
  return owner;
}

describe('billing routes', () => {
  it.each(['wallet', 'transactions', 'usage-logs', 'export.csv'])('/billing/%s admits only owners', async (path) => {
    for (const role of ['admin', 'developer', 'member', 'viewer'] as const) {
      const answer = await fixture.call('GET', `/billing/${path}`, { as: await fixture.addMemberWith(role) });
      expect([answer.status, answer.body.code]).toEqual([403, 'FORBIDDEN']);
    }
    expect((await fixture.call('GET', `/billing/${path}`, { as: null })).status).toBe(401);
    expect((await fixture.call('GET', `/billing/${path}`)).status).toBe(200);
  });
});

describe('GET /billing/wallet', () => {
  it('returns the balance, the held and the available amount', async () => {
    const owner = await fixture.addWorkspace();
    const { workspaceId } = owner;
    const empty = await fixture.call('GET', '/billing/wallet', { as: owner });
    expect(empty.body.data).toEqual({ balance: 0, held: 0, available: 0, currency: 'USD' });
    const money = { workspaceId, amountNano: 5n * USD, operationKey: randomUUID() };
    await topUp(fixture.sql, { ...money, paymentType: 'admin_bonus' });
    await hold(fixture.sql, { workspaceId, amountNano: USD / 2n, minimumNano: 0n, operationKey: randomUUID() });
    const wallet = await fixture.call('GET', '/billing/wallet', { as: owner });
    expect(wallet.body.data).toEqual({ balance: 5, held: 0.5, available: 4.5, currency: 'USD' });
  });
});

describe('GET /billing/transactions', () => {
  it('lists only top-ups, in a pagination shape of its own', async () => {
    const owner = await spender();
    const { status, body } = await fixture.call('GET', '/billing/transactions?limit=5', { as: owner });
    expect(status).toBe(200);
    expect(body.data).toEqual({
      transactions: [
        {
          hash_id: expect.stringMatching(/^txn_[0-9a-f]{32}$/),
          amount: 10,
          currency: 'USD',
          payment_type: 'one_time',
          status: 'succeeded',
          balance_before: 0,
          balance_after: 10,
          description: 'Topped up by the operator',
          created_at: '2026-01-02T03:04:05.678Z',
        },
      ],
      pagination: { current_page: 1, per_page: 5, total_records: 1, total_pages: 1 },
    });
  });

  it('filters by type and status, newest first', async () => {
    const owner = await fixture.addWorkspace();
    const { workspaceId } = owner;
    for (const [index, paymentType] of (['one_time', 'admin_bonus', 'subscription'] as const).entries()) {
      const amountNano = BigInt(index + 1) * USD;
      await topUp(fixture.sql, { workspaceId, amountNano, paymentType, operationKey: randomUUID() });
    }
    const amounts = async (query: string) => {
      const { body } = await fixture.call('GET', `/billing/transactions?${query}`, { as: owner });
      return body.data.transactions.map(({ amount }: { amount: number }) => amount);
    };
    expect(await amounts('')).toEqual([3, 2, 1]);
    expect(await amounts('limit=2&page=2')).toEqual([1]);
    expect(await amounts('payment_type=admin_bonus')).toEqual([2]);
    expect(await amounts('status=succeeded&payment_type=subscription')).toEqual([3]);
    expect(await amounts('status=failed')).toEqual([]);
    const refused = await fixture.call('GET', '/billing/transactions?payment_type=gift', { as: owner });
    expect([refused.status, refused.body.code]).toEqual([400, 'VALIDATION_FAILED']);
  });
});

describe('GET /billing/usage-logs', () => {
  it('returns the service and the balance change of each charge and refund', async () => {
    const owner = await spender();
    const { body } = await fixture.call('GET', '/billing/usage-logs', { as: owner });
    const { entries, pagination } = body.data;
    expect(pagination).toEqual({ page: 1, limit: 20, total: 4, pages: 1 });
    const [given, , taken, first] = entries;
    expect(first).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      service: 'memory',
      operation: 'ingest',
      resource_id: `=cmd|' /C calc'!A0,"memory"`,
      quantity: 1.234,
      unit: '1000 characters',
      unit_price: 0.0001,
      amount: 0.0001234,
      direction: 'debit',
      balance_before: 10,
      balance_after: 9.9998766,
      status: 'succeeded',
      reverses_id: null,
      api_key_id: null,
      user_id: owner.userId,
      created_at: '2026-01-02T03:05:05.678Z',
    });
    expect(taken).toMatchObject({ service: 'tts', direction: 'debit', status: 'refunded', api_key_id: owner.keyId });
    expect(given).toMatchObject({
      service: 'tts',
      direction: 'refund',
      amount: 0.0001234,
      status: 'succeeded',
      reverses_id: taken.id,
      balance_before: 9.9996298,
      balance_after: 9.9997532,
    });
  });

  it('filters by service, status, key and time', async () => {
    const owner = await spender();
    const services = async (query: string) => {
      const { body } = await fixture.call('GET', `/billing/usage-logs?${query}`, { as: owner });
      return body.data.entries.map(({ service }: { service: string }) => service);
    };
    expect(await services('service=stt')).toEqual(['stt']);
    expect(await services('status=refunded')).toEqual(['tts']);
    expect(await services('status=succeeded')).toEqual(['tts', 'stt', 'memory']);
    expect(await services(`api_key_id=${owner.keyId}`)).toEqual(['tts', 'tts']);
    expect(await services('from=2026-01-02T03:06:05.678Z&to=2026-01-02T03:07:05.678Z')).toEqual(['tts']);
    expect(await services('limit=1&page=4')).toEqual(['memory']);
    const refused = await fixture.call('GET', '/billing/usage-logs?from=yesterday&service=x', { as: owner });
    expect([refused.status, refused.body.code]).toEqual([400, 'VALIDATION_FAILED']);
  });

  it('hides the entries of other workspaces', async () => {
    await spender();
    const other = await fixture.addWorkspace();
    expect((await fixture.call('GET', '/billing/usage-logs', { as: other })).body.data.entries).toEqual([]);
    expect((await fixture.call('GET', '/billing/transactions', { as: other })).body.data.transactions).toEqual([]);
  });
});

describe('GET /billing/export.csv', () => {
  it('exports every entry as RFC 4180, oldest first, with cells that no spreadsheet evaluates', async () => {
    const owner = await spender();
    const answer = await fixture.call('GET', '/billing/export.csv', { as: owner });
    expect(answer.headers['content-type']).toBe('text/csv; charset=utf-8; header=present');
    expect(answer.headers['content-disposition']).toBe('attachment; filename="usage-2026-01-02.csv"');
    const lines = answer.raw.toString().split('\r\n');
    expect(lines).toHaveLength(6);
    expect(lines[0]).toBe(
      'id,service,operation,resource_id,quantity,unit,unit_price,amount,direction,balance_before,balance_after,status,reverses_id,api_key_id,user_id,created_at',
    );
    expect(lines[1]).toMatch(
      /^[0-9a-f-]{36},memory,ingest,"'=cmd\|' \/C calc'!A0,""memory""",1\.234,1000 characters,0\.0001,0\.0001234,debit,10,9\.9998766,succeeded,,,\d+,2026-01-02T03:05:05\.678Z$/,
    );
    expect(lines.slice(2, 5).map((line) => line.split(',')[1])).toEqual(['tts', 'stt', 'tts']);
    expect(lines[5]).toBe('');
  });

  it('exports transactions too, and rejects the filters of the other list', async () => {
    const owner = await spender();
    const get = (query: string) => fixture.call('GET', `/billing/export.csv?${query}`, { as: owner });
    const lines = (await get('type=transactions&payment_type=one_time')).raw.toString().split('\r\n');
    expect(lines[1]).toMatch(
      /^txn_[0-9a-f]{32},10,USD,one_time,succeeded,0,10,Topped up by the operator,2026-01-02T03:04:05\.678Z$/,
    );
    const [, ...stt] = (await get('service=stt')).raw.toString().trim().split('\r\n');
    expect(stt).toHaveLength(1);
    for (const query of ['payment_type=one_time', 'type=transactions&service=tts', 'status=pending']) {
      expect((await get(query)).body).toMatchObject({ code: 'VALIDATION_FAILED' });
    }
  });

  it('continues across batches without loss or repetition', async () => {
    const owner = await fixture.addWorkspace();
    const { workspaceId, userId } = owner;
    await topUp(fixture.sql, { workspaceId, amountNano: USD, paymentType: 'one_time', operationKey: randomUUID() });
    const usage = { service: 'llm', operation: 'chat', quantity: 1, unit: 'token', unitPriceNano: 1n } as const;
    const rest = { ...usage, workspaceId, amountNano: 1n, apiKeyId: null, userId };
    await Promise.all(
      Array.from({ length: 1_001 }, (_, index) =>
        charge(fixture.sql, { ...rest, resourceId: `chat-${index}`, operationKey: `${workspaceId}:${index}` }),
      ),
    );
    const { raw } = await fixture.call('GET', '/billing/export.csv', { as: owner });
    const [, ...records] = raw.toString().trim().split('\r\n');
    expect(new Set(records.map((record) => record.split(',')[3])).size).toBe(1_001);
    expect(records).toHaveLength(1_001);
  });

  const endings: [string, (owner: Member) => [method: 'DELETE' | 'PATCH', url: string, body?: object]][] = [
    ['its key is deleted', ({ keyId }) => ['DELETE', `/developer/api/${keyId}`]],
    [
      'its user is no longer an owner',
      ({ workspaceId, userId }) => ['PATCH', `/workspaces/${workspaceId}/members/${userId}`, { role: 'admin' }],
    ],
  ];
  it.each(endings)('breaks off when %s', async (_, requestFor) => {
    const owner = await fixture.addMemberWith('owner');
    const exported = await fixture.sql.begin(async (tx) => {
      // The export waits for its first entries.
      await tx`lock table usage_logs in access exclusive mode`;
      const headers = { authorization: `Bearer ${owner.key}` };
      const response = fetch(`${origin}/billing/export.csv`, { headers }).then((each) => each.text());
      response.catch(() => {});
      await untilTruthy(async () => (await lockWaits(fixture.sql)) > 0, 'the export waits');
      const [method, url, body] = requestFor(owner);
      expect((await fixture.call(method, url, { body })).status).toBe(200);
      return { response };
    });
    await expect(exported.response).rejects.toThrow();
  });
});

describe('GET /billing/prices', () => {
  it("lists the workspace's prices with their source, for any member", async () => {
    const { workspaceId } = await fixture.addWorkspace();
    const viewer = await fixture.addMemberWith('viewer', workspaceId);
    await setPrice(fixture.sql, { scope: { workspaceId }, item: 'stt', value: 7_000_000n, now: new Date() });
    const { prices } = (await fixture.call('GET', '/billing/prices', { as: viewer })).body.data;
    expect(prices).toContainEqual({ item: 'stt', price_usd: 0.007, unit: 'minute', set_for: 'workspace' });
    expect(prices).toContainEqual({ item: 'diarization', percent: 30, unit: 'stt', set_for: 'default' });
    expect(prices).toHaveLength(7);
  });
});

describe('POST /dialer/numbers with a price', () => {
  it('charges the rent and returns three billing headers, or refuses with the shortfall', async () => {
    const owner = await fixture.addWorkspace();
    const { workspaceId } = owner;
    await seedTrunk(fixture.sql, { workspaceId, numbers: ['+911140000101', '+911140000102'] });
    const rent = () => fixture.call('POST', '/dialer/numbers', { as: owner, body: { e164: '+911140000102' } });
    await setPrice(fixture.sql, {
      scope: { workspaceId },
      item: 'number',
      value: 2n * USD,
      now: fixture.now.current,
    });
    const available = await fixture.call('GET', '/dialer/numbers/available', { as: owner });
    expect(available.body.data.numbers[0]).toMatchObject({ e164: '+911140000102', monthly_price_usd: 2 });
    const refused = await rent();
    expect([refused.status, refused.body.code]).toEqual([402, 'INSUFFICIENT_CREDITS']);
    expect(refused.body.details).toEqual({ required: 2, available: 0, shortfall: 2 });
    expect((await fixture.call('GET', '/dialer/numbers/available', { as: owner })).body.data.numbers).toHaveLength(1);

    await topUp(fixture.sql, {
      workspaceId,
      amountNano: 5n * USD,
      paymentType: 'one_time',
      operationKey: randomUUID(),
    });
    const rented = await rent();
    expect(rented.status).toBe(201);
    expect(rented.headers).toMatchObject({ 'x-credit-balance': '3', 'x-credit-charged': '2' });
    const { body } = await fixture.call('GET', '/billing/usage-logs', { as: owner });
    expect(body.data.entries).toMatchObject([
      {
        id: rented.headers['x-billing-tx'],
        service: 'number',
        operation: 'rent',
        resource_id: '+911140000102',
        quantity: 1,
        unit: 'month',
        amount: 2,
        api_key_id: owner.keyId,
        user_id: owner.userId,
      },
    ]);
  });

  it('omits the billing headers when the number is free', async () => {
    const owner = await fixture.addWorkspace();
    await seedTrunk(fixture.sql, { workspaceId: owner.workspaceId, numbers: ['+911140000201', '+911140000202'] });
    const rented = await fixture.call('POST', '/dialer/numbers', { as: owner, body: { e164: '+911140000202' } });
    expect(rented.status).toBe(201);
    expect(rented.headers['x-billing-tx']).toBeUndefined();
  });
});
