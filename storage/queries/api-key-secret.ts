import { createHash, randomBytes } from 'node:crypto';

/** What is stored of an API key: enough to recognise it, and nothing that would let anybody use it. */
export interface ApiKeyFingerprint {
  /** The first characters, to tell keys apart. */
  prefix: string;
  last4: string;
  /** SHA-256 of the whole key. */
  keyHash: Buffer;
}

/** A new key. It is shown to its owner once; only its fingerprint is kept. */
export function mintApiKey(): string {
  return `sk_${randomBytes(24).toString('base64url')}`;
}

export function fingerprintOf(apiKey: string): ApiKeyFingerprint {
  return {
    prefix: apiKey.slice(0, 7),
    last4: apiKey.slice(-4),
    keyHash: createHash('sha256').update(apiKey).digest(),
  };
}
