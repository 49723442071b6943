import { expect, it } from 'vitest';
import { readMigrations } from '../../storage/migrate.ts';
import { NOW } from './seed.ts';
import { createTestDatabase } from './test-database.ts';

it('migrations backfill the usage log and payments from earlier charges and top-ups', async () => {
  await using database = await createTestDatabase({ max: 1 });
  const { sql } = database;
  const texts = new Map((await readMigrations()).map(({ name, text }) => [name, text]));
  await sql`create schema earlier`;
  await sql`set search_path to earlier`;
  await sql.unsafe(texts.get('0001_foundation')!);
  await sql.unsafe(EARLIER_DATA);
  await sql.unsafe(texts.get('0003_billing')!);

  expect(
    await sql`select service, operation, resource_id, quantity, unit, unit_price_nano, user_id from usage_logs`,
  ).toEqual([
    {
      service: 'call',
      operation: 'click2call',
      resourceId: 'call-1',
      quantity: '0.500000000',
      unit: 'minute',
      unitPriceNano: 60_000_000n,
      userId: 1,
    },
  ]);
  expect(
    await sql`select payment_type, status, amount_nano, currency, balance_after_nano, created_at from payments`,
  ).toEqual([
    {
      paymentType: 'one_time',
      status: 'succeeded',
      amountNano: 100n,
      currency: 'USD',
      balanceAfterNano: 100n,
      createdAt: NOW,
    },
  ]);
  // The free months of numbers are not charged later.
  const due = await sql`
    select e164, rented_at + make_interval(months => rent_months) > now() as later,
      rented_at + make_interval(months => rent_months - 1) <= now() as soon
    from numbers where workspace_id is not null`;
  expect(due).toEqual([{ e164: '+911140000001', later: true, soon: true }]);
});

it('migrations turn unrented numbers of other workspaces into claims and keep all others', async () => {
  await using database = await createTestDatabase({ max: 1 });
  const { sql } = database;
  await sql`create schema earlier`;
  await sql`set search_path to earlier`;
  for (const { name, text } of await readMigrations()) {
    if (name === '0001_foundation') {
      await sql.unsafe(text);
      await sql.unsafe(EARLIER_DATA);
      await sql.unsafe(TENANT_DATA);
    }
    if (name === '0003_billing' || name === '0023_number_claims') await sql.unsafe(text);
  }
  expect(await sql`select e164, verified_by from numbers order by e164`).toEqual([
    { e164: '+911140000001', verifiedBy: 'operator' },
    { e164: '+911140000002', verifiedBy: 'operator' },
    { e164: '+911140000003', verifiedBy: 'operator' },
    { e164: '+911140000004', verifiedBy: null },
  ]);
});

it('migrations keep the oldest workspace the first one', async () => {
  await using database = await createTestDatabase({ max: 1 });
  const { sql } = database;
  await sql`create schema earlier`;
  await sql`set search_path to earlier`;
  const texts = new Map((await readMigrations()).map(({ name, text }) => [name, text]));
  await sql.unsafe(texts.get('0001_foundation')!);
  await sql`insert into users (email, created_at) values ('owner@example.com', now())`;
  const created = (name: string, at: string) => sql`
    insert into workspaces (id, name, owner_user_id, created_at) values (gen_random_uuid(), ${name}, 1, ${at})`;
  await created('second', '2026-02-01T00:00:00Z');
  await created('first', '2026-01-01T00:00:00Z');
  await sql.unsafe(texts.get('0050_workspace_positions')!);
  await created('third', '2025-01-01T00:00:00Z');

  const names = await sql`select name from workspaces order by position`;
  expect(names.map(({ name }) => name)).toEqual(['first', 'second', 'third']);
});

const WORKSPACE = '00000000-0000-4000-8000-000000000001';
const EARLIER_DATA = `
  insert into users (email, created_at) values ('owner@example.com', now());
  insert into workspaces (id, name, owner_user_id, created_at) values ('${WORKSPACE}', 'Acme', 1, now());
  insert into trunks (id, name, sip_uri, created_at, updated_at) values ('${WORKSPACE}', 'Carrier', 'sip:a', now(), now());
  insert into numbers (e164, trunk_id, workspace_id, status, created_at, rented_at) values
    ('+911140000001', '${WORKSPACE}', '${WORKSPACE}', 'assigned', now(), now() - interval '400 days'),
    ('+911140000002', '${WORKSPACE}', null, 'available', now(), null);
  insert into calls (call_id, workspace_id, reference_id, trunk_id, did, agent_number, customer_number, state, seq,
    talk_seconds, agent_ring_timeout_s, customer_ring_timeout_s, max_duration_s, price_per_minute_nano, placed_via,
    created_by_user_id, owner_node, owner_boot, created_at)
  values ('call-1', '${WORKSPACE}', 'r', '${WORKSPACE}', '+911140000001', '+919810000001', '+919810000002', 'completed',
    4, 30, 30, 45, 3600, 60000000, 'api_key', 1, 'node', 'boot', now());
  insert into entries (id, operation_key, kind, workspace_id, call_id, requested_nano, result_nano, balance_before_nano,
    balance_after_nano, payment_type, created_at)
  values
    (gen_random_uuid(), 't', 'top_up', '${WORKSPACE}', null, 100, 100, 0, 100, 'one_time', '${NOW.toISOString()}'),
    (gen_random_uuid(), 'h', 'hold', '${WORKSPACE}', 'call-1', 50, 50, 100, 100, null, now()),
    (gen_random_uuid(), 's', 'settle', '${WORKSPACE}', 'call-1', 30, 30, 100, 70, null, now());
`;

const TENANT = '00000000-0000-4000-8000-000000000002';
const TENANT_DATA = `
  insert into workspaces (id, name, owner_user_id, created_at) values
    ('${TENANT}', 'Tenant', 1, now() + interval '1 day');
  insert into trunks (id, name, sip_uri, owner_workspace_id, created_at, updated_at) values
    ('${TENANT}', 'Own', 'sip:b', '${TENANT}', now(), now());
  insert into numbers (e164, trunk_id, workspace_id, status, created_at, rented_at) values
    ('+911140000003', '${TENANT}', '${TENANT}', 'assigned', now(), now()),
    ('+911140000004', '${TENANT}', null, 'available', now(), null);
`;
