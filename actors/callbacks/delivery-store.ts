import { NOT_ATTEMPTED } from '../../machines/delivery.machine.ts';
import { inTransaction, type Sql } from '../../storage/database.ts';
import {
  claimDelivery,
  dueDeliveries,
  getDelivery,
  recordAttempt,
  releaseDelivery,
} from '../../storage/queries/deliveries.ts';
import { lockEndpointOf, noteEndpointAttempt } from '../../storage/queries/webhook-health.ts';
import { liveWebhookSecrets } from '../../storage/queries/webhooks.ts';
import type { DeliveryStore, RecordedAttempt, SentAttempt } from './ports.ts';

/** Deliveries are committed together with the outcome they report. */
export function createDeliveryStore(sql: Sql): DeliveryStore {
  return {
    get: (id) => getDelivery(sql, id),
    due: (query) => dueDeliveries(sql, query),
    claim: (request) => claimDelivery(sql, request),
    record: (attempt) => record(sql, attempt),
    webhookSecrets: (request) => liveWebhookSecrets(sql, request),
    release: (claimed) => releaseDelivery(sql, claimed),
  };
}

/** Stores the attempt and its consequence for the webhook, unless the webhook has moved to another URL meanwhile. */
async function record(sql: Sql, attempt: SentAttempt): Promise<RecordedAttempt | null> {
  const at = new Date(attempt.startedAt.getTime() + attempt.durationMs);
  return await inTransaction(sql, async (tx) => {
    const endpoint = await lockEndpointOf(tx, attempt.deliveryId);
    const hasMoved = endpoint !== null && endpoint.url !== attempt.url;
    const { kind } = attempt.outcome;
    // A 410 of the previous URL does not concern the new one.
    const outcome = hasMoved && kind === 'gone' ? ({ kind: 'retry', nextAttemptAt: at } as const) : attempt.outcome;
    const delivery = await recordAttempt(tx, { ...attempt, outcome });
    if (delivery === null) return null;
    // An attempt that could not be made says nothing about the receiver.
    if (endpoint === null || hasMoved || attempt.error === NOT_ATTEMPTED) return { delivery, endpointDisabled: null };
    const result = kind === 'delivered' ? 'success' : kind === 'gone' ? 'gone' : 'failure';
    return { delivery, endpointDisabled: await noteEndpointAttempt(tx, { endpoint, result, at }) };
  });
}
