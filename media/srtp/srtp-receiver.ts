import type { KeyObject } from 'node:crypto';
import type { SrtpSuite } from '../../machines/events.ts';
import { readUint16, readUint32 } from '../rtp/packet.ts';
import { RTCP_INDEX_BYTES, SUITES, type SuiteParameters } from './crypto-suites.ts';
import type { PacketCipher } from './packet-cipher.ts';
import { PacketIndexes } from './packet-index.ts';
import { rtcpSsrcOf, rtpHeaderBytes } from './packet-shape.ts';
import { suiteCipher } from './suite-cipher.ts';

const SEQUENCES = 0x1_0000;
const E_FLAG = 0x8000_0000;
/**
 * Streams a peer may send under one key. A phone has one, a transfer adds one. None is forgotten, because that would
 * allow a replay.
 */
const MOST_SOURCES = 64;
/** A first packet with a lower sequence number may follow a rollover that we did not receive. */
const FRESH_ROLLOVER = 0x1000;

export interface SrtpDrops {
  /** Not RTP or RTCP, or too short. */
  malformed: number;
  /** Wrong tag: another key, or a forgery. */
  unauthentic: number;
  /** Duplicate, or older than the replay window. */
  replayed: number;
  /** One stream more than `MOST_SOURCES`; not authenticated. */
  excessSources: number;
}

export function noDrops(): SrtpDrops {
  return { malformed: 0, unauthentic: 0, replayed: 0, excessSources: 0 };
}

/** Authenticates and decrypts a peer's packets under one key. A dropped packet changes only a counter. */
export class SrtpReceiver {
  readonly suite: SuiteParameters;
  readonly drops = noDrops();
  opened = 0;
  readonly #cipher: PacketCipher;
  readonly #rtpSources = new Map<number, PacketIndexes>();
  readonly #rtcpSources = new Map<number, PacketIndexes>();

  /** @param options the master key is followed by its salt. @throws RangeError if it does not fit the suite. */
  constructor({ suite, master }: { suite: SrtpSuite; master: KeyObject }) {
    this.suite = SUITES[suite];
    this.#cipher = suiteCipher(this.suite, master);
  }

  /** Opens a datagram in place. Returns the length of the RTP packet; -1 if it is dropped and unchanged. */
  openRtp(datagram: Buffer): number {
    const bytes = datagram.length - this.suite.rtpTagBytes;
    const headerBytes = rtpHeaderBytes(datagram, bytes);
    if (headerBytes < 0) return this.#drop('malformed');
    const sequence = readUint16(datagram, 2);
    const ssrc = readUint32(datagram, 8);
    const known = this.#rtpSources.get(ssrc);
    let index = known === undefined ? sequence : known.extend(sequence);
    if (known?.isNew(index) === false) return this.#drop('replayed');
    if (known === undefined && this.#rtpSources.size >= MOST_SOURCES) return this.#drop('excessSources');
    if (!this.#authenticates(datagram, headerBytes, bytes, ssrc, index)) {
      if (known !== undefined || sequence >= FRESH_ROLLOVER) return this.#drop('unauthentic');
      index += SEQUENCES;
      if (!this.#authenticates(datagram, headerBytes, bytes, ssrc, index)) return this.#drop('unauthentic');
    }
    this.#accept(this.#rtpSources, known, ssrc, index);
    return bytes;
  }

  /** The same for RTCP. Drops unencrypted packets, which were never negotiated. */
  openRtcp(datagram: Buffer): number {
    const bytes = datagram.length - this.suite.rtcpTagBytes - RTCP_INDEX_BYTES;
    const ssrc = rtcpSsrcOf(datagram, bytes);
    if (ssrc < 0) return this.#drop('malformed');
    const word = this.#cipher.indexWordOf(datagram, datagram.length);
    if (word < E_FLAG) return this.#drop('unauthentic');
    const index = word - E_FLAG;
    const known = this.#rtcpSources.get(ssrc);
    if (known?.isNew(index) === false) return this.#drop('replayed');
    if (known === undefined && this.#rtcpSources.size >= MOST_SOURCES) return this.#drop('excessSources');
    if (!this.#cipher.openRtcp(datagram, bytes, ssrc, index)) return this.#drop('unauthentic');
    this.#accept(this.#rtcpSources, known, ssrc, index);
    return bytes;
  }

  get sources(): number {
    return this.#rtpSources.size;
  }

  #authenticates(datagram: Buffer, headerBytes: number, bytes: number, ssrc: number, index: number): boolean {
    const sequence = index % SEQUENCES;
    return this.#cipher.openRtp(datagram, headerBytes, bytes, ssrc, (index - sequence) / SEQUENCES, sequence);
  }

  #accept(sources: Map<number, PacketIndexes>, known: PacketIndexes | undefined, ssrc: number, index: number): void {
    const indexes = known ?? new PacketIndexes();
    if (known === undefined) sources.set(ssrc, indexes);
    indexes.note(index);
    this.opened += 1;
  }

  #drop(why: keyof SrtpDrops): number {
    this.drops[why] += 1;
    return -1;
  }
}
