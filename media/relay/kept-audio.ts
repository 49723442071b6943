import { enlarged } from '../enlarged.ts';
import { RTP_HEADER_BYTES, type RtpHeader } from '../rtp/packet.ts';

/**
 * Payloads of packets on the fast path until the next tick of their session, in one block of memory. Streams are
 * numbered from 0.
 */

/** A slot: the time as a double, the timestamp, the payload's size, and the payload. Four cache lines. */
const SLOT_WORDS = 64;
const TIMESTAMP = 2;
const OCTETS = 3;
const PAYLOAD = 4;

/** 30 ms of G.711. */
export const MOST_KEPT_OCTETS = 4 * (SLOT_WORDS - PAYLOAD);

/** A packet in the receive buffer. */
interface KeptPacket {
  words: Int32Array;
  /** Word of its RTP header. */
  at: number;
  /** Size of its payload. */
  octets: number;
  timestamp: number;
  nowMs: number;
}

export class KeptAudio {
  readonly #slotsPerStream: number;
  #words = new Int32Array(0);
  #times = new Float64Array(0);
  #bytes = new Uint8Array(0);

  constructor(slotsPerStream: number) {
    this.#slotsPerStream = slotsPerStream;
  }

  /** Memory of the payloads, at the offsets from `read`. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  makeRoom(stream: number): void {
    const words = (stream + 1) * this.#slotsPerStream * SLOT_WORDS;
    if (words <= this.#words.length) return;
    this.#words = enlarged(this.#words, words);
    this.#times = new Float64Array(this.#words.buffer);
    this.#bytes = new Uint8Array(this.#words.buffer);
  }

  /** Keeps a packet with at most `MOST_KEPT_OCTETS`. */
  keep(stream: number, slot: number, { words, at, octets, timestamp, nowMs }: KeptPacket): void {
    const kept = this.#words;
    const start = this.#startOf(stream, slot);
    this.#times[start / 2] = nowMs;
    kept[start + TIMESTAMP] = timestamp;
    kept[start + OCTETS] = octets;
    const from = at + RTP_HEADER_BYTES / 4;
    // Up to three bytes more than the payload, which are within the receive buffer.
    for (let word = 0; 4 * word < octets; word++) kept[start + PAYLOAD + word] = words[from + word]!;
  }

  /** Sets the timestamp and payload of `header`, and returns when the packet arrived. */
  read(stream: number, slot: number, header: RtpHeader): number {
    const start = this.#startOf(stream, slot);
    header.timestamp = this.#words[start + TIMESTAMP]! >>> 0;
    header.payloadOffset = 4 * (start + PAYLOAD);
    header.payloadBytes = this.#words[start + OCTETS]!;
    return this.#times[start / 2]!;
  }

  #startOf(stream: number, slot: number): number {
    return (stream * this.#slotsPerStream + slot) * SLOT_WORDS;
  }
}
