import { randomUUID } from 'node:crypto';
import type { DeliveryInput } from '../../storage/queries/deliveries.ts';
import type { PublicCall } from '../call-view.ts';

export interface CallDeliveryOptions {
  /** Call object of the API, after the event. */
  call: PublicCall;
  event: CallbackEvent;
  /** `calls.callback_secret_encrypted`; the delivery keeps its own copy. */
  secretEncrypted: Buffer | null;
  /** Default: a new UUID. */
  id?: string;
}

export interface CallbackEvent {
  /** Event log name; a finished call uses its `terminal_event` instead. */
  event: string;
  /** Globally unique; becomes `webhook-id`. */
  eventId: string;
  /** Position in the call's event log. */
  sequence: number;
  at: Date;
}

/** Callback body (contracts.md, Calls). */
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
 * Builds the delivery that commits with a call's outcome. It is due at once and its body never changes. Null if the
 * call has no callback. Synchronous, so it may run inside the transaction.
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
