import { createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';
import type { MediaEncryption, SrtpKeys, SrtpSuite } from '../machines/events.ts';
import { type CryptoLine, MASTER_KEY_BYTES, readCrypto } from './sdes.ts';

/**
 * The SRTP keys of one leg, by offer and answer (RFC 4568 §5.1). Our keys are random and new for each leg, line of the
 * offer and change of suite. While the suite stays, ours stays, so that rollover counter and sequence continue. The
 * peer may change its own with any offer.
 */

/**
 * Suites in offered order. The first is supported by every peer, and some read no other line. The 32 bit tag comes
 * last, for peers without a better suite.
 */
const OFFERED: readonly SrtpSuite[] = [
  'AES_CM_128_HMAC_SHA1_80',
  'AEAD_AES_256_GCM',
  'AEAD_AES_128_GCM',
  'AES_CM_128_HMAC_SHA1_32',
];

/** A line whose key no dump shows. */
interface KeptLine {
  tag: string;
  suite: SrtpSuite;
  local: KeyObject;
}

/** Result of parsing the peer's lines, before it is applied. */
export interface ReadKeys {
  keys: SrtpKeys;
  /** The line of the answer, if the peer offered. */
  line: KeptLine;
}

export class LegKeys {
  readonly encryption: MediaEncryption;
  /** The current agreement; null before one, and while media is plain. */
  #present: ReadKeys | null = null;
  #offered: readonly KeptLine[] = [];
  #serial = 0;

  constructor(encryption: MediaEncryption) {
    this.encryption = encryption;
  }

  /** The lines of an offer: every suite with a new key, or only the one in use. */
  offer(): CryptoLine[] {
    if (this.encryption === 'none') return [];
    if (this.#present !== null) this.#offered = [this.#present.line];
    else this.#offered = OFFERED.map((suite, index) => ({ tag: String(index + 1), suite, local: newKey(suite) }));
    return this.#offered.map(shown);
  }

  /** The first line of an answer that matches one of ours; null without one. */
  readAnswer(values: readonly string[]): ReadKeys | null {
    for (const { tag, suite, masterKey } of readCrypto(values)) {
      const line = this.#offered.find((offered) => offered.tag === tag && offered.suite === suite);
      if (line !== undefined) return this.#read(line, masterKey);
    }
    return null;
  }

  /** The line of an offer whose key is in use, else the first acceptable one; null without one. */
  readOffer(values: readonly string[]): ReadKeys | null {
    const lines = this.encryption === 'none' ? [] : readCrypto(values);
    const line = lines.find((offered) => this.#isPresent(offered)) ?? lines[0];
    if (line === undefined) return null;
    const { tag, suite, masterKey } = line;
    const present = this.#present?.line;
    return this.#read({ tag, suite, local: present?.suite === suite ? present.local : newKey(suite) }, masterKey);
  }

  #isPresent({ suite, masterKey }: CryptoLine): boolean {
    const keys = this.#present?.keys;
    return keys?.suite === suite && masterKey.equals(keys.remote.export());
  }

  /** Applies parsed keys, or null for plain media. */
  agree(read: ReadKeys | null): void {
    this.#present = read;
    if (read !== null) this.#serial = read.keys.serial;
  }

  answerTo(read: ReadKeys): CryptoLine {
    return shown(read.line);
  }

  /** Null if the peer returns our own key, under which both directions would share a key stream. */
  #read(line: KeptLine, masterKey: Buffer): ReadKeys | null {
    const { suite, local } = line;
    if (timingSafeEqual(local.export(), masterKey)) return null;
    const remote = createSecretKey(masterKey);
    const before = this.#present?.keys;
    const isSame = before !== undefined && before.suite === suite && isEqual(before, { local, remote });
    return { line, keys: isSame ? before : { suite, serial: this.#serial + 1, local, remote } };
  }
}

function newKey(suite: SrtpSuite): KeyObject {
  return createSecretKey(randomBytes(MASTER_KEY_BYTES[suite]));
}

function shown({ tag, suite, local }: KeptLine): CryptoLine {
  return { tag, suite, masterKey: local.export() };
}

function isEqual(before: SrtpKeys, { local, remote }: { local: KeyObject; remote: KeyObject }): boolean {
  return local.equals(before.local as KeyObject) && remote.equals(before.remote as KeyObject);
}
