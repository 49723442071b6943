import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createDeliveryStore } from '../../actors/callbacks/delivery-store.ts';
import { createLogger } from '../../logging.ts';
import { getDelivery, insertDelivery, listAttempts } from '../../storage/queries/deliveries.ts';
import { callbackSecretContext } from '../../storage/secret-contexts.ts';
import { createWebhookFixture, verify, type WebhookFixture } from './webhook-fixture.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

let fixture: WebhookFixture;
beforeEach(async () => {
  fixture = await createWebhookFixture();
});
afterEach(() => fixture[Symbol.asyncDispose]());

test('an event arrives signed, and the standardwebhooks library verifies its generated secret', async () => {
  const { clock, deliverer, sql } = fixture;
  const receiver = await fixture.openReceiver();
  const { webhook, secret } = await fixture.subscribe(receiver.url);
  const [id = ''] = await fixture.emit('stt_7');
  await deliverer.sweep();
  const [request] = receiver.requests;
  expect(verify(request!, secret)).toEqual({
    event: 'stt.failed',
    timestamp: new Date(clock.now()).toISOString(),
    data: { id: 'stt_7', error: 'RECOGNITION_FAILED' },
  });
  const row = await getDelivery(sql, id);
  expect(row).toMatchObject({ kind: 'webhook', subscriptionId: webhook.id, status: 'delivered', attempts: 1 });
  expect(request?.headers).toMatchObject({ 'webhook-id': row?.eventId, 'content-type': 'application/json' });
  expect(request?.headers).not.toHaveProperty('x-qcall-signature');
});

test('webhooks and callbacks share the schedule 0, 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h', async () => {
  const { clock, deliverer, sql, secrets, by } = fixture;
  const receiver = await fixture.openReceiver(({ response }) => void response.writeHead(500).end());
  await fixture.subscribe(receiver.url);
  const [webhookDelivery = ''] = await fixture.emit();
  const callback = randomUUID();
  const at = new Date(clock.now());
  await insertDelivery(
    sql,
    { workspaceId: by.workspaceId, callId: null, eventSequence: null, event: 'call.completed', eventId: randomUUID() },
    {
      id: callback,
      url: receiver.url,
      body: '{"event":"call.completed"}',
      secretEncrypted: secrets.seal('a-secret-of-enough-characters', callbackSecretContext(by.workspaceId)),
      nextAttemptAt: at,
      createdAt: at,
    },
  );
  await deliverer.sweep();
  for (const waitMs of [
    5 * SECOND_MS,
    5 * MINUTE_MS,
    30 * MINUTE_MS,
    2 * HOUR_MS,
    5 * HOUR_MS,
    10 * HOUR_MS,
    10 * HOUR_MS,
  ]) {
    const made = receiver.requests.length;
    clock.advance(waitMs - 1);
    await deliverer.sweep();
    expect(receiver.requests).toHaveLength(made);
    clock.advance(1);
    await deliverer.sweep();
    expect(receiver.requests).toHaveLength(made + 2);
  }
  for (const id of [webhookDelivery, callback]) {
    expect(await getDelivery(sql, id)).toMatchObject({ status: 'failed', attempts: 8, lastHttpStatus: 500 });
    expect(await listAttempts(sql, [id])).toHaveLength(8);
  }
  clock.advance(30 * DAY_MS);
  await deliverer.sweep();
  expect(receiver.requests).toHaveLength(16);
  const messages = new Set(receiver.requests.map(({ headers, body }) => `${headers['webhook-id']} ${body}`));
  expect(messages.size).toBe(2);
});

test('a job attempts a delivery when due, without a sweep', async () => {
  const { clock, deliverer, jobs, sql } = fixture;
  const receiver = await fixture.openReceiver(
    ({ response }, count) => void response.writeHead(count === 1 ? 503 : 200).end(),
  );
  await fixture.subscribe(receiver.url);
  await deliverer.start();
  const [id = ''] = await fixture.emit();
  await deliverer.enqueue(id);
  await receiver.next();
  await jobs.settled();
  expect(await getDelivery(sql, id)).toMatchObject({ status: 'pending', attempts: 1 });
  clock.advance(5 * SECOND_MS);
  await receiver.next();
  await deliverer.close();
  expect(await getDelivery(sql, id)).toMatchObject({ status: 'delivered', attempts: 2 });
});

describe('rotation of webhook secrets', () => {
  test('signs with old and new secret during the overlap, and with the new one afterwards', async () => {
    const { clock, deliverer, desk, by } = fixture;
    const receiver = await fixture.openReceiver();
    const { webhook, secret: old } = await fixture.subscribe(receiver.url, { secret: 'brought by the user 1' });
    const rotated = await desk.rotateSecret({ id: webhook.id, secret: null, overlapMs: 60 * SECOND_MS, by });
    const fresh = rotated.mintedSecret!;
    expect(rotated.previousSecretExpiresAt.getTime()).toBe(clock.now() + 60 * SECOND_MS);

    clock.advance(60 * SECOND_MS - 1);
    await fixture.emit();
    await deliverer.sweep();
    expect(verify(receiver.requests[0]!, old)).toEqual(verify(receiver.requests[0]!, fresh));

    clock.advance(1);
    await fixture.emit();
    await deliverer.sweep();
    expect(() => verify(receiver.requests[1]!, old)).toThrow('No matching signature');
    expect(verify(receiver.requests[1]!, fresh)).toMatchObject({ event: 'stt.failed' });
  });

  test('keeps the first secret until its own overlap ends when repeated', async () => {
    const { clock, deliverer, desk, by } = fixture;
    const receiver = await fixture.openReceiver();
    const { webhook, secret: first } = await fixture.subscribe(receiver.url);
    const rotate = { id: webhook.id, secret: null, by };
    const second = (await desk.rotateSecret({ ...rotate, overlapMs: 30 * SECOND_MS })).mintedSecret!;
    const third = (await desk.rotateSecret({ ...rotate, overlapMs: 60 * SECOND_MS })).mintedSecret!;
    const verifying = async () => {
      await fixture.emit();
      await deliverer.sweep();
      return [first, second, third].map((secret) => {
        try {
          return Boolean(verify(receiver.requests.at(-1)!, secret));
        } catch {
          return false;
        }
      });
    };
    expect(await verifying()).toEqual([true, true, true]);
    clock.advance(30 * SECOND_MS);
    expect(await verifying()).toEqual([false, true, true]);
    clock.advance(30 * SECOND_MS);
    expect(await verifying()).toEqual([false, false, true]);
  });

  test('forgets the old secret at once without overlap, even for pending deliveries', async () => {
    const { deliverer, desk, by } = fixture;
    const receiver = await fixture.openReceiver();
    const { webhook, secret: old } = await fixture.subscribe(receiver.url);
    await fixture.emit();
    const given = 'brought by the user 2';
    const { mintedSecret } = await desk.rotateSecret({ id: webhook.id.toUpperCase(), secret: given, overlapMs: 0, by });
    expect(mintedSecret).toBeNull();
    await deliverer.sweep();
    expect(verify(receiver.requests[0]!, given)).toMatchObject({ event: 'stt.failed' });
    expect(() => verify(receiver.requests[0]!, old)).toThrow('No matching signature');
  });

  test('signs with five secrets at most', async () => {
    const { deliverer, desk, by } = fixture;
    const receiver = await fixture.openReceiver();
    const { webhook } = await fixture.subscribe(receiver.url);
    for (let i = 0; i < 10; i += 1) {
      await desk.rotateSecret({ id: webhook.id, secret: null, overlapMs: DAY_MS, by });
    }
    await fixture.emit();
    await deliverer.sweep();
    expect(receiver.requests[0]?.headers['webhook-signature']?.split(' ')).toHaveLength(5);
  });
});

test('a changed URL receives the pending deliveries, and starts with a clean record', async () => {
  const { clock, deliverer, desk, by } = fixture;
  const broken = await fixture.openReceiver(({ response }) => void response.writeHead(500).end());
  const sound = await fixture.openReceiver();
  const { webhook } = await fixture.subscribe(broken.url);
  await fixture.emit();
  await deliverer.sweep();
  const moved = await desk.update({ id: webhook.id, patch: { url: sound.url }, by });
  expect(moved.failingSince).toBeNull();
  clock.advance(5 * SECOND_MS);
  await deliverer.sweep();
  expect([broken.requests.length, sound.requests.length]).toEqual([1, 1]);
  expect(sound.requests[0]?.headers['webhook-id']).toBe(broken.requests[0]?.headers['webhook-id']);
});

describe('slow webhook receiver', () => {
  test('delays neither another webhook on the same host nor a call callback', async () => {
    const { deliverer, sql } = fixture;
    const host = await fixture.openReceiver(({ body, response }) => {
      if (JSON.parse(body).data.id === 'quick') response.end();
    });
    const slow = await fixture.subscribe(`${host.url}/slow`);
    for (let i = 0; i < 10; i += 1) await fixture.emit('slow');
    await fixture.desk.update({ id: slow.webhook.id, patch: { events: ['tts.failed'] }, by: fixture.by });
    await fixture.subscribe(`${host.url}/quick`);
    const slowSweep = deliverer.sweep();
    const held = [await host.next(), await host.next(), await host.next(), await host.next()];
    expect(deliverer.dump()).toMatchObject({ running: 4, waiting: 6 });

    const [quick = ''] = await fixture.emit('quick');
    await deliverer.start();
    await deliverer.enqueue(quick);
    await host.next();
    await fixture.jobs.settled();
    expect(await getDelivery(sql, quick)).toMatchObject({ status: 'delivered' });
    expect(host.requests).toHaveLength(5);
    for (const { response } of held) response.end();
    for (let answered = 4; answered < 10; answered += 1) (await host.next()).response.end();
    await slowSweep;
  });

  test('leaves room for others in a sweep, whatever its backlog', async () => {
    const host = await fixture.openReceiver();
    await fixture.subscribe(`${host.url}/backlog`);
    for (let i = 0; i < 5; i += 1) await fixture.emit(`backlog ${i}`);
    await fixture.subscribe(`${host.url}/neighbour`);
    await fixture.emit('both');

    const due = await createDeliveryStore(fixture.sql).due({ now: new Date(fixture.clock.now()), limit: 2 });
    expect(due.map(({ url }) => new URL(url).pathname).sort()).toEqual(['/hook/backlog', '/hook/neighbour']);
  });
});

test('after kill -9 during an attempt, the next process repeats it with the same id and body', async () => {
  const { sql, databaseUrl, masterKey, openDeliverer, clock } = fixture;
  const receiver = await fixture.openReceiver(({ response }, count) => void (count > 1 && response.end()));
  const { secret } = await fixture.subscribe(receiver.url);
  const [id = ''] = await fixture.emit();
  const script = fileURLToPath(new URL('../callbacks/deliverer-process.ts', import.meta.url));
  const child = spawn(process.execPath, [script, databaseUrl, masterKey.toString('hex')], { stdio: 'inherit' });
  const exited = once(child, 'exit');
  const first = await receiver.next();
  child.kill('SIGKILL');
  await exited;
  const abandoned = await getDelivery(sql, id);
  expect(abandoned).toMatchObject({ status: 'pending', attempts: 0, leasedUntil: expect.any(Date) });

  await sql`update deliveries set leased_until = ${new Date(clock.now())} where id = ${id}`;
  await openDeliverer().sweep();
  expect(await getDelivery(sql, id)).toMatchObject({ status: 'delivered', attempts: 1 });
  const [, second] = receiver.requests;
  expect([second?.headers['webhook-id'], second?.body]).toEqual([first.headers['webhook-id'], first.body]);
  expect(verify(second!, secret)).toMatchObject({ event: 'stt.failed' });
});

test('the log contains the reason of a failed attempt', async () => {
  const lines: string[] = [];
  const logger = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
  const deliverer = fixture.openDeliverer({ logger });
  const receiver = await fixture.openReceiver(({ response }) => void response.writeHead(500).end());
  const { webhook } = await fixture.subscribe(receiver.url);
  await fixture.emit();
  await deliverer.sweep();
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    msg: 'delivery attempt failed',
    webhookId: webhook.id,
    httpStatus: 500,
    failure: 'status_not_2xx',
  });
});

test("the log contains neither the URL's path, nor a secret, nor the data", async () => {
  const { deliverer, logs } = fixture;
  const receiver = await fixture.openReceiver(
    ({ response }, count) => void response.writeHead(count === 1 ? 500 : 410).end(),
  );
  const { secret } = await fixture.subscribe(`${receiver.url}?token=in-the-url`);
  await fixture.emit('personal');
  await fixture.emit('personal');
  await deliverer.sweep();
  expect(logs.length).toBeGreaterThan(1);
  for (const sensitive of ['in-the-url', secret, secret.slice(6), 'personal']) {
    expect(JSON.stringify(logs)).not.toContain(sensitive);
  }
});
