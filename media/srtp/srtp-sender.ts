import type { KeyObject } from 'node:crypto';
import type { SrtpSuite } from '../../machines/events.ts';
import { readUint16, readUint32 } from '../rtp/packet.ts';
import { RTCP_INDEX_BYTES, SUITES, type SuiteParameters } from './crypto-suites.ts';
import type { PacketCipher } from './packet-cipher.ts';
import { PacketIndexes } from './packet-index.ts';
import { rtcpSsrcOf, rtpHeaderBytes } from './packet-shape.ts';
import { suiteCipher } from './suite-cipher.ts';

const SEQUENCES = 0x1_0000;
/** RFC 3711 §9.2: the most packets that one key may protect. */
const MOST_RTP_INDEX = 2 ** 48 - 1;
const MOST_RTCP_INDEX = 2 ** 31 - 1;

interface SrtpSenderOptions {
  suite: SrtpSuite;
  /** Master key, followed by its salt. */
  master: KeyObject;
  /** The only SSRC sent with this key. */
  ssrc: number;
}

/**
 * Protects the packets that we send under one key. Refuses to protect two packets with the same index, because their
 * key stream would be equal (RFC 3711 §9.1). So duplicates and renumbered packets are not relayed.
 */
export class SrtpSender {
  readonly suite: SuiteParameters;
  readonly counters = { protected: 0, refused: 0 };
  readonly #cipher: PacketCipher;
  readonly #ssrc: number;
  readonly #indexes = new PacketIndexes();
  #rtcpIndex = -1;

  /** @throws RangeError if the master key does not fit the suite. */
  constructor({ suite, master, ssrc }: SrtpSenderOptions) {
    this.suite = SUITES[suite];
    this.#cipher = suiteCipher(this.suite, master);
    this.#ssrc = ssrc;
  }

  /** Protects `packet[0, bytes)` in place. Returns its new length, up to 16 more; -1 if it must not be sent. */
  protectRtp(packet: Buffer, bytes: number): number {
    const headerBytes = rtpHeaderBytes(packet, bytes);
    if (headerBytes < 0 || readUint32(packet, 8) !== this.#ssrc) return this.#refuse();
    const sequence = readUint16(packet, 2);
    const index = this.#indexes.extend(sequence);
    if (!this.#indexes.isNew(index) || index > MOST_RTP_INDEX) return this.#refuse();
    this.#indexes.note(index);
    this.#cipher.sealRtp(packet, headerBytes, bytes, this.#ssrc, Math.floor(index / SEQUENCES), sequence);
    this.counters.protected += 1;
    return bytes + this.suite.rtpTagBytes;
  }

  /** The same for a compound RTCP packet, up to 20 bytes more. */
  protectRtcp(packet: Buffer, bytes: number): number {
    if (rtcpSsrcOf(packet, bytes) !== this.#ssrc || this.#rtcpIndex >= MOST_RTCP_INDEX) return this.#refuse();
    this.#rtcpIndex += 1;
    this.#cipher.sealRtcp(packet, bytes, this.#ssrc, this.#rtcpIndex);
    this.counters.protected += 1;
    return bytes + this.suite.rtcpTagBytes + RTCP_INDEX_BYTES;
  }

  #refuse(): number {
    this.counters.refused += 1;
    return -1;
  }
}
