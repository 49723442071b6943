import { randomUUID } from 'node:crypto';
import type { DeliveryInput } from '../../storage/queries/deliveries.ts';
import type { PublicCall } from '../call-view.ts';

export interface CallDeliveryOptions {
  /** The call as the API shows it, after the event. */
  call: PublicCall;
  event: CallbackEvent;
  /** `calls.callback_secret_encrypted`; the delivery keeps its own copy. */
  secretEncrypted: Buffer | null;
  /** Default: a fresh UUID. */
  id?: string;
}

export interface CallbackEvent {
  /** Name of the row in the event log; a finished call goes by its `terminal_event` instead. */
  event: string;
  /** Unique everywhere; becomes `webhook-id`. */
  eventId: string;
  /** Position in the call's event log. */
  sequence: number;
  at: Date;
}

/** What a receiver gets (contracts.md, Calls). */
export interface CallbackBody {
  event: string;
  event_id: string;
  sequence: number;
  timestamp: string;
  call_id: string;
  reference_id: string;
  metadata: Record<string, unknown> | null;
  data: { call: PublicCall };
}

/**
 * The row that commits with a call's outcome: due at once, its body fixed for all attempts. Null when the call asked
 * for no callback. Waits for nothing, so it may run inside the transaction.
 */
export function buildCallDelivery({ call, event, secretEncrypted, id }: CallDeliveryOptions): DeliveryInput | null {
  if (call.callback_url === null || secretEncrypted === null) return null;
  const body: CallbackBody = {
    event: call.terminal_event ?? event.event,
    event_id: event.eventId,
    sequence: event.sequence,
    timestamp: event.at.toISOString(),
    call_id: call.call_id,
    reference_id: call.reference_id,
    metadata: call.metadata,
    data: { call },
  };
  return {
    id: id ?? randomUUID(),
    url: call.callback_url,
    body: JSON.stringify(body),
    secretEncrypted,
    nextAttemptAt: event.at,
  };
}
