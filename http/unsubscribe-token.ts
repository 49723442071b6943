import { createHmac } from 'node:crypto';
import { isSignedByAny } from '../storage/secrets.ts';

/**
 * Creates a token for the unsubscribe link: user id and signature. It never expires, because old e-mails do not either.
 */
export function unsubscribeToken(userId: number, secret: Buffer): string {
  return `${userId}.${signatureOf(userId, secret).toString('base64url')}`;
}

/** Null if none of the secrets has signed it. */
export function readUnsubscribeToken(token: string, secrets: readonly Buffer[]): number | null {
  const [, id, signature] = /^(\d{1,9})\.([A-Za-z0-9_-]{43})$/.exec(token) ?? [];
  if (id === undefined || signature === undefined) return null;
  const given = Buffer.from(signature, 'base64url');
  return isSignedByAny(given, secrets, (secret) => signatureOf(Number(id), secret)) ? Number(id) : null;
}

function signatureOf(userId: number, secret: Buffer): Buffer {
  return createHmac('sha256', secret).update(`tandem-unsubscribe\n${userId}`).digest();
}
