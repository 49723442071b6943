import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { claimDelivery, type DeliveryRow, getDelivery, recordAttempt } from '../../storage/queries/deliveries.ts';
import {
  emitWebhookEvent,
  insertTestDelivery,
  listWebhookDeliveries,
  replayDelivery,
} from '../../storage/queries/webhook-deliveries.ts';
import type { WebhookEvent } from '../../storage/queries/webhook-events.ts';
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  liveWebhookSecrets,
  MAX_WEBHOOKS_PER_WORKSPACE,
  updateWebhook,
} from '../../storage/queries/webhooks.ts';
import { onEveryServer } from '../storage/every-server.ts';
import { lockWaits } from '../storage/lock-waits.ts';
import { later, NOW, seedWorkspace } from '../storage/seed.ts';

onEveryServer('webhooks and their deliveries', (database) => {
  async function seed() {
    const { sql } = database();
    const workspaceId = (await seedWorkspace(sql)).workspace.id;
    const subscribe = (events: WebhookEvent[], url = 'https://hooks.example.com/') =>
      createWebhook(sql, { id: randomUUID(), workspaceId, url, events, secretEncrypted: Buffer.of(1), now: NOW });
    const emit = (workspace = workspaceId) =>
      sql.begin((tx) =>
        emitWebhookEvent(tx, {
          workspaceId: workspace,
          event: 'stt.failed',
          data: { id: 'stt_1', error: 'RECOGNITION_FAILED' },
          now: NOW,
        }),
      );
    const settle = async (id: string, httpStatus = 500) =>
      await recordAttempt(sql, {
        deliveryId: id,
        httpStatus,
        error: null,
        startedAt: NOW,
        durationMs: 10,
        outcome: { kind: httpStatus === 200 ? 'delivered' : 'failed' },
      });
    return { sql, workspaceId, subscribe, emit, settle };
  }

  it('create a delivery with one event id for each active webhook with the event in the workspace', async () => {
    const { sql, subscribe, emit, workspaceId } = await seed();
    const one = await subscribe(['stt.failed', 'tts.failed'], 'https://one.example.com/');
    const two = await subscribe(['stt.failed'], 'https://two.example.com/');
    await subscribe(['tts.failed']);
    const disabled = await subscribe(['stt.failed']);
    await updateWebhook(sql, { id: disabled.id, workspaceId, patch: { status: 'disabled' }, now: NOW });
    const deleted = await subscribe(['stt.failed']);
    await deleteWebhook(sql, { id: deleted.id, workspaceId, now: NOW });
    const ids = await emit();
    const rows = (await Promise.all(ids.map((id) => getDelivery(sql, id)))) as DeliveryRow[];
    expect(rows.map(({ subscriptionId }) => subscriptionId).sort()).toEqual([one.id, two.id].sort());
    expect(new Set(rows.map(({ eventId }) => eventId)).size).toBe(1);
    expect(new Set(rows.map(({ body }) => body)).size).toBe(1);
    expect(rows[0]).toMatchObject({ kind: 'webhook', status: 'pending', nextAttemptAt: NOW, secretEncrypted: null });
    const other = (await seedWorkspace(sql)).workspace.id;
    expect(await emit(other)).toEqual([]);
  });

  it('disappear when the transaction of the event rolls back', async () => {
    const { sql, subscribe, workspaceId } = await seed();
    const webhook = await subscribe(['stt.failed']);
    const data = { id: 'stt_1', error: 'RECOGNITION_FAILED' };
    const failed = sql.begin(async (tx) => {
      expect(await emitWebhookEvent(tx, { workspaceId, event: 'stt.failed', data, now: NOW })).toHaveLength(1);
      throw new Error('the cause did not happen');
    });
    await expect(failed).rejects.toThrow('the cause did not happen');
    expect((await listWebhookDeliveries(sql, { webhookId: webhook.id }, { page: 1, limit: 10 })).total).toBe(0);
  });

  it('fail when their webhook is disabled while the event is emitted', async () => {
    const { sql, subscribe, workspaceId } = await seed();
    const webhook = await subscribe(['stt.failed']);
    const emitted = Promise.withResolvers<void>();
    const mayCommit = Promise.withResolvers<void>();
    const data = { id: 'stt_1', error: 'RECOGNITION_FAILED' };
    const cause = sql.begin(async (tx) => {
      await emitWebhookEvent(tx, { workspaceId, event: 'stt.failed', data, now: NOW });
      emitted.resolve();
      await mayCommit.promise;
    });
    await emitted.promise;
    let disabled = false;
    const disabling = updateWebhook(sql, {
      id: webhook.id,
      workspaceId,
      patch: { status: 'disabled' },
      now: NOW,
    }).finally(() => {
      disabled = true;
    });
    while (!disabled && (await lockWaits(sql)) === 0);
    mayCommit.resolve();
    await Promise.all([cause, disabling]);
    const { rows } = await listWebhookDeliveries(sql, { webhookId: webhook.id }, { page: 1, limit: 10 });
    expect(rows.map(({ status }) => status)).toEqual(['failed']);
  });

  it('replay a final delivery as a new one with the same id and bytes, to the current URL', async () => {
    const { sql, subscribe, emit, settle, workspaceId } = await seed();
    const webhook = await subscribe(['stt.failed']);
    const [deliveryId = ''] = await emit();
    await settle(deliveryId);
    const old = await getDelivery(sql, deliveryId);
    await updateWebhook(sql, { id: webhook.id, workspaceId, patch: { url: 'https://new.example.com/' }, now: NOW });
    const replayed = await replayDelivery(sql, { deliveryId, workspaceId, now: later(1_000) });
    expect(replayed).toMatchObject({
      eventId: old?.eventId,
      body: old?.body,
      event: 'stt.failed',
      url: 'https://new.example.com/',
      replayOf: deliveryId,
      status: 'pending',
      attempts: 0,
      nextAttemptAt: later(1_000),
    });
    expect(replayed.id).not.toBe(deliveryId);
    expect(await getDelivery(sql, deliveryId)).toEqual(old);
  });

  it('replay a pending delivery by ending its wait', async () => {
    const { sql, subscribe, emit, workspaceId } = await seed();
    await subscribe(['stt.failed']);
    const [deliveryId = ''] = await emit();
    await recordAttempt(sql, {
      deliveryId,
      httpStatus: 503,
      error: null,
      startedAt: NOW,
      durationMs: 10,
      outcome: { kind: 'retry', nextAttemptAt: later(3_600_000) },
    });
    const hastened = await replayDelivery(sql, { deliveryId, workspaceId, now: later(1_000) });
    expect(hastened).toMatchObject({ id: deliveryId, attempts: 1, nextAttemptAt: later(1_000), replayOf: null });
  });

  it('replay a pending delivery now even if the clock of the node is ahead', async () => {
    const { sql, subscribe, emit, workspaceId } = await seed();
    await subscribe(['stt.failed']);
    const [deliveryId = ''] = await emit();
    const startedAt = new Date();
    const inHours = (hours: number) => new Date(startedAt.getTime() + hours * 3_600_000);
    await recordAttempt(sql, {
      ...{ deliveryId, httpStatus: 503, error: null, startedAt, durationMs: 10 },
      outcome: { kind: 'retry', nextAttemptAt: inHours(5) },
    });
    await replayDelivery(sql, { deliveryId, workspaceId, now: inHours(1) });
    expect(await claimDelivery(sql, { id: deliveryId, now: inHours(1), leaseMs: 30_000 })).not.toBeNull();
  });

  it('replay a delivery once while the replay is pending', async () => {
    const { sql, subscribe, emit, settle, workspaceId } = await seed();
    await subscribe(['stt.failed']);
    const [deliveryId = ''] = await emit();
    await settle(deliveryId);
    const replay = (now: Date) => replayDelivery(sql, { deliveryId, workspaceId, now });
    const replays = await Promise.all([1, 2, 3, 4].map((ms) => replay(later(ms))));
    expect(new Set(replays.map(({ id }) => id)).size).toBe(1);
    await settle(replays[0]!.id);
    expect((await replay(later(9))).id).not.toBe(replays[0]!.id);
  });

  it('reject tests and replays for a disabled webhook and from another workspace', async () => {
    const { sql, subscribe, emit, settle, workspaceId } = await seed();
    const webhook = await subscribe(['stt.failed']);
    const [deliveryId = ''] = await emit();
    await settle(deliveryId);
    const other = (await seedWorkspace(sql)).workspace.id;
    const test = { id: webhook.id, event: null, now: NOW };
    await expect(insertTestDelivery(sql, { ...test, workspaceId: other })).rejects.toMatchObject({
      code: 'WEBHOOK_NOT_FOUND',
    });
    await expect(replayDelivery(sql, { deliveryId, workspaceId: other, now: NOW })).rejects.toMatchObject({
      code: 'DELIVERY_NOT_FOUND',
    });
    await updateWebhook(sql, { id: webhook.id, workspaceId, patch: { status: 'disabled' }, now: NOW });
    await expect(insertTestDelivery(sql, { ...test, workspaceId })).rejects.toMatchObject({ code: 'WEBHOOK_DISABLED' });
    await expect(replayDelivery(sql, { deliveryId, workspaceId, now: NOW })).rejects.toMatchObject({
      code: 'WEBHOOK_DISABLED',
    });
  });

  it('delete the secrets and the log with their webhook', async () => {
    const { sql, subscribe, emit, settle, workspaceId } = await seed();
    const webhook = await subscribe(['stt.failed']);
    const [deliveryId = ''] = await emit();
    await settle(deliveryId, 200);
    const [pending = ''] = await emit();
    await deleteWebhook(sql, { id: webhook.id, workspaceId, now: NOW });
    expect(await liveWebhookSecrets(sql, { webhookId: webhook.id, now: NOW })).toEqual([]);
    expect(await getDelivery(sql, pending)).toMatchObject({ status: 'failed', lastError: 'endpoint_disabled' });
    await expect(getWebhook(sql, { id: webhook.id, workspaceId })).rejects.toMatchObject({ code: 'WEBHOOK_NOT_FOUND' });
    await expect(replayDelivery(sql, { deliveryId, workspaceId, now: NOW })).rejects.toMatchObject({
      code: 'DELIVERY_NOT_FOUND',
    });
  });

  it('limit webhooks per workspace, even for simultaneous requests', async () => {
    const { sql, subscribe, workspaceId } = await seed();
    const attempts = await Promise.allSettled(
      Array.from({ length: MAX_WEBHOOKS_PER_WORKSPACE + 3 }, () => subscribe(['stt.failed'])),
    );
    const refused = attempts.filter(({ status }) => status === 'rejected');
    expect(refused).toHaveLength(3);
    expect(refused[0]).toMatchObject({ reason: { code: 'WEBHOOK_LIMIT_REACHED' } });
    const [first] = attempts.flatMap((attempt) => (attempt.status === 'fulfilled' ? [attempt.value] : []));
    await deleteWebhook(sql, { id: first!.id, workspaceId, now: NOW });
    await subscribe(['stt.failed']);
  });
});
