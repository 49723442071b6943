import { afterAll, beforeAll, expect, it } from 'vitest';
import { startRetention } from '../../actors/retention.ts';
import type { Sql } from '../../storage/database.ts';
import { addSipMessages } from '../../storage/queries/sip-messages.ts';
import { eventually } from '../eventually.ts';
import { NOW } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { createTestClock, createTestLogger } from './fakes.ts';
import { seedCaller } from './seeds.ts';

const DAY_MS = 86_400_000;
const KEPT = { deliveries: 0, call_events: 0, transcripts: 0, sip_messages: 0, quality: 0 };
let database: TestDatabase;
let sql: Sql;

beforeAll(async () => {
  database = await createTestDatabase();
  sql = database.sql;
});
afterAll(() => database.drop());

it('retention deletes each kind of data hourly after its days, and keeps it forever with 0 days', async () => {
  const caller = await seedCaller(sql);
  const { callId } = await caller.admit();
  await sql`update calls set state = 'completed', end_time = ${NOW} where call_id = ${callId}`;
  const message = {
    ...({ callId, leg: 'agent', direction: 'sent', transport: 'udp', sipCallId: 'a', isCut: false } as const),
    ...{ localHost: null, localPort: null, remoteHost: null, remotePort: null, message: Buffer.from('INVITE') },
  };
  const times = Array.from({ length: 1_100 }, () => NOW);
  await addSipMessages(
    sql,
    [...times, new Date(NOW.getTime() + DAY_MS)].map((at) => ({ ...message, at })),
  );
  const clock = createTestClock();
  using retention = startRetention({ sql, days: { ...KEPT, sip_messages: 2 }, clock, logger: createTestLogger() });
  await eventually(() => expect(clock.waiting()).toEqual([3_600_000]));
  const kept = async () => (await sql`select 1 from sip_messages`).length;
  expect(await kept()).toBe(1_101);
  clock.jumpTo(new Date(NOW.getTime() + 2 * DAY_MS + 1));
  await retention.sweep();
  expect(await kept()).toBe(1);
  expect(await sql`select 1 from call_events where call_id = ${callId}`).not.toHaveLength(0);
});
