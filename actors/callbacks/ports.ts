import type { DeliveryAttempt, DeliveryRow } from '../../storage/queries/deliveries.ts';

/** Deliveries as the deliverer needs them; `createDeliveryStore` is the Postgres one. */
export interface DeliveryStore {
  get(id: string): Promise<DeliveryRow | null>;
  /** Due and not leased: in turns over the receivers, of each the longest overdue first. */
  due(query: { now: Date; limit: number }): Promise<DeliveryRow[]>;
  /** Takes it for one attempt until `now + leaseMs`; null when it is final, not due, or somebody has it. */
  claim(request: { id: string; now: Date; leaseMs: number }): Promise<DeliveryRow | null>;
  /** Logs the attempt, sets what follows and ends the lease, in one transaction. Null when it was final already. */
  record(attempt: DeliveryAttempt): Promise<RecordedAttempt | null>;
  /** The sealed secrets a webhook is signed with at the moment, the newest first. */
  webhookSecrets(request: { webhookId: string; now: Date }): Promise<Buffer[]>;
  /** Gives a claimed delivery back as if nobody had tried. Does nothing when the lease is another one by now. */
  release(claimed: { id: string; leasedUntil: Date }): Promise<void>;
}

export interface RecordedAttempt {
  delivery: DeliveryRow;
  /** Why the webhook it went to gets no more from now on; null when that goes on, or for a callback. */
  endpointDisabled: 'gone' | 'failing' | null;
}

/**
 * Wake-up calls; the part of `JobQueue` in `storage/jobs.ts` that is used here. A job says "look at this delivery now" and
 * nothing else: the row knows whether there is anything to do. So a job may come twice, late, or not at all.
 */
export interface DeliveryJobs {
  /** One job per delivery and attempt, however often it is asked for. */
  add(deliveryId: string, options: { delayMs: number; attempt: number }): Promise<void>;
  work(
    handler: (deliveryId: string) => Promise<void>,
    options: { concurrency: number },
  ): Promise<{ close(): Promise<void> }>;
}

/** The part of `SecretBox` that is used here; `context` is `callbackSecretContext` or `webhookSecretContext`. */
export interface SecretOpener {
  open(sealed: Uint8Array, context: string): string;
}

export interface DelivererLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
