import { createHmac, randomBytes } from 'node:crypto';
import { TandemError } from '../../machines/errors.ts';

const PREFIX = 'whsec_';

export interface SignWebhookOptions {
  /** Secrets, newest first; each adds a signature. */
  secrets: readonly string[];
  /** Stable over retries and replays, so that receivers can drop duplicates. */
  webhookId: string;
  /** Time of this attempt, Unix seconds. */
  timestampS: number;
  rawBody: string;
}

/** Returns the three headers of Standard Webhooks (https://www.standardwebhooks.com). Spaces separate signatures. */
export function signWebhook({ secrets, webhookId, timestampS, rawBody }: SignWebhookOptions): Record<string, string> {
  const signed = `${webhookId}.${timestampS}.${rawBody}`;
  const signatures = secrets.map((secret) => createHmac('sha256', keyOf(secret)).update(signed).digest('base64'));
  return {
    'webhook-id': webhookId,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': signatures.map((signature) => `v1,${signature}`).join(' '),
  };
}

/** Generates 32 random bytes as `whsec_<base64>`. */
export function mintWebhookSecret(): string {
  return PREFIX + randomBytes(32).toString('base64');
}

const MIN_KEY_BYTES = 16;

/**
 * Checks a client's own secret beyond the schema's pattern. It is ASCII text, whose bytes are the key, or `whsec_` and
 * the key in base64. Other characters are not allowed, because libraries encode them differently.
 * @throws TandemError `VALIDATION_FAILED`
 */
export function requireWebhookSecret(secret: string): void {
  if (!secret.startsWith(PREFIX)) return;
  const encoded = secret.slice(PREFIX.length);
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(encoded)) {
    throw invalid(`must have base64 with its padding after ${PREFIX}`);
  }
  if (keyOf(secret).length < MIN_KEY_BYTES) throw invalid(`must have at least ${MIN_KEY_BYTES} bytes after ${PREFIX}`);
}

function keyOf(secret: string): Buffer {
  return secret.startsWith(PREFIX) ? Buffer.from(secret.slice(PREFIX.length), 'base64') : Buffer.from(secret, 'ascii');
}

function invalid(message: string): TandemError {
  return new TandemError('VALIDATION_FAILED', `secret ${message}.`, { details: [{ path: 'secret', message }] });
}
