import type { DeliveryRow } from '../../storage/queries/deliveries.ts';
import type { WebhookEvent } from '../../storage/queries/webhook-events.ts';
import type { WebhookPatch, WebhookRow } from '../../storage/queries/webhooks.ts';

/** Creates, changes and tests webhooks for the API. Every change is audited. */
export interface WebhookDesk {
  /** @throws TandemError `INVALID_WEBHOOK_URL`, `WEBHOOK_URL_UNREACHABLE`, `WEBHOOK_LIMIT_REACHED`, `VALIDATION_FAILED` */
  create(request: {
    url: string;
    events: readonly WebhookEvent[];
    /** Null: one is generated. */
    secret: string | null;
    by: Caller;
  }): Promise<{ webhook: WebhookRow; mintedSecret: string | null }>;
  /** @throws TandemError `WEBHOOK_NOT_FOUND`, `INVALID_WEBHOOK_URL`, `WEBHOOK_URL_UNREACHABLE` */
  update(request: { id: string; patch: WebhookPatch; by: Caller }): Promise<WebhookRow>;
  /** @throws TandemError `WEBHOOK_NOT_FOUND` */
  remove(request: { id: string; by: Caller }): Promise<void>;
  /** @throws TandemError `WEBHOOK_NOT_FOUND`, `VALIDATION_FAILED` */
  rotateSecret(request: {
    id: string;
    secret: string | null;
    overlapMs: number;
    by: Caller;
  }): Promise<{ webhook: WebhookRow; mintedSecret: string | null; previousSecretExpiresAt: Date }>;
  /**
   * Sends an example event; null: the first that the webhook subscribes to. @throws TandemError `WEBHOOK_NOT_FOUND`,
   * `WEBHOOK_DISABLED`
   */
  test(request: { id: string; event: WebhookEvent | null; by: Caller }): Promise<DeliveryRow>;
  /**
   * Sends a webhook delivery again; with `callId`, a callback or webhook delivery of that call.
   * @throws TandemError `DELIVERY_NOT_FOUND`, `WEBHOOK_DISABLED`
   */
  replay(request: { deliveryId: string; callId?: string; by: Caller }): Promise<DeliveryRow>;
}

/** A `Principal` with the id of its request. */
export interface Caller {
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  requestId: string;
}
