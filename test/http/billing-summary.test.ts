import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { charge, refund, topUp } from '../../storage/ledger.ts';
import { walletOf } from '../../storage/queries/billing.ts';
import type { UsageFilters } from '../../storage/queries/usage.ts';
import { USD } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { callWith, sessionOf } from './identity-fixture.ts';

const DAY_MS = 86_400_000;
const CENT = USD / 100n;

let fixture: HttpFixture;
let spender: Member;
/** Days before the fixture's current time. */
const daysAgo = (days: number) => new Date(fixture.now.current.getTime() - days * DAY_MS);

beforeAll(async () => {
  fixture = await createHttpFixture();
  spender = await fixture.addWorkspace();
  await fund(spender, 60);
  await spend('call', 30n, { daysAgo: 5, withKey: true });
  await spend('call', 20n, { daysAgo: 3, withKey: false });
  const mistake = await spend('tts', 40n, { daysAgo: 3, withKey: true });
  await spend('stt', 5n, { daysAgo: 1, withKey: true });
  await spend('llm', 7n, { daysAgo: 45, withKey: true });
  await refund(fixture.sql, {
    ...{ workspaceId: spender.workspaceId, reversesOperationKey: mistake, operationKey: randomUUID() },
    at: daysAgo(2),
  });
  const other = await fixture.addWorkspace();
  await fund(other, 60);
  await spend('call', 99n, { daysAgo: 3, withKey: true }, other);
});
afterAll(() => fixture[Symbol.asyncDispose]());

async function fund({ workspaceId }: Member, days: number): Promise<void> {
  const payment = { paymentType: 'admin_bonus', operationKey: randomUUID(), at: daysAgo(days) } as const;
  await topUp(fixture.sql, { workspaceId, amountNano: 10n * USD, ...payment });
}

async function spend(
  service: NonNullable<UsageFilters['service']>,
  cents: bigint,
  when: { daysAgo: number; withKey: boolean },
  { workspaceId, userId, keyId }: Member = spender,
): Promise<string> {
  const operationKey = randomUUID();
  const cost = { amountNano: cents * CENT, quantity: 1, unit: 'minute', unitPriceNano: CENT };
  const usage = { operation: 'test', resourceId: null, apiKeyId: when.withKey ? keyId : null, userId };
  await charge(fixture.sql, { workspaceId, service, operationKey, ...cost, ...usage, at: daysAgo(when.daysAgo) });
  return operationKey;
}

const summary = async (query = '', as = spender) =>
  (await fixture.call('GET', `/billing/usage-summary${query}`, { as })).body.data;

describe('GET /billing/usage-summary', () => {
  it('sums the last 30 days by product, highest spend first', async () => {
    const { from, to, group_by, total, groups } = await summary();
    expect([from, to, group_by]).toEqual([daysAgo(30).toISOString(), daysAgo(0).toISOString(), 'product']);
    expect(total).toEqual({ amount: 0.55, charged: 0.95, refunded: 0.4, count: 4 });
    expect(groups).toEqual([
      { key: 'call', name: null, amount: 0.5, charged: 0.5, refunded: 0, count: 2 },
      { key: 'stt', name: null, amount: 0.05, charged: 0.05, refunded: 0, count: 1 },
      { key: 'tts', name: null, amount: 0, charged: 0.4, refunded: 0.4, count: 1 },
    ]);
  });

  it("sums by API key with each key's name, and groups requests without a key", async () => {
    const { groups } = await summary('?group_by=api_key');
    expect(groups).toEqual([
      { key: String(spender.keyId), name: 'owner key', amount: 0.35, charged: 0.75, refunded: 0.4, count: 3 },
      { key: null, name: null, amount: 0.2, charged: 0.2, refunded: 0, count: 1 },
    ]);
  });

  it('sums by day in UTC and includes days without usage', async () => {
    const day = (days: number) => daysAgo(days).toISOString().slice(0, 10);
    const { groups } = await summary(`?group_by=day&from=${day(4)}&to=${day(0)}`);
    expect(
      groups.map((group: { key: string; amount: number; count: number }) => [group.key, group.amount, group.count]),
    ).toEqual([
      [day(4), 0, 0],
      [day(3), 0.6, 2],
      [day(2), -0.4, 0],
      [day(1), 0.05, 1],
    ]);
  });

  it('agrees with the ledger', async () => {
    const everything = `from=${daysAgo(61).toISOString()}`;
    const { balanceNano } = await walletOf(fixture.sql, spender.workspaceId);
    const [log] = await fixture.sql<{ nano: bigint }[]>`
      select sum(case when reverses_id is null then result_nano else -result_nano end)::bigint as nano
      from entries where workspace_id = ${spender.workspaceId} and kind in ('charge', 'refund')`;
    for (const groupBy of ['product', 'api_key', 'day']) {
      const { total, groups } = await summary(`?${everything}&group_by=${groupBy}`);
      expect(total.amount).toBe(Number(log!.nano) / 1e9);
      expect(total.amount).toBeCloseTo(10 - Number(balanceNano) / 1e9, 9);
      const amounts = groups.map(({ amount }: { amount: number }) => amount);
      expect(amounts.reduce((sum: number, amount: number) => sum + amount, 0)).toBeCloseTo(total.amount, 9);
    }
  });

  it('includes the start of the period and excludes its end', async () => {
    const [from, to] = [daysAgo(5).toISOString(), daysAgo(3).toISOString()];
    expect((await summary(`?from=${from}&to=${to}`)).total.amount).toBe(0.3);
  });

  it('returns no groups for a workspace without usage', async () => {
    const empty = await fixture.addWorkspace();
    expect(await summary('', empty)).toMatchObject({ total: { amount: 0, count: 0 }, groups: [] });
    expect((await summary('?group_by=day', empty)).groups).toHaveLength(31);
  });

  it.each([
    'from=yesterday',
    'to=2026-02-30',
    'to=0001-01-01',
    'from=2026-01-02&to=2026-01-01',
    'from=2020-01-01',
    'group_by=user',
  ])('rejects %s', async (query) => {
    const { status, body } = await fixture.call('GET', `/billing/usage-summary?${query}`, { as: spender });
    expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED']);
  });

  it('admits only owners, by key or by session', async () => {
    for (const role of ['admin', 'developer', 'viewer'] as const) {
      const as = await fixture.addMemberWith(role, spender.workspaceId);
      expect((await fixture.call('GET', '/billing/usage-summary', { as })).status).toBe(403);
    }
    const url = `/billing/usage-summary?workspace_id=${spender.workspaceId}`;
    const { body } = await callWith(fixture, await sessionOf(fixture, spender), ['GET', url]);
    expect(body.data.total.amount).toBe(0.55);
  });
});
