import type { Tx } from '../database.ts';
import { failPendingDeliveries, type WebhookRow } from './webhooks.ts';

/** An endpoint that has failed for so long without one success gets no more. */
export const DISABLED_AFTER_FAILING_MS = 5 * 86_400_000;

/** The endpoint of a delivery, locked against changes until the transaction ends; null for a callback. */
export async function lockEndpointOf(tx: Tx, deliveryId: string): Promise<WebhookRow | null> {
  const [row] = await tx<WebhookRow[]>`
    select s.* from webhook_subscriptions s join deliveries d on d.subscription_id = s.id
    where d.id = ${deliveryId} for no key update of s`;
  return row ?? null;
}

/**
 * What one recorded attempt means for its endpoint. A success clears its record. A 410 (`gone`) disables it, as do
 * five days in which every attempt failed; then its pending deliveries have failed too. Tells why it was disabled just
 * now, null when it was not.
 */
export async function noteEndpointAttempt(
  tx: Tx,
  { endpoint, result, at }: { endpoint: WebhookRow; result: 'success' | 'failure' | 'gone'; at: Date },
): Promise<'gone' | 'failing' | null> {
  const { id } = endpoint;
  if (result === 'success') {
    if (endpoint.failingSince !== null)
      await tx`update webhook_subscriptions set failing_since = null where id = ${id}`;
    return null;
  }
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
