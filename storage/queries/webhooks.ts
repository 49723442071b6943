import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { isUuid } from './identifiers.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';
import type { WebhookEvent } from './webhook-events.ts';

export interface WebhookRow {
  id: string;
  workspaceId: string;
  url: string;
  events: WebhookEvent[];
  status: 'active' | 'disabled';
  /** `gone`: it answered 410. `failing`: nothing but failures for five days. Null while active. */
  disabledReason: 'by_request' | 'gone' | 'failing' | null;
  /** When the first attempt failed that no success has followed. */
  failingSince: Date | null;
  createdAt: Date;
  updatedAt: Date;
  deletedAt: Date | null;
}

/** Each may keep attempts of its own under way, so a workspace with ever more of them would take the room of others. */
export const MAX_WEBHOOKS_PER_WORKSPACE = 20;

/** So many secrets sign at once at most; the oldest goes first. */
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
    // One at a time per workspace, or two would count the same number.
    await tx`select id from workspaces where id = ${workspaceId} for no key update`;
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

/** @throws TandemError `WEBHOOK_NOT_FOUND`, also for one of another workspace. */
export async function getWebhook(sql: SqlOrTx, { id, workspaceId }: WebhookKey): Promise<WebhookRow> {
  const [row] = isUuid(id)
    ? await sql<WebhookRow[]>`
        select * from webhook_subscriptions
        where id = ${id} and workspace_id = ${workspaceId} and deleted_at is null`
    : [];
  if (!row) throw new TandemError('WEBHOOK_NOT_FOUND', 'No webhook in this workspace has this id.');
  return row;
}

/** Whether anybody is to be told of such an event now. */
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
  /** Deliveries under way go there too. */
  url?: string | undefined;
  events?: readonly WebhookEvent[] | undefined;
  /** `disabled` fails what is pending; `active` forgets why it was disabled. */
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

/** Its secrets are forgotten and what is pending has failed. @throws TandemError `WEBHOOK_NOT_FOUND` */
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
 * From now on the new secret signs; those before it do so too for `overlapMs`, or for what is left of an earlier
 * overlap. @throws TandemError `WEBHOOK_NOT_FOUND`
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

/** The sealed secrets that sign at the moment, the newest first. */
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

/** Locked before anything of its deliveries is, here as where attempts are recorded: no two wait for each other. */
async function lockWebhook(tx: Tx, key: WebhookKey): Promise<WebhookRow> {
  if (isUuid(key.id)) await tx`select id from webhook_subscriptions where id = ${key.id} for no key update`;
  return await getWebhook(tx, key);
}

/** Keeps what is pending from being attempted: its endpoint takes no more. */
export async function failPendingDeliveries(sql: SqlOrTx, webhookId: string): Promise<void> {
  await sql`
    update deliveries set status = 'failed', next_attempt_at = null, leased_until = null, last_error = 'endpoint_disabled'
    where subscription_id = ${webhookId} and status = 'pending'`;
}
