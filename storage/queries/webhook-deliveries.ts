import { randomUUID } from 'node:crypto';
import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { type DeliveryAttemptRow, type DeliveryRow, type DeliveryStatus, insertDelivery } from './deliveries.ts';
import { isUuid } from './identifiers.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';
import { WEBHOOK_EXAMPLES, type WebhookEvent, type WebhookEventData, webhookBody } from './webhook-events.ts';
import { getWebhook, type WebhookKey, type WebhookRow } from './webhooks.ts';

/**
 * Tells the webhooks of a workspace that something happened: one delivery for each active one that wants the event.
 * Call it in the transaction that makes it happen, and after the commit hand the returned ids to the deliverer's
 * `enqueue`; a process that dies in between leaves them to the sweeper. All carry the same `webhook-id`. A text that
 * would make the body 20 kB is cut, see `webhookBody`.
 */
export async function emitWebhookEvent<Event extends WebhookEvent>(
  tx: Tx,
  {
    workspaceId,
    event,
    data,
    now,
    eventId = randomUUID(),
  }: { workspaceId: string; event: Event; data: WebhookEventData[Event]; now: Date; eventId?: string },
): Promise<string[]> {
  // Shared lock: whoever disables one of them waits, and then fails what was inserted here.
  const webhooks = await tx<WebhookRow[]>`
    select * from webhook_subscriptions
    where workspace_id = ${workspaceId} and deleted_at is null and status = 'active' and ${event} = any(events)
    order by id for share`;
  if (webhooks.length === 0) return [];
  const message = { event, eventId, body: webhookBody({ event, data, at: now }), now };
  const ids: string[] = [];
  for (const webhook of webhooks) ids.push((await insertWebhookDelivery(tx, { ...message, webhook })).id);
  return ids;
}

/**
 * Sends an example of an event, marked with `data.test`, to one endpoint.
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
 * Sends the same bytes under the same `webhook-id` once more, to where the webhook points now: a new delivery with a
 * schedule of its own, so that the log of the old one stays as it is. One that is still pending is attempted now instead.
 * @throws TandemError `DELIVERY_NOT_FOUND`, `WEBHOOK_DISABLED`
 */
export async function replayDelivery(
  sql: SqlOrTx,
  { deliveryId, workspaceId, now }: { deliveryId: string; workspaceId: string; now: Date },
): Promise<DeliveryRow> {
  return await inTransaction(sql, async (tx) => {
    const old = await findWebhookDelivery(tx, { deliveryId, workspaceId });
    const webhook = await shareActiveWebhook(tx, { id: old.subscriptionId!, workspaceId });
    const [hastened] = await tx<DeliveryRow[]>`
      update deliveries set next_attempt_at = least(next_attempt_at, ${now})
      where id = ${old.id} and status = 'pending' returning *`;
    if (hastened) return hastened;
    const { event, eventId, body, id } = old;
    return await insertWebhookDelivery(tx, {
      webhook,
      event: event as WebhookEvent,
      eventId,
      body,
      now,
      replayOf: id,
    });
  });
}

export interface LoggedDelivery extends DeliveryRow {
  /** In order. */
  log: DeliveryAttemptRow[];
}

/** What was sent to an endpoint and how it went, the newest first. */
export async function listWebhookDeliveries(
  sql: SqlOrTx,
  { webhookId, status, event }: { webhookId: string; status?: DeliveryStatus | undefined; event?: string | undefined },
  page: Page,
): Promise<PageOf<LoggedDelivery>> {
  const matching = sql`
    subscription_id = ${webhookId}
    ${status === undefined ? sql`` : sql`and status = ${status}`}
    ${event === undefined ? sql`` : sql`and event = ${event}`}`;
  const rows = await sql<DeliveryRow[]>`
    select * from deliveries where ${matching}
    order by created_at desc, id limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`select count(*)::int as total from deliveries where ${matching}`;
  const attempts = await sql<DeliveryAttemptRow[]>`
    select * from delivery_attempts where delivery_id = any(${rows.map(({ id }) => id)}) order by delivery_id, attempt`;
  const logged = rows.map((row) => ({ ...row, log: attempts.filter(({ deliveryId }) => deliveryId === row.id) }));
  return { rows: logged, total: count?.total ?? 0 };
}

async function findWebhookDelivery(
  tx: Tx,
  { deliveryId, workspaceId }: { deliveryId: string; workspaceId: string },
): Promise<DeliveryRow> {
  const [row] = isUuid(deliveryId)
    ? await tx<DeliveryRow[]>`
        select d.* from deliveries d join webhook_subscriptions s on s.id = d.subscription_id
        where d.id = ${deliveryId} and d.workspace_id = ${workspaceId} and s.deleted_at is null`
    : [];
  if (!row) throw new TandemError('DELIVERY_NOT_FOUND', 'No delivery in this workspace has this id.');
  return row;
}

/** Locked in share mode, so that it is not disabled before the delivery is there to be failed. */
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
  body: string;
  now: Date;
  replayOf?: string;
}

async function insertWebhookDelivery(tx: Tx, input: WebhookDeliveryInput): Promise<DeliveryRow> {
  const { webhook, event, eventId, body, now, replayOf } = input;
  const subject = {
    workspaceId: webhook.workspaceId,
    callId: null,
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
