import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { getDelivery, insertDelivery, recordAttempt } from '../../storage/queries/deliveries.ts';
import { createWebhook, deleteWebhook, updateWebhook } from '../../storage/queries/webhooks.ts';
import { later, NOW, seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { finish, initiate, seedCall } from './seed-calls.ts';

let fixture: HttpFixture;
let admin: Member;
let writer: Member;
let viewer: Member;
let stranger: Member;
let workspaceId: string;

beforeAll(async () => {
  fixture = await createHttpFixture();
  workspaceId = (await seedWorkspace(fixture.sql)).workspace.id;
  admin = await fixture.addMemberWith('admin', workspaceId);
  writer = await fixture.addMemberWith('member', workspaceId);
  viewer = await fixture.addMemberWith('viewer', workspaceId);
  stranger = await fixture.addMemberWith('owner', (await seedWorkspace(fixture.sql)).workspace.id);
  await seedTrunk(fixture.sql, { workspaceId, channels: 20 });
});
afterAll(() => fixture[Symbol.asyncDispose]());

/** A call with a callback whose `call.initiated` went to a webhook. */
async function seedNotifiedCall() {
  const { sql } = fixture;
  const webhook = await createWebhook(sql, {
    ...{ id: randomUUID(), workspaceId, url: 'https://bob:pw@hooks.example.com/in?token=hidden#part', now: NOW },
    ...{ events: ['call.initiated' as const], secretEncrypted: Buffer.of(1) },
  });
  const { callId } = await seedCall(fixture, { by: writer, referenceId: `told-${randomUUID()}` });
  await initiate(fixture, callId);
  const callback = await insertDelivery(
    sql,
    { workspaceId, callId, eventSequence: 3, event: 'call.completed', eventId: 'evt_1' },
    {
      ...{ id: randomUUID(), url: 'https://calls.example.com/cb/%3Cb%3E?key=hidden', body: '{"a":1}' },
      ...{ secretEncrypted: Buffer.of(7), nextAttemptAt: later(5_000), createdAt: later(5_000) },
    },
  );
  return { callId, callback, webhook };
}

async function fail(deliveryId: string): Promise<void> {
  const attempt = { deliveryId, httpStatus: 503, error: 'status_not_2xx', startedAt: later(5_000), durationMs: 84 };
  await recordAttempt(fixture.sql, { ...attempt, outcome: { kind: 'failed' } });
}

const list = (callId: string, as: Member, query = '') =>
  fixture.call('GET', `/dialer/click2call/${callId}/deliveries${query}`, { as });
const replay = (callId: string, id: string, as: Member) =>
  fixture.call('POST', `/dialer/click2call/${callId}/deliveries/${id}/replay`, { as });

describe('deliveries of a call', () => {
  it('lists callback and webhook deliveries with their attempts, without the secrets in their URLs', async () => {
    const { callId, callback, webhook } = await seedNotifiedCall();
    await fail(callback.id);
    const { status, body } = await list(callId, viewer);
    expect(status).toBe(200);
    expect(body.data.pagination).toMatchObject({ total: 2 });
    expect(body.data.deliveries).toMatchObject([
      {
        ...{ id: callback.id, kind: 'callback', subscription_id: null, event: 'call.completed', message_id: 'evt_1' },
        ...{ url: 'https://calls.example.com/cb/%3Cb%3E', status: 'failed', attempts: 1, last_http_status: 503 },
        next_attempt_at: null,
        log: [
          {
            ...{ attempt: 1, http_status: 503, error: 'status_not_2xx', duration_ms: 84 },
            started_at: later(5_000).toISOString(),
          },
        ],
      },
      {
        ...{ kind: 'webhook', subscription_id: webhook.id, event: 'call.initiated', status: 'pending', log: [] },
        ...{ url: 'https://hooks.example.com/in', next_attempt_at: later(100).toISOString() },
      },
    ]);
    for (const hidden of ['hidden', 'bob', 'pw@']) expect(JSON.stringify(body)).not.toContain(hidden);
    const page = await list(callId, viewer, '?page=2&limit=1');
    expect(page.body.data.deliveries).toMatchObject([{ kind: 'webhook' }]);
    await deleteWebhook(fixture.sql, { id: webhook.id, workspaceId, now: NOW });
    expect((await list(callId, viewer)).body.data.deliveries).toMatchObject([{ kind: 'callback' }]);
  });

  it('answers 404 to other workspaces and hostile ids', async () => {
    const { callId, callback } = await seedNotifiedCall();
    await fail(callback.id);
    expect((await list(callId, stranger)).body.code).toBe('CALL_NOT_FOUND');
    expect((await replay(callId, callback.id, stranger)).body.code).toBe('CALL_NOT_FOUND');
    const other = await seedNotifiedCall();
    for (const id of [other.callback.id, randomUUID(), 'x', '%00', "'--"]) {
      expect((await replay(callId, id, writer)).body.code, id).toBe('DELIVERY_NOT_FOUND');
    }
    for (const query of ['?page=0', '?limit=101', '?limit=NaN', '?page=1e99']) {
      expect((await list(callId, viewer, query)).status, query).toBe(400);
    }
  });

  it('deletes the deliveries with the call', async () => {
    const { callId } = await seedNotifiedCall();
    await finish(fixture, callId);
    const { body } = await fixture.call('DELETE', `/dialer/click2call/${callId}`, { as: admin });
    expect(body.data.deleted.deliveries).toBeGreaterThanOrEqual(2);
    expect(await fixture.sql`select 1 from deliveries where body like ${`%${callId}%`}`).toHaveLength(0);
  });
});

describe('replay of a delivery of a call', () => {
  it('sends a callback again with the same event id, bytes and secret, once while it is pending', async () => {
    const { callId, callback } = await seedNotifiedCall();
    await fail(callback.id);
    const answers = await Promise.all([1, 2, 3].map(() => replay(callId, callback.id, writer)));
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 202]);
    const ids = new Set(answers.map(({ body }) => body.data.id));
    expect(ids.size).toBe(1);
    const [id] = ids;
    expect(answers[0]?.body.data).toMatchObject({ kind: 'callback', status: 'pending', replay_of: callback.id });
    const { eventId, eventSequence, body, url, secretEncrypted } = callback;
    expect(await getDelivery(fixture.sql, id)).toMatchObject({
      ...{ callId, eventId, eventSequence, body, url, secretEncrypted, attempts: 0 },
    });
    expect(fixture.enqueued).toContain(id);
    await fail(id);
    expect((await replay(callId, id, writer)).body.data.id).not.toBe(id);
  });

  it('attempts a pending delivery now', async () => {
    const { callId, callback } = await seedNotifiedCall();
    const { status, body } = await replay(callId, callback.id, writer);
    expect({ status, id: body.data.id, replayOf: body.data.replay_of }).toEqual({
      ...{ status: 202, id: callback.id, replayOf: null },
    });
    expect((await getDelivery(fixture.sql, callback.id))?.nextAttemptAt).toEqual(fixture.now.current);
  });

  it('rejects the replay to a disabled webhook', async () => {
    const { callId, webhook } = await seedNotifiedCall();
    const deliveryOf = ({ subscription_id }: { subscription_id: string }) => subscription_id === webhook.id;
    const patch = { status: 'disabled' as const };
    await updateWebhook(fixture.sql, { id: webhook.id, workspaceId, patch, now: NOW });
    const failed = (await list(callId, writer)).body.data.deliveries.find(deliveryOf);
    expect((await replay(callId, failed.id, writer)).body.code).toBe('WEBHOOK_DISABLED');
  });

  it('requires a writer, and writes to the audit log', async () => {
    const { callId, callback } = await seedNotifiedCall();
    expect((await replay(callId, callback.id, viewer)).status).toBe(403);
    await replay(callId, callback.id, writer);
    const { body } = await fixture.call('GET', '/audit?action=callback.replayed', { as: admin });
    expect(body.data.entries[0]).toMatchObject({
      target: { type: 'call', id: callId },
      details: { delivery_id: callback.id },
    });
  });
});
