import { createCipheriv, createDecipheriv, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';

/**
 * Encrypts small secrets (callback secrets, trunk passwords) with AES-256-GCM. `context` names purpose and owner. It is
 * authenticated, so a value copied to another row does not open.
 */
export interface SecretBox {
  seal(text: string, context: string): Buffer;
  /** @throws SecretBoxError if the value was changed, or sealed with another key or context */
  open(sealed: Uint8Array, context: string): string;
  /** Prefix of values sealed with the current key. Others belong to earlier keys. */
  readonly currentPrefix: Buffer;
}

export type SecretBoxErrorCode = 'UNKNOWN_KEY' | 'NOT_AUTHENTIC' | 'MALFORMED';

export class SecretBoxError extends Error {
  override readonly name = 'SecretBoxError';
  readonly code: SecretBoxErrorCode;
  constructor(code: SecretBoxErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/**
 * Layout of a sealed value: version (1 byte), key id (4), nonce (12), tag (16), ciphertext. The key id distinguishes
 * another master key from damage.
 */
const VERSION = 1;
const KEY_ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + KEY_ID_BYTES + NONCE_BYTES + TAG_BYTES;

/**
 * @param masterKey 32 bytes; the encryption key is derived from it (HKDF, RFC 5869)
 * @param previousKeys earlier master keys, which only open values
 */
export function createSecretBox(masterKey: Buffer, previousKeys: readonly Buffer[] = []): SecretBox {
  const current = keyOf(masterKey);
  const keys = [current, ...previousKeys.map(keyOf)];
  const currentPrefix = Buffer.concat([Buffer.of(VERSION), current.id]);

  return {
    currentPrefix,

    seal(text, context) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', current.secret, nonce).setAAD(Buffer.from(context));
      const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([currentPrefix, nonce, cipher.getAuthTag(), ciphertext]);
    },

    open(sealed, context) {
      const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
      if (bytes.length < HEADER_BYTES || bytes[0] !== VERSION) {
        throw new SecretBoxError('MALFORMED', 'This is not a sealed secret.');
      }
      const keyId = bytes.subarray(1, 1 + KEY_ID_BYTES);
      const key = keys.find(({ id }) => id.equals(keyId));
      if (key === undefined) {
        throw new SecretBoxError('UNKNOWN_KEY', 'The secret was sealed under another TANDEM_SECRET_KEY.');
      }
      const nonce = bytes.subarray(1 + KEY_ID_BYTES, 1 + KEY_ID_BYTES + NONCE_BYTES);
      const tag = bytes.subarray(HEADER_BYTES - TAG_BYTES, HEADER_BYTES);
      const decipher = createDecipheriv('aes-256-gcm', key.secret, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(context)).setAuthTag(tag);
      try {
        return Buffer.concat([decipher.update(bytes.subarray(HEADER_BYTES)), decipher.final()]).toString('utf8');
      } catch (error) {
        throw new SecretBoxError('NOT_AUTHENTIC', 'The sealed secret was changed or belongs elsewhere.', error);
      }
    },
  };
}

/** Purpose of the key that signs links: playback, unsubscribing, password resets, event streams. */
export const URL_SIGNING = 'tandem url signing';

/** Derives a key of 32 bytes for one purpose. */
export function derivedKey(masterKey: Buffer, purpose: string): Buffer {
  return derive(masterKey, purpose, 32);
}

/** True if one of the secrets made the signature. Links of earlier secrets stay valid while a key is rotated. */
export function isSignedByAny(
  signature: Buffer,
  secrets: readonly Buffer[],
  signWith: (secret: Buffer) => Buffer,
): boolean {
  return secrets.some((secret) => {
    const expected = signWith(secret);
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  });
}

function keyOf(masterKey: Buffer): { id: Buffer; secret: Buffer } {
  if (masterKey.length !== 32) throw new RangeError('the master key has 32 bytes');
  return {
    id: derive(masterKey, 'tandem secret box key id', KEY_ID_BYTES),
    secret: derivedKey(masterKey, 'tandem secret box key'),
  };
}

function derive(masterKey: Buffer, purpose: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', masterKey, Buffer.alloc(0), purpose, bytes));
}

/** The last four characters of a secret, which clients may read. Half a surrogate pair could not be stored. */
export function last4Of(secret: string): string {
  return [...secret].slice(-4).join('');
}
