import type { KeyObject } from 'node:crypto';
import { AesCmCipher } from './aes-cm.ts';
import { AesGcmCipher } from './aes-gcm.ts';
import type { SuiteParameters } from './crypto-suites.ts';
import type { PacketCipher } from './packet-cipher.ts';
import { deriveSessionKeys } from './session-keys.ts';

/** The cipher of a suite with keys derived from a master key. @throws RangeError if that does not fit. */
export function suiteCipher(suite: SuiteParameters, master: KeyObject): PacketCipher {
  const keys = deriveSessionKeys(suite, master);
  return suite.cipher === 'AES-CM' ? new AesCmCipher(suite, keys) : new AesGcmCipher(suite, keys);
}
