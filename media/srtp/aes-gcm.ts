import { type CipherGCMTypes, createCipheriv, createDecipheriv } from 'node:crypto';
import { readUint16, readUint32, writeUint16, writeUint32 } from '../rtp/packet.ts';
import { RTCP_INDEX_BYTES, type SuiteParameters } from './crypto-suites.ts';
import type { PacketCipher } from './packet-cipher.ts';
import type { SessionKeys } from './session-keys.ts';

/** AES-GCM (RFC 7714). Reusing a nonce would reveal the authentication key; the sender prevents that. */

const TAG_BYTES = 16;
const OPTIONS = { authTagLength: TAG_BYTES };
const RTCP_HEADER_BYTES = 8;
const E_FLAG = 0x8000_0000;

export class AesGcmCipher implements PacketCipher {
  readonly #algorithm: CipherGCMTypes;
  readonly #rtp: SessionKeys;
  readonly #rtcp: SessionKeys;
  readonly #nonce = Buffer.alloc(12);
  /** The RTCP header and the index word, which are authenticated and not encrypted (RFC 7714 §9.2). */
  readonly #rtcpAssociated = Buffer.alloc(RTCP_HEADER_BYTES + RTCP_INDEX_BYTES);

  constructor(suite: SuiteParameters, { rtp, rtcp }: { rtp: SessionKeys; rtcp: SessionKeys }) {
    this.#algorithm = suite.keyBytes === 16 ? 'aes-128-gcm' : 'aes-256-gcm';
    this.#rtp = rtp;
    this.#rtcp = rtcp;
  }

  sealRtp(packet: Buffer, headerBytes: number, bytes: number, ssrc: number, roc: number, sequence: number): void {
    this.#setNonce(this.#rtp.salt, ssrc, roc, sequence);
    this.#seal(this.#rtp, packet.subarray(0, headerBytes), packet, headerBytes, bytes);
  }

  openRtp(packet: Buffer, headerBytes: number, bytes: number, ssrc: number, roc: number, sequence: number): boolean {
    this.#setNonce(this.#rtp.salt, ssrc, roc, sequence);
    return this.#open(this.#rtp, packet.subarray(0, headerBytes), packet, headerBytes, bytes);
  }

  sealRtcp(packet: Buffer, bytes: number, ssrc: number, index: number): void {
    writeUint32(packet, bytes + TAG_BYTES, (E_FLAG | index) >>> 0);
    const associated = this.#prepareRtcp(packet, bytes, ssrc, index);
    this.#seal(this.#rtcp, associated, packet, RTCP_HEADER_BYTES, bytes);
  }

  openRtcp(packet: Buffer, bytes: number, ssrc: number, index: number): boolean {
    const associated = this.#prepareRtcp(packet, bytes, ssrc, index);
    return this.#open(this.#rtcp, associated, packet, RTCP_HEADER_BYTES, bytes);
  }

  indexWordOf(packet: Buffer, bytes: number): number {
    return readUint32(packet, bytes - RTCP_INDEX_BYTES);
  }

  #prepareRtcp(packet: Buffer, bytes: number, ssrc: number, index: number): Buffer {
    // RFC 7714 §9.1: 16 zero bits and the index replace rollover counter and sequence number of RTP.
    this.#setNonce(this.#rtcp.salt, ssrc, index >>> 16, index & 0xffff);
    packet.copy(this.#rtcpAssociated, 0, 0, RTCP_HEADER_BYTES);
    packet.copy(this.#rtcpAssociated, RTCP_HEADER_BYTES, bytes + TAG_BYTES, bytes + TAG_BYTES + RTCP_INDEX_BYTES);
    return this.#rtcpAssociated;
  }

  /** RFC 7714 §8.1. */
  #setNonce(salt: Buffer, ssrc: number, high: number, low: number): void {
    const nonce = this.#nonce;
    salt.copy(nonce, 0, 0, 2);
    writeUint32(nonce, 2, readUint32(salt, 2) ^ ssrc);
    writeUint32(nonce, 6, readUint32(salt, 6) ^ high);
    writeUint16(nonce, 10, readUint16(salt, 10) ^ low);
  }

  #seal(keys: SessionKeys, associated: Buffer, packet: Buffer, from: number, to: number): void {
    const cipher = createCipheriv(this.#algorithm, keys.encryption, this.#nonce, OPTIONS);
    cipher.setAAD(associated);
    cipher.update(packet.subarray(from, to)).copy(packet, from);
    cipher.final();
    cipher.getAuthTag().copy(packet, to);
  }

  #open(keys: SessionKeys, associated: Buffer, packet: Buffer, from: number, to: number): boolean {
    const decipher = createDecipheriv(this.#algorithm, keys.encryption, this.#nonce, OPTIONS);
    decipher.setAAD(associated);
    decipher.setAuthTag(packet.subarray(to, to + TAG_BYTES));
    const clear = decipher.update(packet.subarray(from, to));
    try {
      decipher.final();
    } catch {
      return false;
    }
    clear.copy(packet, from);
    return true;
  }
}
