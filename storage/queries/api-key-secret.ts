import { hash, randomBytes } from 'node:crypto';

/** Stored data of an API key: it identifies the key but cannot be used as one. */
export interface ApiKeyFingerprint {
  /** First characters of the key. */
  prefix: string;
  last4: string;
  keyHash: Buffer;
}

/** Generates a key. It is shown once; only its fingerprint is stored. */
export function mintApiKey(): string {
  return `sk_${randomBytes(24).toString('base64url')}`;
}

export function fingerprintOf(apiKey: string): ApiKeyFingerprint {
  return {
    prefix: apiKey.slice(0, 7),
    last4: apiKey.slice(-4),
    keyHash: hash('sha256', apiKey, 'buffer'),
  };
}
