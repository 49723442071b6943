import { createHmac, timingSafeEqual } from 'node:crypto';

/** Header with our signature; see `signCallback` for its format. */
export const CALLBACK_SIGNATURE_HEADER = 'x-qcall-signature';

export interface SignOptions {
  /** The `callback_secret`, 16 to 256 characters; its UTF-8 bytes are the key. */
  secret: string;
  /** Stable over retries of a delivery, so that receivers can drop duplicates. */
  webhookId: string;
  /** Time of this attempt, Unix seconds. */
  timestampS: number;
  rawBody: string;
}

/**
 * Signs a callback. Returns four headers: ours (`t=<unix s>,v1=<hex HMAC-SHA256(secret, t.body)>`) and the three of
 * Standard Webhooks (https://www.standardwebhooks.com), whose libraries verify them with the raw secret as the key.
 */
export function signCallback({ secret, webhookId, timestampS, rawBody }: SignOptions): Record<string, string> {
  const qcall = hmac(secret, `${timestampS}.${rawBody}`).toString('hex');
  const standard = hmac(secret, `${webhookId}.${timestampS}.${rawBody}`).toString('base64');
  return {
    [CALLBACK_SIGNATURE_HEADER]: `t=${timestampS},v1=${qcall}`,
    'webhook-id': webhookId,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': `v1,${standard}`,
  };
}

export interface VerifyOptions {
  /** The `callback_secret`. */
  secret: string;
  /** Body as received, before JSON parsing. */
  rawBody: string | Uint8Array;
  /** Value of `CALLBACK_SIGNATURE_HEADER`; undefined if missing. */
  header: string | undefined;
  /** Unix seconds; default now. */
  nowS?: number;
}

export type VerifyResult = { ok: true } | { ok: false; reason: 'missing' | 'malformed' | 'stale' | 'mismatch' };

/**
 * Verifies for a receiver that a callback is authentic and fresh. Compares in constant time. One of several `v1=` parts
 * must match.
 */
export function verifyCallbackSignature(options: VerifyOptions): VerifyResult {
  const { secret, rawBody, header, nowS = Math.floor(Date.now() / 1000) } = options;
  if (header === undefined || header === '') return { ok: false, reason: 'missing' };
  const parsed = parseHeader(header);
  if (parsed === null) return { ok: false, reason: 'malformed' };
  const expected = createHmac('sha256', secret).update(`${parsed.timestampS}.`).update(rawBody).digest();
  // Compare every candidate, so that the timing does not reveal which one matched.
  let matches = 0;
  for (const candidate of parsed.signatures) matches += Number(timingSafeEqual(candidate, expected));
  if (matches === 0) return { ok: false, reason: 'mismatch' };
  if (Math.abs(nowS - parsed.timestampS) > TOLERANCE_S) return { ok: false, reason: 'stale' };
  return { ok: true };
}

/** Largest accepted difference between timestamp and now, which limits replays. */
const TOLERANCE_S = 300;
const MAX_HEADER_CHARACTERS = 1024;

function parseHeader(header: string): { timestampS: number; signatures: Buffer[] } | null {
  if (header.length > MAX_HEADER_CHARACTERS) return null;
  let timestampS: number | null = null;
  const signatures: Buffer[] = [];
  for (const part of header.split(',')) {
    const [, key, value = ''] = /^\s*([a-z0-9]+)=(\S*)\s*$/.exec(part) ?? [];
    if (key === 't') {
      // No leading zero: `t` is signed as text, so it must have one spelling only.
      if (timestampS !== null || !/^(0|[1-9]\d{0,11})$/.test(value)) return null;
      timestampS = Number(value);
    } else if (key === 'v1' && /^[0-9a-f]{64}$/.test(value)) {
      signatures.push(Buffer.from(value, 'hex'));
    }
  }
  return timestampS === null || signatures.length === 0 ? null : { timestampS, signatures };
}

function hmac(secret: string, text: string): Buffer {
  return createHmac('sha256', secret).update(text).digest();
}
