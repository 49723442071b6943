import { randomUUID } from 'node:crypto';
import type postgres from 'postgres';
import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import {
  type DeliveryAttemptRow,
  type DeliveryRow,
  type DeliveryStatus,
  insertDelivery,
  listAttempts,
} from './deliveries.ts';
import { notLater } from './due-times.ts';
import { isUuid } from './identifiers.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';
import { WEBHOOK_EXAMPLES, type WebhookEvent, type WebhookEventData, webhookBody } from './webhook-events.ts';
import { getWebhook, type WebhookKey, type WebhookRow } from './webhooks.ts';

/**
 * Reports an event to a workspace's webhooks: one delivery for each active one that subscribes to it. Call it in the
 * event's transaction. After the commit, pass the returned ids to the deliverer's `enqueue`; after a crash in between,
 * the sweeper finds them. All have the same `webhook-id`. Texts that would make the body 20 kB are cut, see
 * `webhookBody`.
 */
export async function emitWebhookEvent<Event extends WebhookEvent>(
  tx: Tx,
  {
    workspaceId,
    event,
    data,
    now,
    eventId = randomUUID(),
    callId = null,
    subscribers,
  }: {
    workspaceId: string;
    event: Event;
    data: WebhookEventData[Event];
    now: Date;
    eventId?: string;
    /** Call that the event is about: its deliveries are listed and deleted with it. */
    callId?: string | null;
    /** From `subscribersOf`, if read already. */
    subscribers?: readonly WebhookRow[];
  },
): Promise<string[]> {
  const active = subscribers ?? (await subscribersOf(tx, { workspaceId, events: [event] }));
  const webhooks = active.filter(({ events }) => events.includes(event));
  if (webhooks.length === 0) return [];
  const message = { event, eventId, callId, body: webhookBody({ event, data, at: now }), now };
  const ids: string[] = [];
  for (const webhook of webhooks) ids.push((await insertWebhookDelivery(tx, { ...message, webhook })).id);
  return ids;
}

/**
 * Active webhooks that subscribe to any of the events; sent at once. Share lock: disabling a webhook waits for it, and
 * then fails the inserted deliveries.
 */
export async function subscribersOf(
  tx: Tx,
  { workspaceId, events }: { workspaceId: string; events: readonly WebhookEvent[] },
): Promise<WebhookRow[]> {
  if (events.length === 0) return [];
  return await tx<WebhookRow[]>`
    select * from webhook_subscriptions
    where workspace_id = ${workspaceId} and deleted_at is null and status = 'active' and events && ${events}::text[]
    order by id for share`.execute();
}

/**
 * Sends an example event, marked with `data.test`, to one webhook.
 * @throws TandemError `WEBHOOK_NOT_FOUND`, `WEBHOOK_DISABLED`
 */
export async function insertTestDelivery(
  sql: SqlOrTx,
  { event, now, ...key }: WebhookKey & { event: WebhookEvent | null; now: Date },
): Promise<DeliveryRow> {
  return await inTransaction(sql, async (tx) => {
    const webhook = await shareActiveWebhook(tx, key);
    const sent = event ?? webhook.events[0]!;
    const body = webhookBody({ event: sent, data: WEBHOOK_EXAMPLES[sent], at: now, test: true });
    return await insertWebhookDelivery(tx, { webhook, event: sent, eventId: randomUUID(), body, now });
  });
}

/**
 * Sends the same bytes under the same `webhook-id` again, as a new delivery, so that the old one's log stays. A webhook
 * gets it at its current URL. While the delivery or a replay of it is pending, that one is attempted now instead. With
 * `callId`, finds only deliveries of that call, including callbacks.
 * @throws TandemError `DELIVERY_NOT_FOUND`, `WEBHOOK_DISABLED`
 */
export async function replayDelivery(
  sql: SqlOrTx,
  { now, ...key }: { deliveryId: string; workspaceId: string; callId?: string; now: Date },
): Promise<DeliveryRow> {
  return await inTransaction(sql, async (tx) => {
    const old = await findReplayable(tx, key);
    // Lock the webhook before the delivery, as storing an attempt does.
    const webhook =
      old.subscriptionId === null
        ? null
        : await shareActiveWebhook(tx, { id: old.subscriptionId, workspaceId: key.workspaceId });
    // A concurrent replay finds the one inserted first.
    const locked = await tx`select 1 from deliveries where id = ${old.id} for update`;
    if (locked.length === 0) throw deliveryNotFound();
    const hastened = await hastenDelivery(tx, old, now);
    if (hastened !== null) return hastened;
    const { workspaceId, callId, eventSequence, event, eventId, body, secretEncrypted, id } = old;
    if (webhook !== null) {
      const message = { event: event as WebhookEvent, eventId, callId, body, now };
      return await insertWebhookDelivery(tx, { ...message, webhook, replayOf: id });
    }
    return await insertDelivery(
      tx,
      { workspaceId, callId, eventSequence, event, eventId, replayOf: id },
      { id: randomUUID(), url: old.url, body, secretEncrypted, nextAttemptAt: now, createdAt: now },
    );
  });
}

/** Makes the pending delivery of the same event and receiver due now. Null if there is none. */
async function hastenDelivery(tx: Tx, { id, callId, eventId, subscriptionId }: DeliveryRow, now: Date) {
  const [hastened] = await tx<DeliveryRow[]>`
    update deliveries set next_attempt_at = least(next_attempt_at, ${notLater(tx, now)})
    where id = (
      select id from deliveries
      where status = 'pending' and (
        id = ${id} or replay_of = ${id} or (
          call_id = ${callId} and event_id = ${eventId} and subscription_id is not distinct from ${subscriptionId}::uuid))
      order by created_at, id limit 1
    ) and status = 'pending' returning *`;
  return hastened ?? null;
}

export interface LoggedDelivery extends DeliveryRow {
  /** In order. */
  log: DeliveryAttemptRow[];
}

/** Newest first. */
export async function listWebhookDeliveries(
  sql: SqlOrTx,
  { webhookId, status, event }: { webhookId: string; status?: DeliveryStatus | undefined; event?: string | undefined },
  page: Page,
): Promise<PageOf<LoggedDelivery>> {
  const matching = sql`
    subscription_id = ${webhookId}
    ${status === undefined ? sql`` : sql`and status = ${status}`}
    ${event === undefined ? sql`` : sql`and event = ${event}`}`;
  return await logged(sql, matching, page);
}

/** Lists deliveries about a call to its `callback_url` and to existing webhooks, newest first. */
export async function listCallDeliveries(
  sql: SqlOrTx,
  { callId }: { callId: string },
  page: Page,
): Promise<PageOf<LoggedDelivery>> {
  const matching = sql`
    call_id = ${callId} and (
      subscription_id is null or subscription_id in (select id from webhook_subscriptions where deleted_at is null))`;
  return await logged(sql, matching, page);
}

async function logged(
  sql: SqlOrTx,
  matching: postgres.PendingQuery<postgres.Row[]>,
  page: Page,
): Promise<PageOf<LoggedDelivery>> {
  const rows = await sql<DeliveryRow[]>`
    select * from deliveries where ${matching}
    order by created_at desc, id limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`select count(*)::int as total from deliveries where ${matching}`;
  const attempts = await listAttempts(
    sql,
    rows.map(({ id }) => id),
  );
  const withLog = rows.map((row) => ({ ...row, log: attempts.filter(({ deliveryId }) => deliveryId === row.id) }));
  return { rows: withLog, total: count?.total ?? 0 };
}

async function findReplayable(
  tx: Tx,
  { deliveryId, workspaceId, callId }: { deliveryId: string; workspaceId: string; callId?: string },
): Promise<DeliveryRow> {
  const [row] = isUuid(deliveryId)
    ? await tx<DeliveryRow[]>`
        select d.* from deliveries d left join webhook_subscriptions s on s.id = d.subscription_id
        where d.id = ${deliveryId} and d.workspace_id = ${workspaceId}
          and ${callId === undefined ? tx`s.id is not null` : tx`d.call_id = ${callId}`}
          and (s.id is null or s.deleted_at is null)`
    : [];
  if (!row) throw deliveryNotFound();
  return row;
}

function deliveryNotFound(): TandemError {
  return new TandemError('DELIVERY_NOT_FOUND', 'No delivery in this workspace has this id.');
}

/** Share lock, so that the webhook cannot be disabled before the delivery exists. */
async function shareActiveWebhook(tx: Tx, key: WebhookKey): Promise<WebhookRow> {
  if (isUuid(key.id)) await tx`select id from webhook_subscriptions where id = ${key.id} for share`;
  const webhook = await getWebhook(tx, key);
  if (webhook.status === 'disabled') {
    throw new TandemError('WEBHOOK_DISABLED', 'The webhook is disabled. Enable it with status: active.');
  }
  return webhook;
}

interface WebhookDeliveryInput {
  webhook: WebhookRow;
  event: WebhookEvent;
  eventId: string;
  /** Default: not about a call. */
  callId?: string | null;
  body: string;
  now: Date;
  replayOf?: string;
}

async function insertWebhookDelivery(tx: Tx, input: WebhookDeliveryInput): Promise<DeliveryRow> {
  const { webhook, event, eventId, callId = null, body, now, replayOf } = input;
  const subject = {
    workspaceId: webhook.workspaceId,
    callId,
    eventSequence: null,
    event,
    eventId,
    subscriptionId: webhook.id,
    ...(replayOf !== undefined && { replayOf }),
  };
  return await insertDelivery(tx, subject, {
    id: randomUUID(),
    url: webhook.url,
    body,
    secretEncrypted: null,
    nextAttemptAt: now,
    createdAt: now,
  });
}
