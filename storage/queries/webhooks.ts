import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { isUuid } from './identifiers.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';
import type { WebhookEvent } from './webhook-events.ts';
import { lockWorkspace } from './workspaces.ts';

export interface WebhookRow {
  id: string;
  workspaceId: string;
  url: string;
  events: WebhookEvent[];
  status: 'active' | 'disabled';
  /** `gone`: it responded with 410. `failing`: only failures for five days. Null while active. */
  disabledReason: 'by_request' | 'gone' | 'failing' | null;
  /** Time of the first failure since the last success. */
  failingSince: Date | null;
  createdAt: Date;
  updatedAt: Date;
  deletedAt: Date | null;
}

/** Each webhook may have attempts in progress, so a workspace with many would displace other workspaces' attempts. */
export const MAX_WEBHOOKS_PER_WORKSPACE = 20;

/** Maximum secrets that sign at once; the oldest is dropped. */
const MAX_LIVE_SECRETS = 5;

export interface CreateWebhookInput {
  id: string;
  workspaceId: string;
  url: string;
  events: readonly WebhookEvent[];
  /** Sealed under `webhookSecretContext(id)`. */
  secretEncrypted: Buffer;
  now: Date;
}

/** @throws TandemError `WEBHOOK_LIMIT_REACHED` */
export async function createWebhook(sql: SqlOrTx, input: CreateWebhookInput): Promise<WebhookRow> {
  const { id, workspaceId, url, events, secretEncrypted, now } = input;
  return await inTransaction(sql, async (tx) => {
    // One at a time per workspace; otherwise two could count the same number.
    await lockWorkspace(tx, workspaceId);
    const [count] = await tx<{ total: number }[]>`
      select count(*)::int as total from webhook_subscriptions
      where workspace_id = ${workspaceId} and deleted_at is null`;
    if ((count?.total ?? 0) >= MAX_WEBHOOKS_PER_WORKSPACE) {
      throw new TandemError(
        'WEBHOOK_LIMIT_REACHED',
        `A workspace has at most ${MAX_WEBHOOKS_PER_WORKSPACE} webhooks. Delete one, or add events to an existing one.`,
      );
    }
    const [row] = await tx<WebhookRow[]>`
      insert into webhook_subscriptions (id, workspace_id, url, events, created_at, updated_at)
      values (${id}, ${workspaceId}, ${url}, ${[...events]}, ${now}, ${now}) returning *`;
    await insertSecret(tx, { webhookId: id, secretEncrypted, now });
    return row!;
  });
}

export async function listWebhooks(
  sql: SqlOrTx,
  { workspaceId }: { workspaceId: string },
  page: Page,
): Promise<PageOf<WebhookRow>> {
  const rows = await sql<WebhookRow[]>`
    select * from webhook_subscriptions where workspace_id = ${workspaceId} and deleted_at is null
    order by created_at, id limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`
    select count(*)::int as total from webhook_subscriptions
    where workspace_id = ${workspaceId} and deleted_at is null`;
  return { rows, total: count?.total ?? 0 };
}

export interface WebhookKey {
  id: string;
  workspaceId: string;
}

/** @throws TandemError `WEBHOOK_NOT_FOUND`, also for one of another workspace */
export async function getWebhook(sql: SqlOrTx, { id, workspaceId }: WebhookKey): Promise<WebhookRow> {
  const [row] = isUuid(id)
    ? await sql<WebhookRow[]>`
        select * from webhook_subscriptions
        where id = ${id} and workspace_id = ${workspaceId} and deleted_at is null`
    : [];
  if (!row) throw new TandemError('WEBHOOK_NOT_FOUND', 'No webhook in this workspace has this id.');
  return row;
}

export async function hasWebhookFor(
  sql: SqlOrTx,
  { workspaceId, event }: { workspaceId: string; event: WebhookEvent },
): Promise<boolean> {
  const [row] = await sql`
    select 1 from webhook_subscriptions
    where workspace_id = ${workspaceId} and deleted_at is null and status = 'active' and ${event} = any(events) limit 1`;
  return row !== undefined;
}

export interface WebhookPatch {
  /** Also applies to deliveries in progress. */
  url?: string | undefined;
  events?: readonly WebhookEvent[] | undefined;
  /** `disabled` fails pending deliveries; `active` clears the reason. */
  status?: WebhookRow['status'] | undefined;
}

/** @throws TandemError `WEBHOOK_NOT_FOUND` */
export async function updateWebhook(
  sql: SqlOrTx,
  { patch, now, ...key }: WebhookKey & { patch: WebhookPatch; now: Date },
): Promise<WebhookRow> {
  const { url, events, status } = patch;
  return await inTransaction(sql, async (tx) => {
    const before = await lockWebhook(tx, key);
    const moves = url !== undefined && url !== before.url;
    const changes = {
      updatedAt: now,
      ...(url !== undefined && { url }),
      ...(events !== undefined && { events: [...events] }),
      ...((moves || status === 'active') && { failingSince: null }),
      ...(status === 'active' && { status, disabledReason: null }),
      ...(status === 'disabled' && before.status === 'active' && { status, disabledReason: 'by_request' as const }),
    };
    const [row] = await tx<WebhookRow[]>`
      update webhook_subscriptions set ${tx(changes)} where id = ${before.id} returning *`;
    if (moves) await tx`update deliveries set url = ${url} where subscription_id = ${before.id} and status = 'pending'`;
    if (status === 'disabled') await failPendingDeliveries(tx, before.id);
    return row!;
  });
}

/** Deletes a webhook and its secrets, and fails its pending deliveries. @throws TandemError `WEBHOOK_NOT_FOUND` */
export async function deleteWebhook(sql: SqlOrTx, { now, ...key }: WebhookKey & { now: Date }): Promise<WebhookRow> {
  return await inTransaction(sql, async (tx) => {
    const webhook = await lockWebhook(tx, key);
    const { id } = webhook;
    await tx`update webhook_subscriptions set deleted_at = ${now}, updated_at = ${now} where id = ${id}`;
    await tx`delete from webhook_secrets where subscription_id = ${id}`;
    await failPendingDeliveries(tx, id);
    return webhook;
  });
}

/**
 * Signs with the new secret from now on. Earlier secrets also sign for `overlapMs`, or the rest of an earlier overlap.
 * @throws TandemError `WEBHOOK_NOT_FOUND`
 */
export async function rotateWebhookSecret(
  sql: SqlOrTx,
  { secretEncrypted, overlapMs, now, ...key }: WebhookKey & { secretEncrypted: Buffer; overlapMs: number; now: Date },
): Promise<{ webhook: WebhookRow; previousSecretExpiresAt: Date }> {
  const previousSecretExpiresAt = new Date(now.getTime() + overlapMs);
  return await inTransaction(sql, async (tx) => {
    const webhook = await lockWebhook(tx, key);
    await tx`
      update webhook_secrets set expires_at = least(expires_at, ${previousSecretExpiresAt})
      where subscription_id = ${webhook.id}`;
    await insertSecret(tx, { webhookId: webhook.id, secretEncrypted, now });
    await tx`
      delete from webhook_secrets where subscription_id = ${webhook.id} and (
        expires_at <= ${now} or id not in (
          select id from webhook_secrets where subscription_id = ${webhook.id} order by id desc limit ${MAX_LIVE_SECRETS}))`;
    return { webhook, previousSecretExpiresAt };
  });
}

/** Returns the sealed secrets that sign now, newest first. */
export async function liveWebhookSecrets(
  sql: SqlOrTx,
  { webhookId, now }: { webhookId: string; now: Date },
): Promise<Buffer[]> {
  const rows = await sql<{ secretEncrypted: Buffer }[]>`
    select secret_encrypted from webhook_secrets
    where subscription_id = ${webhookId} and (expires_at is null or expires_at > ${now}) order by id desc`;
  return rows.map(({ secretEncrypted }) => secretEncrypted);
}

async function insertSecret(
  tx: Tx,
  { webhookId, secretEncrypted, now }: { webhookId: string; secretEncrypted: Buffer; now: Date },
): Promise<void> {
  await tx`
    insert into webhook_secrets (subscription_id, secret_encrypted, created_at)
    values (${webhookId}, ${secretEncrypted}, ${now})`;
}

/** Locks the webhook before its deliveries, as storing an attempt does, to avoid deadlocks. */
async function lockWebhook(tx: Tx, key: WebhookKey): Promise<WebhookRow> {
  if (isUuid(key.id)) await tx`select id from webhook_subscriptions where id = ${key.id} for no key update`;
  return await getWebhook(tx, key);
}

export async function failPendingDeliveries(sql: SqlOrTx, webhookId: string): Promise<void> {
  await sql`
    update deliveries set status = 'failed', next_attempt_at = null, leased_until = null, last_error = 'endpoint_disabled'
    where subscription_id = ${webhookId} and status = 'pending'`;
}
