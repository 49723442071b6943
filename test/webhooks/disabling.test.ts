import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { getDelivery } from '../../storage/queries/deliveries.ts';
import { getWebhook } from '../../storage/queries/webhooks.ts';
import { createWebhookFixture, type WebhookFixture } from './webhook-fixture.ts';

const DAY_MS = 86_400_000;

let fixture: WebhookFixture;
beforeEach(async () => {
  fixture = await createWebhookFixture();
});
afterEach(() => fixture[Symbol.asyncDispose]());

const webhookNow = (id: string) => getWebhook(fixture.sql, { id, workspaceId: fixture.by.workspaceId });

describe('disabling of a webhook', () => {
  test('follows a 410, and fails its pending deliveries', async () => {
    const { clock, deliverer, sql, logs } = fixture;
    const receiver = await fixture.openReceiver(
      ({ response }, count) => void response.writeHead(count === 1 ? 500 : 410).end(),
    );
    const { webhook } = await fixture.subscribe(receiver.url);
    const [first = ''] = await fixture.emit();
    await deliverer.sweep();
    const [second = ''] = await fixture.emit();
    await deliverer.sweep();
    expect(await webhookNow(webhook.id)).toMatchObject({ status: 'disabled', disabledReason: 'gone' });
    expect(await getDelivery(sql, second)).toMatchObject({ status: 'failed', lastError: 'disabled_by_receiver' });
    expect(await getDelivery(sql, first)).toMatchObject({ status: 'failed', lastError: 'endpoint_disabled' });
    expect(logs).toContainEqual(
      expect.objectContaining({ message: 'webhook disabled', fields: expect.objectContaining({ reason: 'gone' }) }),
    );
    expect(await fixture.emit()).toEqual([]);
    clock.advance(DAY_MS);
    await deliverer.sweep();
    expect(receiver.requests).toHaveLength(2);
  });

  test('follows exactly five days of failures, counted from the first', async () => {
    const { clock, deliverer, sql } = fixture;
    const receiver = await fixture.openReceiver(({ response }) => void response.writeHead(500).end());
    const { webhook } = await fixture.subscribe(receiver.url);
    await fixture.emit();
    await deliverer.sweep();
    const failingSince = (await webhookNow(webhook.id)).failingSince;
    expect(failingSince?.getTime()).toBe(clock.now());

    clock.advance(5 * DAY_MS - 1);
    await deliverer.sweep();
    expect(await webhookNow(webhook.id)).toMatchObject({ status: 'active', failingSince });
    clock.advance(1);
    const [last = ''] = await fixture.emit();
    await deliverer.sweep();
    expect(await webhookNow(webhook.id)).toMatchObject({ status: 'disabled', disabledReason: 'failing' });
    expect(await getDelivery(sql, last)).toMatchObject({ status: 'failed', attempts: 1, nextAttemptAt: null });
  });

  test('waits for the five days although the clock of a node is far ahead', async () => {
    const { clock, deliverer, sql } = fixture;
    const receiver = await fixture.openReceiver(({ response }) => void response.writeHead(500).end());
    const { webhook } = await fixture.subscribe(receiver.url);
    await sql`update webhook_subscriptions set failing_since = now() - interval '1 day'`;
    clock.jumpTo(new Date(Date.now() + 6 * DAY_MS));
    await fixture.emit();
    await deliverer.sweep();
    expect(receiver.requests).toHaveLength(1);
    expect(await webhookNow(webhook.id)).toMatchObject({ status: 'active', disabledReason: null });
  });

  test('restarts the count after a success', async () => {
    const { clock, deliverer } = fixture;
    const receiver = await fixture.openReceiver(
      ({ response }, count) => void response.writeHead(count === 2 ? 200 : 500).end(),
    );
    const { webhook } = await fixture.subscribe(receiver.url);
    await fixture.emit();
    await deliverer.sweep();
    clock.advance(4 * DAY_MS);
    await deliverer.sweep();
    expect(await webhookNow(webhook.id)).toMatchObject({ status: 'active', failingSince: null });
    clock.advance(4 * DAY_MS);
    await fixture.emit();
    await deliverer.sweep();
    expect(await webhookNow(webhook.id)).toMatchObject({ status: 'active', failingSince: new Date(clock.now()) });
  });

  test("ignores internal failures, which are not the receiver's fault", async () => {
    const { clock, openDeliverer, sql } = fixture;
    const receiver = await fixture.openReceiver();
    const { webhook } = await fixture.subscribe(receiver.url);
    const [id = ''] = await fixture.emit();
    const open = () => {
      throw new Error('sealed under another key');
    };
    const deliverer = openDeliverer({ secrets: { open } });
    for (let day = 0; day < 7; day += 1) {
      await deliverer.sweep();
      clock.advance(DAY_MS);
    }
    expect(await getDelivery(sql, id)).toMatchObject({ attempts: 7, lastError: 'not_attempted' });
    expect(await webhookNow(webhook.id)).toMatchObject({ status: 'active', failingSince: null });
    expect(receiver.requests).toEqual([]);
  });

  test('by a user ignores the late response to a running attempt', async () => {
    const { deliverer, desk, by, sql } = fixture;
    const receiver = await fixture.openReceiver(() => {});
    const { webhook } = await fixture.subscribe(receiver.url);
    const [id = ''] = await fixture.emit();
    const swept = deliverer.sweep();
    const request = await receiver.next();
    await desk.update({ id: webhook.id, patch: { status: 'disabled' }, by });
    request.response.end();
    await swept;
    expect(await getDelivery(sql, id)).toMatchObject({ status: 'failed', lastError: 'endpoint_disabled' });
    expect(await webhookNow(webhook.id)).toMatchObject({ status: 'disabled', disabledReason: 'by_request' });
  });

  test.each([500, 410])('ignores a late %i of the URL that the webhook had before', async (status) => {
    const { deliverer, desk, by, sql } = fixture;
    const [former, current] = [await fixture.openReceiver(() => {}), await fixture.openReceiver()];
    const { webhook } = await fixture.subscribe(former.url);
    const [id = ''] = await fixture.emit();
    const swept = deliverer.sweep();
    const request = await former.next();
    await desk.update({ id: webhook.id, patch: { url: current.url }, by });
    request.response.writeHead(status).end();
    await swept;
    expect(await webhookNow(webhook.id)).toMatchObject({ status: 'active', failingSince: null });
    fixture.clock.advance(5_000);
    await deliverer.sweep();
    expect(await getDelivery(sql, id)).toMatchObject({ status: 'delivered', attempts: 2 });
    expect(current.requests).toHaveLength(1);
  });

  test('can be reverted, with a clean record', async () => {
    const { deliverer, desk, by } = fixture;
    const receiver = await fixture.openReceiver(
      ({ response }, count) => void response.writeHead(count === 1 ? 410 : 200).end(),
    );
    const { webhook } = await fixture.subscribe(receiver.url);
    await fixture.emit();
    await deliverer.sweep();
    const again = await desk.update({ id: webhook.id, patch: { status: 'active' }, by });
    expect(again).toMatchObject({ status: 'active', disabledReason: null, failingSince: null });
    await fixture.emit();
    await deliverer.sweep();
    expect(receiver.requests).toHaveLength(2);
  });
});
