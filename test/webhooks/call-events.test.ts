import { expect, it } from 'vitest';
import { createWebhookDesk } from '../../actors/webhooks/webhook-desk.actor.ts';
import { inTransaction } from '../../storage/database.ts';
import { legsAfter } from '../../storage/queries/call-legs.ts';
import { admitCall, type CallMove, settleCall } from '../../storage/queries/calls.ts';
import type { WebhookEvent } from '../../storage/queries/webhook-events.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { recordMoves } from '../storage/record-moves.ts';
import { admission, later, NOW, seedTrunk, seedWorkspace, settlement } from '../storage/seed.ts';
import { createTestDatabase } from '../storage/test-database.ts';

const PROGRESS = [
  { event: 'call.initiated', state: 'initiated' },
  { event: 'agent.ringing', state: 'initiated', sipStatus: 180 },
  { event: 'agent.answered', state: 'initiated', sipStatus: 200 },
  { event: 'customer.dialing', state: 'initiated' },
  { event: 'customer.ringing', state: 'initiated', sipStatus: 180 },
  { event: 'call.bridged', state: 'bridged' },
] as const;
const NOTHING = { leg: null, sipStatus: null, hangupCause: null, detail: null };

async function seedCall(subscriptions: readonly WebhookEvent[][]) {
  const database = await createTestDatabase();
  const { sql } = database;
  const { workspace, user } = await seedWorkspace(sql);
  const workspaceId = workspace.id;
  await seedTrunk(sql, { workspaceId });
  const webhooks = createWebhookDesk({
    ...{ sql, secrets: createSecretBox(Buffer.alloc(32, 1)), allowCidrs: [], now: () => NOW },
    deliverer: { enqueue: async () => {} },
    resolve: async () => ['93.184.215.14'],
  });
  const by = { workspaceId, userId: user.id, apiKeyId: null, requestId: 'r' };
  for (const events of subscriptions) {
    await webhooks.create({ url: 'https://hooks.example.com/', events, secret: null, by });
  }
  const { call } = await admitCall(sql, admission({ workspaceId, referenceId: 'order-7', metadata: { order: 7 } }));
  const moves = PROGRESS.map((move, index) => ({ ...NOTHING, ...move, at: later(index) }));
  const end = settlement(call.callId, {
    ...{ ownerBoot: call.ownerBoot, leg: 'customer', answerTime: later(6), endTime: later(99), talkSeconds: 1 },
    move: { ...NOTHING, event: 'call.completed', state: 'completed', leg: 'customer', at: later(99) },
  });
  const deliveries = async () =>
    (
      await sql<{ id: string; eventId: string; body: string; events: string[] }[]>`
        select d.*, s.events from deliveries d join webhook_subscriptions s on s.id = d.subscription_id`
    ).map((row) => ({ ...row, body: JSON.parse(row.body) }));
  return { sql, call, moves, settlement: end, deliveries, [Symbol.asyncDispose]: () => database.drop() };
}

it('progress events of a call reach the webhooks that list them, with their sequence in the event log', async () => {
  await using seeded = await seedCall([
    ['call.initiated', 'call.ringing', 'call.answered', 'call.bridged', 'call.completed'],
    ['call.ringing'],
    ['stt.completed'],
  ]);
  const { sql, call, moves, settlement: end } = seeded;
  const moved = await recordMoves(sql, call.callId, moves);
  const settled = await settleCall(sql, end);
  const deliveries = await seeded.deliveries();
  const events = await sql`select event, event_id, sequence from call_events order by sequence`;

  const toFirst = deliveries.filter(({ events }) => events.length === 5);
  const bodies = toFirst.map(({ body }) => body).toSorted((a, b) => a.data.sequence - b.data.sequence);
  expect(bodies.map(({ event, data }) => [event, data.leg, data.sequence, data.state])).toEqual([
    ['call.initiated', null, 2, 'initiated'],
    ['call.ringing', 'agent', 3, 'initiated'],
    ['call.answered', 'agent', 4, 'initiated'],
    ['call.ringing', 'customer', 6, 'initiated'],
    ['call.bridged', null, 7, 'bridged'],
    ['call.completed', 'customer', 8, 'completed'],
  ]);
  expect(bodies[1]).toEqual({
    event: 'call.ringing',
    timestamp: later(1).toISOString(),
    data: {
      ...{ call_id: call.callId, reference_id: 'order-7', sequence: 3, state: 'initiated', direction: 'outbound' },
      ...{ leg: 'agent', sip_status: 180, hangup_cause: null, metadata: { order: 7 } },
    },
  });
  expect(deliveries).toHaveLength(6 + 2);
  for (const { body, eventId } of deliveries) {
    expect(events.find(({ sequence }) => sequence === body.data.sequence)?.eventId).toBe(eventId);
  }
  if (!moved || !settled) throw new Error('the call should be live until it is settled');
  expect([...moved.webhookDeliveries, ...settled.webhookDeliveries].toSorted()).toEqual(
    deliveries.map(({ id }) => id).toSorted(),
  );
});

it.each([
  [['customer.ringing']],
  [['customer.early_media']],
  [['customer.ringing', 'customer.early_media']],
  [['customer.ringing'], ['customer.early_media']],
])('a customer with %j rings once', async (...batches) => {
  await using seeded = await seedCall([['call.ringing']]);
  const { sql, call } = seeded;
  let { legs } = call;
  for (const events of [['customer.dialing'], ...batches]) {
    const moves = events.map(
      (event): CallMove => ({ ...NOTHING, event, state: 'initiated', leg: 'customer', at: later(5) }),
    );
    legs = moves.reduce((before, move) => legsAfter(before, move, () => null), legs);
    await recordMoves(sql, call.callId, moves, { legs });
  }
  const sent = (await seeded.deliveries()).map(({ body }) => [body.event, body.data.leg]);
  expect(sent).toEqual([['call.ringing', 'customer']]);
});

it('a rolled-back move emits no event', async () => {
  await using seeded = await seedCall([['call.initiated']]);
  const { sql, call, moves } = seeded;
  const failing = inTransaction(sql, async (tx) => {
    await recordMoves(tx, call.callId, moves);
    throw new Error('the transaction fails');
  });
  await expect(failing).rejects.toThrow('the transaction fails');
  expect(await seeded.deliveries()).toEqual([]);
});
