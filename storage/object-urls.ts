import { createHmac } from 'node:crypto';
import { TandemError } from '../machines/errors.ts';
import { requireObjectKey } from './objects.ts';
import { isSignedByAny } from './secrets.ts';

/** Query of a signed URL: expiry in Unix seconds, and a signature of key and expiry. */
export interface ObjectUrlToken {
  expires: number;
  signature: string;
}

/** Signs permission to read one object until `expiresAt` (rounded down to seconds). */
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
 * @throws TandemError `URL_SIGNATURE_INVALID` if the token does not match the key and one of the secrets, `URL_EXPIRED`
 * after its expiry
 */
export function verifyObjectUrl({
  key,
  expires,
  signature,
  secrets,
  now,
}: ObjectUrlToken & { key: string; secrets: readonly Buffer[]; now: Date }): void {
  const given = Buffer.from(signature, 'base64url');
  if (!isSignedByAny(given, secrets, (secret) => signatureOf({ key, expires, secret }))) {
    throw new TandemError('URL_SIGNATURE_INVALID', 'The signature of the URL is invalid. Create a new URL.');
  }
  if (now.getTime() >= expires * 1000) throw new TandemError('URL_EXPIRED', 'The URL has expired. Create a new one.');
}

function signatureOf({ key, expires, secret }: { key: string; expires: number; secret: Buffer }): Buffer {
  return createHmac('sha256', secret).update(`tandem-object\n${expires}\n${key}`).digest();
}
