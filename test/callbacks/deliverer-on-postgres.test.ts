import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { DelivererOptions } from '../../actors/callbacks/deliverer.ts';
import { createDeliverer } from '../../actors/callbacks/deliverer.ts';
import { createDeliveryStore } from '../../actors/callbacks/delivery-store.ts';
import { parseCidrs } from '../../actors/callbacks/public-address.ts';
import { systemClock } from '../../runtime/clock.ts';
import { type JobQueue, type Jobs, openJobs } from '../../storage/jobs.ts';
import { getDelivery, insertDelivery, listAttempts } from '../../storage/queries/deliveries.ts';
import { callbackSecretContext } from '../../storage/secret-contexts.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';

const SECRET = 'a-secret-of-enough-characters';
const workspaceId = randomUUID();
const masterKey = randomBytes(32);
const secrets = createSecretBox(masterKey);
let database: TestDatabase;
let jobs: Jobs;
let queue: JobQueue;

beforeAll(async () => {
  database = await createTestDatabase();
  jobs = await openJobs({ databaseUrl: database.url });
  queue = await jobs.open('deliveries');
  const { sql } = database;
  const [user] = await sql<{ id: number }[]>`
    insert into users (email, created_at) values ('owner@example.com', now()) returning id`;
  await sql`
    insert into workspaces (id, name, owner_user_id, created_at)
    values (${workspaceId}, 'test', ${user?.id ?? 0}, now())`;
});
afterAll(async () => {
  await jobs?.close();
  await database?.drop();
});

const cleanUps: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

interface Received {
  webhookId: string;
  headers: Record<string, string>;
  body: string;
  response: http.ServerResponse;
}

async function openReceiver(respond: (request: Received, count: number) => void) {
  const requests: Received[] = [];
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const headers = request.headers as Record<string, string>;
    const received = { webhookId: headers['webhook-id'] ?? '', headers, body, response };
    requests.push(received);
    respond(received, requests.length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUps.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, requests };
}

/** A deliverer; `recorded` waits until an attempt is stored. */
function openDeliverer(changes: Partial<DelivererOptions> = {}) {
  const recorded = new Map<string, PromiseWithResolvers<void>>();
  const after = (id: string) => {
    const existing = recorded.get(id) ?? Promise.withResolvers<void>();
    recorded.set(id, existing);
    return existing;
  };
  const log = (fields: object) => {
    if ('attempt' in fields && 'deliveryId' in fields) after(String(fields.deliveryId)).resolve();
  };
  const deliverer = createDeliverer({
    store: createDeliveryStore(database.sql),
    jobs: queue,
    secrets,
    allowCidrs: parseCidrs(['127.0.0.0/8']),
    logger: { info: log, warn: log, error: log },
    ...changes,
  });
  cleanUps.push(() => deliverer.close({ drainMs: 0 }));
  return { deliverer, recorded: (id: string) => after(id).promise };
}

async function insert(url: string, now = new Date()): Promise<string> {
  const id = randomUUID();
  const subject = { workspaceId, callId: null, eventSequence: null, event: 'call.completed', eventId: randomUUID() };
  await insertDelivery(database.sql, subject, {
    id,
    url,
    body: JSON.stringify({ event: 'call.completed', id, text: 'नमस्ते' }),
    secretEncrypted: secrets.seal(SECRET, callbackSecretContext(workspaceId)),
    nextAttemptAt: now,
    createdAt: now,
  });
  return id;
}

test('a job starts a delivery, whose signature verifies and whose attempt is stored', async () => {
  const receiver = await openReceiver(({ response }) => response.end());
  const { deliverer, recorded } = openDeliverer({ sweepIntervalMs: 3_600_000 });
  await deliverer.start();
  const id = await insert(receiver.url);
  await deliverer.enqueue(id);
  await recorded(id);
  const row = await getDelivery(database.sql, id);
  expect(row).toMatchObject({ status: 'delivered', attempts: 1, lastHttpStatus: 200, leasedUntil: null });
  expect(await listAttempts(database.sql, [id])).toMatchObject([{ attempt: 1, httpStatus: 200, error: null }]);
  const [request] = receiver.requests;
  expect(request?.body).toBe(row?.body);
  expect(new Webhook(SECRET, { format: 'raw' }).verify(request?.body ?? '', request?.headers ?? {})).toMatchObject({
    id,
  });
});

test('a failed attempt is due again after 5 s, and a sweep replaces its lost job', async () => {
  const receiver = await openReceiver(({ response }, count) => response.writeHead(count === 1 ? 503 : 200).end());
  const delays: number[] = [];
  const forgetful = {
    work: queue.work,
    add: async (_id: string, { delayMs }: { delayMs: number }) => void delays.push(delayMs),
  };
  // Never ahead of the database's clock, by which nothing would be due yet.
  let behindMs = 60_000;
  const clock = { ...systemClock, now: () => Date.now() - behindMs };
  const { deliverer } = openDeliverer({ jobs: forgetful, clock, random: () => 0 });
  const id = await insert(receiver.url, new Date(clock.now()));
  await deliverer.sweep();
  const [attempt] = await listAttempts(database.sql, [id]);
  expect(attempt).toMatchObject({ attempt: 1, httpStatus: 503, error: 'status_not_2xx' });
  const row = await getDelivery(database.sql, id);
  // Start and duration are both rounded to milliseconds.
  const endedMs = Number(attempt?.startedAt) + Number(attempt?.durationMs) + 1;
  expect(Number(row?.nextAttemptAt) - Number(attempt?.startedAt)).toBeGreaterThanOrEqual(5_000);
  expect(Number(row?.nextAttemptAt)).toBeLessThanOrEqual(endedMs + 5_000);
  expect(delays).toHaveLength(1);
  behindMs -= 6_000;
  await deliverer.sweep();
  expect(await getDelivery(database.sql, id)).toMatchObject({ status: 'delivered', attempts: 2 });
  expect(receiver.requests[1]?.webhookId).toBe(receiver.requests[0]?.webhookId);
});

test('several deliverers on one table send each delivery once', async () => {
  const receiver = await openReceiver(({ response }) => response.end());
  const ids = await Promise.all(Array.from({ length: 20 }, () => insert(receiver.url)));
  const deliverers = [1, 2, 3].map(() => openDeliverer({ perLane: 50 }).deliverer);
  await Promise.all(deliverers.map((deliverer) => deliverer.sweep()));
  const seen = receiver.requests.map(({ body }) => JSON.parse(body).id).sort();
  expect(seen).toEqual([...ids].sort());
});

test('an aborted attempt releases its lease', async () => {
  const arrived = Promise.withResolvers<void>();
  const receiver = await openReceiver(() => arrived.resolve());
  const { deliverer } = openDeliverer();
  const id = await insert(receiver.url);
  const swept = deliverer.sweep();
  await arrived.promise;
  await Promise.all([deliverer.close({ drainMs: 0 }), swept]);
  expect(await getDelivery(database.sql, id)).toMatchObject({ status: 'pending', attempts: 0, leasedUntil: null });
  await database.sql`delete from deliveries where id = ${id}`;
});

test('the next process repeats an attempt interrupted by kill -9 with the same id', async () => {
  const first = Promise.withResolvers<Received>();
  const receiver = await openReceiver((request, count) =>
    count === 1 ? first.resolve(request) : request.response.end(),
  );
  const id = await insert(receiver.url);
  const script = fileURLToPath(new URL('./deliverer-process.ts', import.meta.url));
  const child = spawn(process.execPath, [script, database.url, masterKey.toString('hex')], { stdio: 'inherit' });
  const exited = once(child, 'exit');
  const request = await first.promise;
  child.kill('SIGKILL');
  await exited;
  const abandoned = await getDelivery(database.sql, id);
  expect(abandoned).toMatchObject({ status: 'pending', attempts: 0, leasedUntil: expect.any(Date) });

  // A lease ends by the clock of the database too, so let it end there.
  const leasedUntil = new Date(Date.now() - 1_000);
  await database.sql`
    update deliveries set leased_until = ${leasedUntil}, next_attempt_at = ${new Date(0)} where id = ${id}`;
  let nowMs = Number(leasedUntil) - 1;
  const { deliverer } = openDeliverer({ clock: { ...systemClock, now: () => nowMs } });
  await deliverer.sweep();
  expect(receiver.requests).toHaveLength(1);
  nowMs += 1;
  await deliverer.sweep();
  expect(await getDelivery(database.sql, id)).toMatchObject({ status: 'delivered', attempts: 1 });
  expect(receiver.requests[1]).toMatchObject({ webhookId: request.webhookId, body: request.body });
});
