import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Deliverer, DelivererOptions } from '../../actors/callbacks/deliverer.ts';
import { createDeliverer } from '../../actors/callbacks/deliverer.ts';
import { parseCidrs } from '../../actors/callbacks/public-address.ts';
import { verifyCallbackSignature } from '../../actors/callbacks/signature.ts';
import { createTestClock, type TestClock } from '../actors/fakes.ts';
import type { MemoryJobs, MemoryStore } from './delivery-fakes.ts';
import { createMemoryJobs, createMemoryStore } from './delivery-fakes.ts';

const SECRET = 'a-secret-of-enough-characters';

interface Received {
  headers: http.IncomingHttpHeaders;
  body: string;
  response: http.ServerResponse;
}

/** A receiver: `next()` waits for a request, `respond` answers automatically. */
async function openReceiver(respond?: (request: Received, count: number) => void) {
  const requests: Received[] = [];
  const unread: Received[] = [];
  const readers: ((request: Received) => void)[] = [];
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const received = { headers: request.headers, body, response };
    requests.push(received);
    respond?.(received, requests.length);
    const reader = readers.shift();
    if (reader) reader(received);
    else unread.push(received);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?token=in-the-url`;
  const next = () => {
    const received = unread.shift();
    return received ? Promise.resolve(received) : new Promise<Received>((resolve) => readers.push(resolve));
  };
  cleanUps.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  return { url, requests, next };
}

const cleanUps: (() => Promise<void>)[] = [];
let clock: TestClock;
let store: MemoryStore;
let jobs: MemoryJobs;
let logs: { level: string; fields: object; message: string }[];

beforeEach(() => {
  clock = createTestClock(new Date());
  store = createMemoryStore();
  jobs = createMemoryJobs(clock);
  logs = [];
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

function openDeliverer(changes: Partial<DelivererOptions> = {}): Deliverer {
  const log = (level: string) => (fields: object, message: string) => void logs.push({ level, fields, message });
  const deliverer = createDeliverer({
    store,
    jobs,
    secrets: { open: () => SECRET },
    allowCidrs: parseCidrs(['127.0.0.0/8']),
    clock,
    random: () => 0,
    logger: { info: log('info'), warn: log('warn'), error: log('error') },
    ...changes,
  });
  cleanUps.push(() => deliverer.close({ drainMs: 0 }).finally(() => undefined));
  return deliverer;
}

const insert = (id: string, url: string, changes: Parameters<MemoryStore['insert']>[0] | object = {}) =>
  store.insert({
    id,
    url,
    body: `{"event":"call.completed","id":"${id}"}`,
    nextAttemptAt: new Date(clock.now()),
    ...changes,
  });

test('an enqueued delivery arrives signed, and its row becomes delivered', async () => {
  const receiver = await openReceiver(({ response }) => response.writeHead(200).end('thanks'));
  const deliverer = openDeliverer();
  await deliverer.start();
  const { body } = insert('d1', receiver.url);
  await deliverer.enqueue('d1');
  const row = await store.until('d1', ({ status }) => status !== 'pending');
  expect(row).toMatchObject({ status: 'delivered', attempts: 1, lastHttpStatus: 200, nextAttemptAt: null });
  const [request] = receiver.requests;
  expect(request?.body).toBe(body);
  expect(request?.headers['content-type']).toBe('application/json');
  expect(request?.headers['webhook-id']).toBe('event-of-d1');
  const header = request?.headers['x-qcall-signature'] as string;
  expect(verifyCallbackSignature({ secret: SECRET, rawBody: body, header })).toEqual({ ok: true });
  const webhook = new Webhook(SECRET, { format: 'raw' });
  expect(webhook.verify(body, request?.headers as Record<string, string>)).toEqual(JSON.parse(body));
});

test("an attempt is signed with the database's time, even if the clock of the node is wrong", async () => {
  const receiver = await openReceiver(({ response }) => response.end());
  const claimedAt = new Date(clock.now() - 3_600_000);
  const claim: MemoryStore['claim'] = async (request) => {
    const claimed = await store.claim(request);
    return claimed && { ...claimed, claimedAt };
  };
  const deliverer = openDeliverer({ store: { ...store, claim } });
  insert('d1', receiver.url);
  await deliverer.sweep();
  const [request] = receiver.requests;
  expect(request?.headers['webhook-timestamp']).toBe(String(Math.floor(claimedAt.getTime() / 1000)));
  const header = request?.headers['x-qcall-signature'] as string;
  const nowS = claimedAt.getTime() / 1000;
  expect(verifyCallbackSignature({ secret: SECRET, rawBody: request!.body, header, nowS })).toEqual({ ok: true });
});

test('a retry repeats body and id byte for byte with a new timestamp, exactly when due', async () => {
  const receiver = await openReceiver(({ response }, count) => response.writeHead(count < 3 ? 500 : 200).end());
  const deliverer = openDeliverer();
  await deliverer.start();
  insert('d1', receiver.url);
  const startedMs = clock.now();
  await deliverer.enqueue('d1');

  const first = await store.until('d1', ({ attempts }) => attempts === 1);
  expect(first).toMatchObject({
    status: 'pending',
    lastHttpStatus: 500,
    lastError: 'status_not_2xx',
    leasedUntil: null,
  });
  expect(first.nextAttemptAt?.getTime()).toBe(startedMs + 5_000);
  await jobs.settled();
  expect(jobs.added).toEqual([
    { deliveryId: 'd1', delayMs: 0, attempt: 1 },
    { deliveryId: 'd1', delayMs: 5_000, attempt: 2 },
  ]);
  clock.advance(4_999);
  await deliverer.sweep();
  expect(receiver.requests).toHaveLength(1);

  clock.advance(1);
  await store.until('d1', ({ attempts }) => attempts === 2);
  await jobs.settled();
  clock.advance(300_000);
  expect(await store.until('d1', ({ attempts }) => attempts === 3)).toMatchObject({ status: 'delivered' });

  expect(new Set(receiver.requests.map(({ body }) => body)).size).toBe(1);
  expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  const timestamps = receiver.requests.map(({ headers }) => Number(headers['webhook-timestamp']));
  expect(timestamps).toEqual([0, 5, 305].map((s) => Math.floor(startedMs / 1000 + s)));
});

describe('attempt of the deliverer', () => {
  test.each([
    [
      'retries after a redirect',
      302,
      { location: 'http://127.0.0.1:1/' },
      { status: 'pending', lastError: 'redirect_refused' },
    ],
    [
      'fails the delivery on 410',
      410,
      {},
      { status: 'failed', lastError: 'disabled_by_receiver', nextAttemptAt: null },
    ],
    ['retries after 404', 404, {}, { status: 'pending', lastError: 'status_not_2xx' }],
  ])('%s', async (_name, status, headers, expected) => {
    const receiver = await openReceiver(({ response }) => response.writeHead(status, headers).end());
    const deliverer = openDeliverer();
    insert('d1', receiver.url);
    await deliverer.sweep();
    expect(store.rows.get('d1')).toMatchObject({ ...expected, attempts: 1, lastHttpStatus: status });
  });

  test('postpones the next attempt by Retry-After, in seconds or as a date', async () => {
    const dateMs = Math.ceil(clock.now() / 1000) * 1000 + 90_000;
    const inSeconds = await openReceiver(({ response }) => response.writeHead(429, { 'retry-after': '60' }).end());
    const asDate = await openReceiver(({ response }) =>
      response.writeHead(503, { 'retry-after': new Date(dateMs).toUTCString() }).end(),
    );
    const deliverer = openDeliverer();
    insert('d1', inSeconds.url);
    insert('d2', asDate.url);
    await deliverer.sweep();
    expect(store.rows.get('d1')?.nextAttemptAt?.getTime()).toBe(clock.now() + 60_000);
    expect(store.rows.get('d2')?.nextAttemptAt?.getTime()).toBe(dateMs);
  });

  test('fails the delivery at the eighth failure', async () => {
    const receiver = await openReceiver(({ response }) => response.writeHead(500).end());
    const deliverer = openDeliverer();
    insert('d1', receiver.url, { attempts: 7 });
    await deliverer.sweep();
    expect(store.rows.get('d1')).toMatchObject({ status: 'failed', attempts: 8, nextAttemptAt: null });
    expect(jobs.added).toEqual([]);
  });

  test('skips a host that became private, and checks it again later', async () => {
    const receiver = await openReceiver();
    const deliverer = openDeliverer({ allowCidrs: [], resolve: async () => ['127.0.0.1'] });
    insert('d1', receiver.url.replace('http://127.0.0.1', 'https://hooks.example.com'));
    await deliverer.sweep();
    expect(store.rows.get('d1')).toMatchObject({ status: 'pending', attempts: 1, lastError: 'url_refused' });
    expect(receiver.requests).toEqual([]);
  });

  test('counts a hanging receiver as a timeout', async () => {
    const receiver = await openReceiver();
    const deliverer = openDeliverer({ timeoutMs: 50 });
    insert('d1', receiver.url);
    await deliverer.sweep();
    expect(store.rows.get('d1')).toMatchObject({ status: 'pending', lastError: 'timeout', lastHttpStatus: null });
  });

  test('counts a secret that cannot be decrypted as a failure, and sends nothing', async () => {
    const receiver = await openReceiver();
    const secrets = {
      open: () => {
        throw new Error('sealed under another key');
      },
    };
    const deliverer = openDeliverer({ secrets });
    insert('d1', receiver.url);
    await deliverer.sweep();
    expect(store.rows.get('d1')).toMatchObject({ status: 'pending', attempts: 1, lastError: 'not_attempted' });
    expect(receiver.requests).toEqual([]);
    expect(logs.map(({ message }) => message)).toContain('delivery could not be attempted');
  });
});

describe('recovery of the deliverer', () => {
  test('attempts a delivery without a job in the next sweep', async () => {
    const receiver = await openReceiver(({ response }) => response.end());
    jobs.forgetful = true;
    const deliverer = openDeliverer({ sweepIntervalMs: 1_000 });
    await deliverer.start();
    clock.advance(0);
    await deliverer.sweep();
    insert('d1', receiver.url);
    await deliverer.enqueue('d1');
    expect(receiver.requests).toEqual([]);
    clock.advance(1_000);
    expect(await store.until('d1', ({ status }) => status === 'delivered')).toMatchObject({ attempts: 1 });
  });

  test('attempts deliveries of an earlier process at the start', async () => {
    const receiver = await openReceiver(({ response }) => response.end());
    insert('d1', receiver.url, { attempts: 2, nextAttemptAt: new Date(clock.now() - 86_400_000) });
    const deliverer = openDeliverer();
    await deliverer.start();
    clock.advance(0);
    expect(await store.until('d1', ({ status }) => status === 'delivered')).toMatchObject({ attempts: 3 });
  });

  test('makes a first attempt at once even if the clock was set back since it was stored', async () => {
    const receiver = await openReceiver(({ response }) => response.end());
    insert('d1', receiver.url, { nextAttemptAt: new Date(clock.now() + 3_600_000) });
    const deliverer = openDeliverer();
    await deliverer.start();
    await deliverer.enqueue('d1');
    expect(await store.until('d1', ({ status }) => status === 'delivered')).toMatchObject({ attempts: 1 });
  });

  test('repeats an attempt of a killed process with the same id after its lease', async () => {
    const receiver = await openReceiver(({ response }) => response.end());
    insert('d1', receiver.url, { leasedUntil: new Date(clock.now() + 30_000) });
    const deliverer = openDeliverer();
    await deliverer.sweep();
    expect(receiver.requests).toEqual([]);
    clock.advance(30_000);
    await deliverer.sweep();
    expect(store.rows.get('d1')).toMatchObject({ status: 'delivered' });
    expect(receiver.requests[0]?.headers['webhook-id']).toBe('event-of-d1');
  });

  test('repeats a delivery when its outcome could not be stored', async () => {
    const receiver = await openReceiver(({ response }) => response.end());
    const record = store.record;
    store.record = async () => {
      store.record = record;
      throw new Error('the database is gone');
    };
    const deliverer = openDeliverer();
    insert('d1', receiver.url);
    await deliverer.sweep();
    expect(store.rows.get('d1')).toMatchObject({ status: 'pending', attempts: 0 });
    clock.advance(30_000);
    await deliverer.sweep();
    expect(store.rows.get('d1')).toMatchObject({ status: 'delivered', attempts: 1 });
    expect(receiver.requests).toHaveLength(2);
  });

  test('attempts the deliveries of a failed sweep in the next one', async () => {
    const receiver = await openReceiver(({ response }) => response.end());
    const due = store.due;
    const failed = Promise.withResolvers<void>();
    store.due = async () => {
      store.due = due;
      failed.resolve();
      throw new Error('the database is gone');
    };
    insert('d1', receiver.url);
    const deliverer = openDeliverer({ sweepIntervalMs: 1_000 });
    await deliverer.start();
    clock.advance(0);
    await failed.promise;
    // Joins the failed query if it is still running.
    await deliverer.sweep();
    clock.advance(1_000);
    expect(await store.until('d1', ({ status }) => status === 'delivered')).toMatchObject({ attempts: 1 });
    expect(logs.map(({ message }) => message)).toContain('delivery sweep failed');
  });

  test('tolerates a queue that rejects jobs', async () => {
    const deliverer = openDeliverer();
    jobs.add = async () => {
      throw new Error('the queue is gone');
    };
    await deliverer.enqueue('d1');
    expect(logs.map(({ message }) => message)).toEqual(['delivery job could not be queued']);
  });
});

describe('concurrency of the deliverer', () => {
  test('allows one attempt per row across deliverers, jobs and sweeps', async () => {
    const receiver = await openReceiver();
    const one = openDeliverer();
    const two = openDeliverer();
    await one.start();
    insert('d1', receiver.url);
    await one.enqueue('d1');
    const sweeps = Promise.all([one.sweep(), one.sweep(), two.sweep()]);
    const request = await receiver.next();
    await two.sweep();
    request.response.end();
    await sweeps;
    await store.until('d1', ({ status }) => status === 'delivered');
    expect(receiver.requests).toHaveLength(1);
    expect(store.attempts).toHaveLength(1);
  });

  test('limits requests per receiver, so that a slow one delays no other', async () => {
    const slow = await openReceiver();
    const quick = await openReceiver(({ response }) => response.end());
    const deliverer = openDeliverer({ perLane: 2, inAll: 3 });
    await deliverer.start();
    const slowIds = ['s1', 's2', 's3', 's4', 's5'];
    for (const id of slowIds) insert(id, slow.url);
    for (const id of slowIds) await deliverer.enqueue(id);
    const held = [await slow.next(), await slow.next()];
    expect(deliverer.dump()).toMatchObject({ running: 2, waiting: 3 });

    for (const id of ['q1', 'q2', 'q3']) insert(id, quick.url);
    for (const id of ['q1', 'q2', 'q3']) await deliverer.enqueue(id);
    await Promise.all(['q1', 'q2', 'q3'].map((id) => store.until(id, ({ status }) => status === 'delivered')));
    expect(slow.requests).toHaveLength(2);

    for (const { response } of held) response.end();
    for (let answered = 2; answered < slowIds.length; answered += 1) (await slow.next()).response.end();
    await Promise.all(slowIds.map((id) => store.until(id, ({ status }) => status === 'delivered')));
    expect(slow.requests).toHaveLength(5);
  });

  test('delays no callbacks of a workspace by those of another one to the same origin', async () => {
    const slow = Promise.withResolvers<void>();
    const receiver = await openReceiver(({ body, response }) => {
      if (body.includes('quick')) response.end();
      else void slow.promise.then(() => response.end());
    });
    const deliverer = openDeliverer({ perLane: 1 });
    insert('slow', receiver.url, { workspaceId: 'w1' });
    insert('quick', receiver.url, { workspaceId: 'w2' });
    const swept = deliverer.sweep();
    await store.until('quick', ({ status }) => status === 'delivered');
    expect(store.rows.get('slow')).toMatchObject({ status: 'pending' });
    slow.resolve();
    await swept;
  });
});

describe('closing deliverer', () => {
  test('lets a running attempt finish within the drain time', async () => {
    const receiver = await openReceiver();
    const deliverer = openDeliverer();
    insert('d1', receiver.url);
    const swept = deliverer.sweep();
    const request = await receiver.next();
    const closed = deliverer.close({ drainMs: 1_000 });
    request.response.end();
    await Promise.all([closed, swept]);
    expect(store.rows.get('d1')).toMatchObject({ status: 'delivered', attempts: 1 });
  });

  test('aborts later attempts, and leaves their rows due and uncounted', async () => {
    const receiver = await openReceiver();
    const deliverer = openDeliverer();
    const before = insert('d1', receiver.url);
    const swept = deliverer.sweep();
    const request = await receiver.next();
    const hungUp = once(request.response, 'close');
    const closed = deliverer.close({ drainMs: 1_000 });
    clock.advance(1_000);
    await Promise.all([closed, swept, hungUp]);
    expect(store.rows.get('d1')).toEqual(before);

    const successor = openDeliverer();
    const again = successor.sweep();
    const repeated = await receiver.next();
    repeated.response.end();
    await again;
    expect(store.rows.get('d1')).toMatchObject({ status: 'delivered' });
    expect(repeated.headers['webhook-id']).toBe(request.headers['webhook-id']);
    expect(repeated.body).toBe(request.body);
  });

  test('leaves queued deliveries in their rows', async () => {
    const receiver = await openReceiver();
    const deliverer = openDeliverer({ perLane: 1 });
    insert('d1', receiver.url);
    insert('d2', receiver.url);
    const swept = deliverer.sweep();
    const request = await receiver.next();
    const closed = deliverer.close({ drainMs: 1_000 });
    request.response.end();
    await Promise.all([closed, swept]);
    expect([...store.rows.values()].map(({ status }) => status).sort()).toEqual(['delivered', 'pending']);
    expect(receiver.requests).toHaveLength(1);
  });

  test('starts no further attempt', async () => {
    const receiver = await openReceiver(({ response }) => response.end());
    const deliverer = openDeliverer();
    await deliverer.start();
    await deliverer.close();
    insert('d1', receiver.url);
    await deliverer.enqueue('d1');
    await deliverer.sweep();
    clock.advance(60_000);
    await jobs.settled();
    expect(receiver.requests).toEqual([]);
    expect(await deliverer.close()).toBeUndefined();
  });
});

test("logs contain neither the URL's query, nor the secret, nor the body", async () => {
  const good = await openReceiver(({ response }) => response.end());
  const bad = await openReceiver(({ response }) => response.writeHead(500).end('+919876543210'));
  const deliverer = openDeliverer();
  insert('d1', good.url, { body: '{"customer_number":"+919876543210"}' });
  insert('d2', bad.url, { body: '{"customer_number":"+919876543210"}' });
  insert('d3', bad.url, { attempts: 7 });
  await deliverer.sweep();
  expect(logs.map(({ message }) => message).sort()).toEqual([
    'delivered',
    'delivery attempt failed',
    'delivery given up',
  ]);
  const text = JSON.stringify(logs);
  for (const sensitive of ['in-the-url', SECRET, '919876543210', 'sealed']) expect(text).not.toContain(sensitive);
});
