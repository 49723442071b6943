import { createHmac, timingSafeEqual } from 'node:crypto';
import { TandemError } from '../machines/errors.ts';
import { requireObjectKey } from './objects.ts';

/** What goes into the query of a signed URL: `expires` in Unix seconds and the signature over key and expiry. */
export interface ObjectUrlToken {
  expires: number;
  signature: string;
}

/** Signs permission to read one object until `expiresAt` (rounded down to the second). */
export function signObjectUrl({
  key,
  expiresAt,
  secret,
}: {
  key: string;
  expiresAt: Date;
  secret: Buffer;
}): ObjectUrlToken {
  requireObjectKey(key);
  const expires = Math.floor(expiresAt.getTime() / 1000);
  return { expires, signature: signatureOf({ key, expires, secret }).toString('base64url') };
}

/**
 * @throws TandemError `URL_SIGNATURE_INVALID` when the token was not made for this key with this secret,
 * `URL_EXPIRED` when it was but is over.
 */
export function verifyObjectUrl({
  key,
  expires,
  signature,
  secret,
  now,
}: ObjectUrlToken & { key: string; secret: Buffer; now: Date }): void {
  const expected = signatureOf({ key, expires, secret });
  const given = Buffer.from(signature, 'base64url');
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
    throw new TandemError('URL_SIGNATURE_INVALID', 'The signature of the URL is invalid. Create a new URL.');
  }
  if (now.getTime() >= expires * 1000) throw new TandemError('URL_EXPIRED', 'The URL has expired. Create a new one.');
}

function signatureOf({ key, expires, secret }: { key: string; expires: number; secret: Buffer }): Buffer {
  return createHmac('sha256', secret).update(`tandem-object\n${expires}\n${key}`).digest();
}
