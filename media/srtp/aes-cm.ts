import { type Cipheriv, createCipheriv, createHmac, type KeyObject } from 'node:crypto';
import { readUint16, readUint32, writeUint32 } from '../rtp/packet.ts';
import { RTCP_INDEX_BYTES, type SuiteParameters } from './crypto-suites.ts';
import type { PacketCipher } from './packet-cipher.ts';
import type { SessionKeys } from './session-keys.ts';

/** AES in counter mode with HMAC-SHA1 (RFC 3711 §4.1.1 and §4.2.1). */

const BLOCK_BYTES = 16;
/** An Ethernet packet. A longer one allocates. */
const USUAL_BLOCKS = 94;
const RTCP_HEADER_BYTES = 8;
const E_FLAG = 0x8000_0000;

export class AesCmCipher implements PacketCipher {
  readonly #suite: SuiteParameters;
  readonly #rtpStream: CounterMode;
  readonly #rtcpStream: CounterMode;
  readonly #rtpAuthentication: KeyObject;
  readonly #rtcpAuthentication: KeyObject;
  /** Holds a received tag while the rollover counter takes its place. */
  readonly #tag = Buffer.alloc(20);

  constructor(suite: SuiteParameters, { rtp, rtcp }: { rtp: SessionKeys; rtcp: SessionKeys }) {
    this.#suite = suite;
    this.#rtpStream = new CounterMode(rtp);
    this.#rtcpStream = new CounterMode(rtcp);
    this.#rtpAuthentication = rtp.authentication;
    this.#rtcpAuthentication = rtcp.authentication;
  }

  sealRtp(packet: Buffer, headerBytes: number, bytes: number, ssrc: number, roc: number, sequence: number): void {
    this.#rtpStream.apply(packet, headerBytes, bytes, ssrc, roc, sequence);
    // The MAC covers the rollover counter, which is not sent. It temporarily occupies the place of the tag.
    writeUint32(packet, bytes, roc);
    digest(this.#rtpAuthentication, packet, bytes + 4).copy(packet, bytes, 0, this.#suite.rtpTagBytes);
  }

  openRtp(packet: Buffer, headerBytes: number, bytes: number, ssrc: number, roc: number, sequence: number): boolean {
    const tagBytes = this.#suite.rtpTagBytes;
    packet.copy(this.#tag, 0, bytes, bytes + tagBytes);
    writeUint32(packet, bytes, roc);
    const expected = digest(this.#rtpAuthentication, packet, bytes + 4);
    this.#tag.copy(packet, bytes, 0, tagBytes);
    if (!areEqual(expected, packet, bytes, tagBytes)) return false;
    this.#rtpStream.apply(packet, headerBytes, bytes, ssrc, roc, sequence);
    return true;
  }

  sealRtcp(packet: Buffer, bytes: number, ssrc: number, index: number): void {
    this.#rtcpStream.apply(packet, RTCP_HEADER_BYTES, bytes, ssrc, index >>> 16, index & 0xffff);
    writeUint32(packet, bytes, (E_FLAG | index) >>> 0);
    const end = bytes + RTCP_INDEX_BYTES;
    digest(this.#rtcpAuthentication, packet, end).copy(packet, end, 0, this.#suite.rtcpTagBytes);
  }

  openRtcp(packet: Buffer, bytes: number, ssrc: number, index: number): boolean {
    const end = bytes + RTCP_INDEX_BYTES;
    const expected = digest(this.#rtcpAuthentication, packet, end);
    if (!areEqual(expected, packet, end, this.#suite.rtcpTagBytes)) return false;
    this.#rtcpStream.apply(packet, RTCP_HEADER_BYTES, bytes, ssrc, index >>> 16, index & 0xffff);
    return true;
  }

  indexWordOf(packet: Buffer, bytes: number): number {
    return readUint32(packet, bytes - this.#suite.rtcpTagBytes - RTCP_INDEX_BYTES);
  }
}

/**
 * The key stream of RFC 3711 §4.1.1, from one AES object for the life of the key, which encrypts all counter blocks of
 * a packet at once. A new counter-mode object per packet takes three times as long.
 */
class CounterMode {
  readonly #aes: Cipheriv;
  readonly #salt: Buffer;
  readonly #counters = Buffer.alloc(USUAL_BLOCKS * BLOCK_BYTES);

  constructor({ encryption, salt }: SessionKeys) {
    this.#aes = createCipheriv(`aes-${(encryption.symmetricKeySize ?? 0) * 8}-ecb`, encryption, null);
    this.#aes.setAutoPadding(false);
    this.#salt = salt;
  }

  /** XORs the key stream over `packet[from, to)`. `high` and `low` are the 32 and 16 bits of the index. */
  apply(packet: Buffer, from: number, to: number, ssrc: number, high: number, low: number): void {
    if (to <= from) return;
    const blocks = Math.ceil((to - from) / BLOCK_BYTES);
    const bytes = blocks * BLOCK_BYTES;
    const counters = blocks <= USUAL_BLOCKS ? this.#counters.subarray(0, bytes) : Buffer.alloc(bytes);
    const salt = this.#salt;
    const word0 = readUint32(salt, 0);
    const word1 = readUint32(salt, 4) ^ ssrc;
    const word2 = readUint32(salt, 8) ^ high;
    const word3 = (readUint16(salt, 12) ^ low) << 16;
    for (let block = 0; block < blocks; block++) {
      const at = block * BLOCK_BYTES;
      writeUint32(counters, at, word0);
      writeUint32(counters, at + 4, word1);
      writeUint32(counters, at + 8, word2);
      writeUint32(counters, at + 12, word3 | block);
    }
    const keyStream = this.#aes.update(counters);
    for (let i = 0; from + i < to; i++) packet[from + i]! ^= keyStream[i]!;
  }
}

function digest(key: KeyObject, packet: Buffer, bytes: number): Buffer {
  const covered = bytes === packet.length ? packet : packet.subarray(0, bytes);
  return createHmac('sha1', key).update(covered).digest();
}

/** Constant-time comparison. */
function areEqual(expected: Buffer, packet: Buffer, offset: number, count: number): boolean {
  let difference = 0;
  for (let i = 0; i < count; i++) difference |= expected[i]! ^ packet[offset + i]!;
  return difference === 0;
}
