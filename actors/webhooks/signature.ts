import { createHmac, randomBytes } from 'node:crypto';
import { TandemError } from '../../machines/errors.ts';

const PREFIX = 'whsec_';

export interface SignWebhookOptions {
  /** As given or minted, the newest first; each makes a signature of its own. */
  secrets: readonly string[];
  /** Stable over retries and replays, so that a receiver can drop repeats. */
  webhookId: string;
  /** When this attempt is made, Unix seconds. */
  timestampS: number;
  rawBody: string;
}

/** The three headers of Standard Webhooks (https://www.standardwebhooks.com); several signatures are parted by spaces. */
export function signWebhook({ secrets, webhookId, timestampS, rawBody }: SignWebhookOptions): Record<string, string> {
  const signed = `${webhookId}.${timestampS}.${rawBody}`;
  const signatures = secrets.map((secret) => createHmac('sha256', keyOf(secret)).update(signed).digest('base64'));
  return {
    'webhook-id': webhookId,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': signatures.map((signature) => `v1,${signature}`).join(' '),
  };
}

/** 32 random bytes as `whsec_<base64>`. */
export function mintWebhookSecret(): string {
  return PREFIX + randomBytes(32).toString('base64');
}

const MIN_KEY_BYTES = 16;

/**
 * A client's own secret is any ASCII, whose bytes are the key (the libraries do not agree on other characters), or
 * `whsec_` and the key in base64. This looks at what a pattern in a schema cannot.
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
