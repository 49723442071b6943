import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import type { Resolve } from '../../actors/callbacks/callback-url.ts';
import { createDeliverer, type Deliverer, type DelivererOptions } from '../../actors/callbacks/deliverer.ts';
import { createDeliveryStore } from '../../actors/callbacks/delivery-store.ts';
import { parseCidrs } from '../../actors/callbacks/public-address.ts';
import { createWebhookDesk } from '../../actors/webhooks/webhook-desk.actor.ts';
import type { Caller, WebhookDesk } from '../../actors/webhooks/webhook-desk.ts';
import type { Sql } from '../../storage/database.ts';
import { emitWebhookEvent } from '../../storage/queries/webhook-deliveries.ts';
import type { WebhookEvent } from '../../storage/queries/webhook-events.ts';
import type { WebhookRow } from '../../storage/queries/webhooks.ts';
import { createSecretBox, type SecretBox } from '../../storage/secrets.ts';
import { createTestClock, type TestClock } from '../actors/fakes.ts';
import { createMemoryJobs, type MemoryJobs } from '../callbacks/delivery-fakes.ts';
import { seedWorkspace } from '../storage/seed.ts';
import { createTestDatabase } from '../storage/test-database.ts';

export interface Received {
  headers: Record<string, string>;
  body: string;
  response: http.ServerResponse;
}

export interface Receiver {
  url: string;
  requests: Received[];
  next(): Promise<Received>;
}

/** Webhooks and their deliverer on a separate database, with a manual clock; loopback is allowed. */
export interface WebhookFixture extends AsyncDisposable {
  sql: Sql;
  databaseUrl: string;
  masterKey: Buffer;
  secrets: SecretBox;
  clock: TestClock;
  jobs: MemoryJobs;
  deliverer: Deliverer;
  desk: WebhookDesk;
  by: Caller;
  logs: { fields: Record<string, unknown>; message: string }[];
  openDeliverer(changes?: Partial<DelivererOptions>): Deliverer;
  openReceiver(respond?: (request: Received, count: number) => void): Promise<Receiver>;
  /** Creates a webhook, by default for `stt.failed`, and returns it with its secret. */
  subscribe(url: string, options?: { events?: WebhookEvent[]; secret?: string }): Promise<Subscribed>;
  emit(id?: string): Promise<string[]>;
}

export interface Subscribed {
  webhook: WebhookRow;
  secret: string;
}

export async function createWebhookFixture({ resolve }: { resolve?: Resolve } = {}): Promise<WebhookFixture> {
  const database = await createTestDatabase();
  const { sql } = database;
  const { workspace, user } = await seedWorkspace(sql);
  const by = { workspaceId: workspace.id, userId: user.id, apiKeyId: null, requestId: 'request-1' };
  const masterKey = randomBytes(32);
  const secrets = createSecretBox(masterKey);
  // In the past, because nothing is due before the database's clock says so.
  const clock = createTestClock();
  const jobs = createMemoryJobs(clock);
  const logs: WebhookFixture['logs'] = [];
  const cleanUps: (() => Promise<unknown> | unknown)[] = [];
  const log = (fields: object, message: string) => void logs.push({ fields: { ...fields }, message });
  const allowCidrs = parseCidrs(['127.0.0.0/8']);
  const lookUp = resolve && { resolve };

  function openDeliverer(changes: Partial<DelivererOptions> = {}): Deliverer {
    const deliverer = createDeliverer({
      store: createDeliveryStore(sql),
      jobs,
      secrets,
      allowCidrs,
      clock,
      random: () => 0,
      logger: { info: log, warn: log, error: log },
      ...lookUp,
      ...changes,
    });
    cleanUps.push(() => deliverer.close({ drainMs: 0 }));
    return deliverer;
  }

  const deliverer = openDeliverer();
  const now = () => new Date(clock.now());
  const desk = createWebhookDesk({ sql, secrets, deliverer, allowCidrs, now, ...lookUp });

  return {
    sql,
    databaseUrl: database.url,
    masterKey,
    secrets,
    clock,
    jobs,
    deliverer,
    desk,
    by,
    logs,
    openDeliverer,

    async openReceiver(respond = ({ response }) => void response.end()) {
      const requests: Received[] = [];
      const unread: Received[] = [];
      const readers: ((request: Received) => void)[] = [];
      const server = http.createServer(async (request, response) => {
        let body = '';
        for await (const chunk of request.setEncoding('utf8')) body += chunk;
        const received = { headers: request.headers as Record<string, string>, body, response };
        requests.push(received);
        respond(received, requests.length);
        const reader = readers.shift();
        if (reader) reader(received);
        else unread.push(received);
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      cleanUps.push(() => {
        server.closeAllConnections();
        server.close();
      });
      return {
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
        requests,
        async next() {
          return unread.shift() ?? (await new Promise<Received>((read) => readers.push(read)));
        },
      };
    },

    async subscribe(url, { events = ['stt.failed' as const], secret } = {}) {
      const created = await desk.create({ url, events, secret: secret ?? null, by });
      return { webhook: created.webhook, secret: secret ?? created.mintedSecret! };
    },

    async emit(id = 'stt_1') {
      const data = { id, error: 'RECOGNITION_FAILED' };
      const event = { workspaceId: by.workspaceId, event: 'stt.failed' as const, data, now: now() };
      return await sql.begin((tx) => emitWebhookEvent(tx, event));
    },

    async [Symbol.asyncDispose]() {
      for (const cleanUp of cleanUps.reverse()) await cleanUp();
      await database.drop();
    },
  };
}

/** Verifies a request with the standardwebhooks library. @throws its error when verification fails. */
export function verify({ body, headers }: Received, secret: string): unknown {
  return new Webhook(secret, secret.startsWith('whsec_') ? {} : { format: 'raw' }).verify(body, headers);
}
