import { randomUUID } from 'node:crypto';
import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type Sql, type SqlOrTx } from '../../storage/database.ts';
import { type AuditAction, recordAudit } from '../../storage/queries/audit.ts';
import { insertTestDelivery, replayDelivery } from '../../storage/queries/webhook-deliveries.ts';
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  rotateWebhookSecret,
  updateWebhook,
} from '../../storage/queries/webhooks.ts';
import { webhookSecretContext } from '../../storage/secret-contexts.ts';
import type { SecretBox } from '../../storage/secrets.ts';
import { checkCallbackUrl, isLookupFailure, type Resolve } from '../callbacks/callback-url.ts';
import type { Cidr } from '../callbacks/public-address.ts';
import { mintWebhookSecret, requireWebhookSecret } from './signature.ts';
import type { Caller, WebhookDesk } from './webhook-desk.ts';

export interface WebhookDeskOptions {
  sql: Sql;
  secrets: Pick<SecretBox, 'seal'>;
  /** Attempts a delivery now. */
  deliverer: { enqueue(deliveryId: string): Promise<void> };
  /** From `parseCidrs`. */
  allowCidrs: readonly Cidr[];
  /** Default: DNS. */
  resolve?: Resolve;
  /** Default: the system clock. */
  now?: () => Date;
}

/** Implements the desk on the database. Each delivery is committed before it is enqueued. */
export function createWebhookDesk(options: WebhookDeskOptions): WebhookDesk {
  const { sql, secrets, deliverer, now = () => new Date() } = options;

  /** Seals a secret for its row. Returns a generated secret in plain text too, to show it once. */
  function secretFor(
    webhookId: string,
    given: string | null,
  ): { secretEncrypted: Buffer; mintedSecret: string | null } {
    if (given !== null) requireWebhookSecret(given);
    const secret = given ?? mintWebhookSecret();
    const secretEncrypted = secrets.seal(secret, webhookSecretContext(webhookId));
    return { secretEncrypted, mintedSecret: given === null ? secret : null };
  }

  return {
    async create({ url, events, secret, by }) {
      const id = randomUUID();
      const { secretEncrypted, mintedSecret } = secretFor(id, secret);
      const checked = await checkedUrl(url, options);
      const webhook = await inTransaction(sql, async (tx) => {
        const input = { id, workspaceId: by.workspaceId, url: checked, events: [...new Set(events)], secretEncrypted };
        const row = await createWebhook(tx, { ...input, now: now() });
        await note(tx, { action: 'webhook.created', id, by, now: now(), details: { events: row.events } });
        return row;
      });
      return { webhook, mintedSecret };
    },

    async update({ id, patch, by }) {
      const { url, events, status } = patch;
      const changes = {
        status,
        events: events && [...new Set(events)],
        url: url === undefined ? undefined : await checkedUrl(url, options),
      };
      return await inTransaction(sql, async (tx) => {
        const row = await updateWebhook(tx, { id, workspaceId: by.workspaceId, patch: changes, now: now() });
        const fields = Object.keys(patch);
        await note(tx, {
          action: 'webhook.updated',
          id: row.id,
          by,
          now: now(),
          details: { fields, status: row.status },
        });
        return row;
      });
    },

    async remove({ id, by }) {
      await inTransaction(sql, async (tx) => {
        const removed = await deleteWebhook(tx, { id, workspaceId: by.workspaceId, now: now() });
        await note(tx, { action: 'webhook.deleted', id: removed.id, by, now: now() });
      });
    },

    async rotateSecret({ id, secret, overlapMs, by }) {
      const { workspaceId } = by;
      // A secret is sealed for the row's spelling of the id; the request's may be in capitals.
      const webhook = await getWebhook(sql, { id, workspaceId });
      const { secretEncrypted, mintedSecret } = secretFor(webhook.id, secret);
      const rotated = await inTransaction(sql, async (tx) => {
        const result = await rotateWebhookSecret(tx, { id, workspaceId, secretEncrypted, overlapMs, now: now() });
        const details = { overlap_seconds: overlapMs / 1000 };
        await note(tx, { action: 'webhook.secret_rotated', id: webhook.id, by, now: now(), details });
        return result;
      });
      return { ...rotated, mintedSecret };
    },

    async test({ id, event, by }) {
      const delivery = await insertTestDelivery(sql, { id, workspaceId: by.workspaceId, event, now: now() });
      await deliverer.enqueue(delivery.id);
      return delivery;
    },

    async replay({ by, ...which }) {
      const delivery = await inTransaction(sql, async (tx) => {
        const row = await replayDelivery(tx, { ...which, workspaceId: by.workspaceId, now: now() });
        const common = { by, now: now(), details: { delivery_id: which.deliveryId } };
        const webhookId = row.subscriptionId;
        if (webhookId !== null) await note(tx, { ...common, action: 'webhook.replayed', id: webhookId });
        else await note(tx, { ...common, action: 'callback.replayed', type: 'call', id: row.callId! });
        return row;
      });
      await deliverer.enqueue(delivery.id);
      return delivery;
    },
  };
}

/** Returns the normalised URL, to be stored. */
async function checkedUrl(text: string, { allowCidrs, resolve }: WebhookDeskOptions): Promise<string> {
  const refusedAs = { code: 'INVALID_WEBHOOK_URL', field: 'url' } as const;
  try {
    return (await checkCallbackUrl(text, { allowCidrs, refusedAs, ...(resolve && { resolve }) })).url.href;
  } catch (error) {
    if (!isLookupFailure(error)) throw error;
    throw new TandemError('WEBHOOK_URL_UNREACHABLE', 'The host of url cannot be resolved at the moment. Try again.', {
      cause: error,
    });
  }
}

interface Note {
  action: AuditAction;
  /** Id of the webhook, unless `type` says otherwise. */
  id: string;
  type?: string;
  by: Caller;
  now: Date;
  details?: Record<string, unknown>;
}

async function note(tx: SqlOrTx, { action, id, type = 'webhook', by, now, details = {} }: Note): Promise<void> {
  const { workspaceId, requestId } = by;
  await recordAudit(tx, { workspaceId, requestId, actor: by, action, target: { type, id }, details, now });
}
