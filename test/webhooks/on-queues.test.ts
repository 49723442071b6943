import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../runtime/clock.ts';
import { openJobs } from '../../storage/jobs.ts';
import { getDelivery } from '../../storage/queries/deliveries.ts';
import { openTestNamespace, REDIS_URL, redisIsReachable } from '../storage/test-redis.ts';
import { createWebhookFixture, verify, type WebhookFixture } from './webhook-fixture.ts';

const redisUp = await redisIsReachable();

describe('webhooks on BullMQ over Postgres', () => deliversOn());
describe.skipIf(!redisUp)('webhooks on BullMQ over Redis', () => deliversOn(REDIS_URL));

function deliversOn(redisUrl?: string): void {
  let fixture: WebhookFixture;
  beforeEach(async () => {
    fixture = await createWebhookFixture();
  });
  afterEach(() => fixture[Symbol.asyncDispose]());

  test('an emitted and enqueued event arrives signed, without a sweep', async () => {
    const { sql, databaseUrl, desk, by } = fixture;
    await using namespace = redisUrl === undefined ? null : openTestNamespace();
    const queue = redisUrl !== undefined && namespace ? { redisUrl, namespace: namespace.name } : {};
    const jobs = await openJobs({ databaseUrl, ...queue });
    const recorded = Promise.withResolvers<void>();
    const deliverer = fixture.openDeliverer({
      jobs: await jobs.open('deliveries'),
      clock: systemClock,
      sweepIntervalMs: 3_600_000,
      logger: { info: () => recorded.resolve(), warn: () => {}, error: () => {} },
    });
    await deliverer.start();
    const receiver = await fixture.openReceiver();
    const { webhook, secret } = await fixture.subscribe(receiver.url);
    const delivery = await desk.test({ id: webhook.id, event: null, by });
    await deliverer.enqueue(delivery.id);
    expect(verify(await receiver.next(), secret)).toMatchObject({ event: 'stt.failed', data: { test: true } });
    await recorded.promise;
    expect(await getDelivery(sql, delivery.id)).toMatchObject({ status: 'delivered', attempts: 1 });
    await deliverer.close();
    await jobs.close();
  });
}
