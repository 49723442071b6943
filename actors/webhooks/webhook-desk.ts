import type { DeliveryRow } from '../../storage/queries/deliveries.ts';
import type { WebhookEvent } from '../../storage/queries/webhook-events.ts';
import type { WebhookPatch, WebhookRow } from '../../storage/queries/webhooks.ts';

/** What the API does with webhooks beyond reading them. Every change leaves a row in the audit log. */
export interface WebhookDesk {
  /** @throws TandemError `INVALID_WEBHOOK_URL`, `WEBHOOK_URL_UNREACHABLE`, `WEBHOOK_LIMIT_REACHED`, `VALIDATION_FAILED` */
  create(request: {
    url: string;
    events: readonly WebhookEvent[];
    /** Null has one minted. */
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
  /** Sends an example of an event; null is the first the webhook wants. @throws TandemError `WEBHOOK_NOT_FOUND`, `WEBHOOK_DISABLED` */
  test(request: { id: string; event: WebhookEvent | null; by: Caller }): Promise<DeliveryRow>;
  /** Sends a delivery once more. @throws TandemError `DELIVERY_NOT_FOUND`, `WEBHOOK_DISABLED` */
  replay(request: { deliveryId: string; by: Caller }): Promise<DeliveryRow>;
}

/** Whose request it is; a `Principal` with the id of its request. */
export interface Caller {
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  requestId: string;
}
