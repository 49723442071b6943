import { createCipheriv, createSecretKey, type KeyObject } from 'node:crypto';
import type { SuiteParameters } from './crypto-suites.ts';

/** The keys of one direction, for RTP or for RTCP. */
export interface SessionKeys {
  encryption: KeyObject;
  salt: Buffer;
  /** HMAC-SHA1, 20 bytes; AES-GCM does not use it. */
  authentication: KeyObject;
}

/** Labels of RFC 3711 §4.3.2: encryption, authentication, salt. */
const RTP_LABELS = [0, 1, 2] as const;
const RTCP_LABELS = [3, 4, 5] as const;
const AUTHENTICATION_KEY_BYTES = 20;
/** A GCM master salt of 96 bits is padded with zeros (RFC 7714 §11). */
const PRF_SALT_BYTES = 14;

/**
 * Derives the session keys of a master key followed by its salt (RFC 3711 §4.3, key derivation rate 0).
 * @throws RangeError if the length does not fit the suite.
 */
export function deriveSessionKeys(suite: SuiteParameters, master: KeyObject): { rtp: SessionKeys; rtcp: SessionKeys } {
  const bytes = master.export();
  if (bytes.length !== suite.keyBytes + suite.saltBytes) throw new RangeError('the master key has the wrong length');
  const masterKey = createSecretKey(bytes.subarray(0, suite.keyBytes));
  const masterSalt = Buffer.alloc(PRF_SALT_BYTES);
  bytes.copy(masterSalt, 0, suite.keyBytes);
  bytes.fill(0);

  /** AES-CM as a pseudo-random function (RFC 3711 §4.3.3), with 256 bit keys by RFC 6188 §3. */
  const derive = (label: number, length: number): Buffer => {
    const counter = Buffer.alloc(16);
    masterSalt.copy(counter);
    // The label is the byte above the 48 bits of index / rate, which are 0.
    counter[7]! ^= label;
    return createCipheriv(`aes-${suite.keyBytes * 8}-ctr`, masterKey, counter).update(Buffer.alloc(length));
  };
  const keysOf = ([encryption, authentication, salt]: readonly [number, number, number]): SessionKeys => ({
    encryption: createSecretKey(derive(encryption, suite.keyBytes)),
    authentication: createSecretKey(derive(authentication, AUTHENTICATION_KEY_BYTES)),
    salt: derive(salt, suite.saltBytes),
  });
  return { rtp: keysOf(RTP_LABELS), rtcp: keysOf(RTCP_LABELS) };
}
