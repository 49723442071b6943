import type { ClaimedDelivery, DeliveryAttempt, DeliveryRow } from '../../storage/queries/deliveries.ts';

export interface DeliveryStore {
  get(id: string): Promise<DeliveryRow | null>;
  /** Due deliveries without a lease: takes turns over the receivers, longest overdue first for each. */
  due(query: { now: Date; limit: number }): Promise<DeliveryRow[]>;
  /** Leases a delivery for one attempt, until `now + leaseMs`. Null if it is final, not due or already leased. */
  claim(request: { id: string; now: Date; leaseMs: number }): Promise<ClaimedDelivery | null>;
  /** Stores the attempt and its consequences and ends the lease, in one transaction. Null if it was already final. */
  record(attempt: SentAttempt): Promise<RecordedAttempt | null>;
  /** Current sealed secrets of a webhook, newest first. */
  webhookSecrets(request: { webhookId: string; now: Date }): Promise<Buffer[]>;
  /** Releases a leased delivery without an attempt. No effect if the lease has changed. */
  release(claimed: { id: string; leasedUntil: Date }): Promise<void>;
}

export interface SentAttempt extends DeliveryAttempt {
  /** Its webhook may have moved to another URL meanwhile. */
  url: string;
}

export interface RecordedAttempt {
  delivery: DeliveryRow;
  /** Why the webhook was disabled; null if it was not, or for a callback. */
  endpointDisabled: 'gone' | 'failing' | null;
}

/**
 * Wake-up calls; a part of `JobQueue` in `storage/jobs.ts`. A job only asks to check a delivery, and the row says
 * whether it is due. So a job may come twice, late or never.
 */
export interface DeliveryJobs {
  /** Creates at most one job per delivery and attempt. */
  add(deliveryId: string, options: { delayMs: number; attempt: number }): Promise<void>;
  work(
    handler: (deliveryId: string) => Promise<void>,
    options: { concurrency: number },
  ): Promise<{ close(): Promise<void> }>;
}

/** A part of `SecretBox`; `context` is `callbackSecretContext` or `webhookSecretContext`. */
export interface SecretOpener {
  open(sealed: Uint8Array, context: string): string;
}

export interface DelivererLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
