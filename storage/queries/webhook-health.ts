import type { Tx } from '../database.ts';
import { notLater } from './due-times.ts';
import { failPendingDeliveries, type WebhookRow } from './webhooks.ts';

/** Disables an endpoint that has failed for this long without a success. */
export const DISABLED_AFTER_FAILING_MS = 5 * 86_400_000;

/** Locks the endpoint of a delivery until the transaction ends; null for a callback. */
export async function lockEndpointOf(tx: Tx, deliveryId: string): Promise<WebhookRow | null> {
  const [row] = await tx<WebhookRow[]>`
    select s.* from webhook_subscriptions s join deliveries d on d.subscription_id = s.id
    where d.id = ${deliveryId} for no key update of s`;
  return row ?? null;
}

/**
 * Applies an attempt to its endpoint. A success clears the failures. A 410 (`gone`) or five days of failures disable it
 * and fail its pending deliveries. The days pass by the database's clock. Returns why it was disabled now; null if it
 * was not.
 */
export async function noteEndpointAttempt(
  tx: Tx,
  { endpoint, result, at: endedAt }: { endpoint: WebhookRow; result: 'success' | 'failure' | 'gone'; at: Date },
): Promise<'gone' | 'failing' | null> {
  const { id } = endpoint;
  if (result === 'success') {
    if (endpoint.failingSince !== null)
      await tx`update webhook_subscriptions set failing_since = null where id = ${id}`;
    return null;
  }
  const [bounded] = await tx<{ at: Date }[]>`select ${notLater(tx, endedAt)} as at`;
  const { at } = bounded!;
  const failingSince = endpoint.failingSince ?? at;
  const isFailing = at.getTime() - failingSince.getTime() >= DISABLED_AFTER_FAILING_MS;
  const reason = result === 'gone' ? 'gone' : isFailing ? 'failing' : null;
  if (reason === null || endpoint.status === 'disabled') {
    await tx`update webhook_subscriptions set failing_since = ${failingSince} where id = ${id}`;
    return null;
  }
  await tx`
    update webhook_subscriptions
    set failing_since = ${failingSince}, status = 'disabled', disabled_reason = ${reason}, updated_at = ${at}
    where id = ${id}`;
  await failPendingDeliveries(tx, id);
  return reason;
}
