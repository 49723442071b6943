import type { AttemptResult } from '../../machines/delivery.machine.ts';
import type { ClaimedDelivery } from '../../storage/queries/deliveries.ts';
import { callbackSecretContext, webhookSecretContext } from '../../storage/secret-contexts.ts';
import { signWebhook } from '../webhooks/signature.ts';
import type { Resolve } from './dns-resolve.ts';
import type { DeliveryStore, SecretOpener } from './ports.ts';
import type { Cidr } from './public-address.ts';
import { safePost } from './safe-request.ts';
import { signCallback } from './signature.ts';

export interface PostDeliveryOptions {
  store: Pick<DeliveryStore, 'webhookSecrets'>;
  secrets: SecretOpener;
  allowCidrs: readonly Cidr[];
  resolve?: Resolve | undefined;
  now: () => number;
  random: () => number;
  userAgent: string;
  timeoutMs?: number | undefined;
  ca?: string | undefined;
}

/**
 * Makes one attempt: sends the stored bytes and event id with a new signature and timestamp. Rejects only if the
 * secrets cannot be read or decrypted.
 */
export async function postDelivery(
  row: ClaimedDelivery,
  signal: AbortSignal,
  options: PostDeliveryOptions,
): Promise<AttemptResult> {
  const { allowCidrs, resolve, now, random, userAgent, timeoutMs, ca } = options;
  const signatures = await signaturesOf(row, options);
  const result = await safePost({
    url: row.url,
    body: row.body,
    headers: { 'content-type': 'application/json', 'user-agent': userAgent, ...signatures },
    allowCidrs,
    signal,
    ...(resolve && { resolve }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(ca !== undefined && { ca }),
  });
  const atMs = now();
  const jitter = random();
  if (result.kind === 'failed') {
    return { httpStatus: null, error: result.failure, retryAfterMs: null, atMs, jitter };
  }
  const retryAfterMs = parseRetryAfter(result.retryAfter, atMs);
  return { httpStatus: result.status, error: errorOf(result.status), retryAfterMs, atMs, jitter };
}

async function signaturesOf(
  row: ClaimedDelivery,
  { secrets, store, now }: PostDeliveryOptions,
): Promise<Record<string, string>> {
  const timestampS = Math.floor(row.claimedAt.getTime() / 1000);
  const message = { webhookId: row.eventId, timestampS, rawBody: row.body };
  if (row.secretEncrypted !== null) {
    return signCallback({
      ...message,
      secret: secrets.open(row.secretEncrypted, callbackSecretContext(row.workspaceId)),
    });
  }
  const webhookId = row.subscriptionId ?? '';
  const sealed = await store.webhookSecrets({ webhookId, now: new Date(now()) });
  if (sealed.length === 0) throw new Error('The webhook has no secret');
  return signWebhook({
    ...message,
    secrets: sealed.map((secret) => secrets.open(secret, webhookSecretContext(webhookId))),
  });
}

function errorOf(status: number): string | null {
  if (status >= 200 && status < 300) return null;
  if (status >= 300 && status < 400) return 'redirect_refused';
  return status === 410 ? 'disabled_by_receiver' : 'status_not_2xx';
}

/** Parses whole seconds or an HTTP date (RFC 9110 §10.2.3). Null for anything else and for past dates. */
export function parseRetryAfter(value: string | null, nowMs: number): number | null {
  const text = value?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  // Accept only IMF-fixdate, because Date.parse alone accepts almost anything.
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)) return null;
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) || atMs <= nowMs ? null : atMs - nowMs;
}
