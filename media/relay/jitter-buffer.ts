import type { Codec } from '../../machines/events.ts';
import type { PacketAudio } from '../recording/timeline.ts';

/**
 * Holds the packets of a party until they are due, ordered by position, because decoders are stateful. Slots and their
 * memory are reused.
 */

/** 0.64 s of 10 ms packets: more than the longest delay and a stall of the thread. */
const MOST_PACKETS = 64;
const USUAL_PAYLOAD_BYTES = 160;

/** A waiting packet, with the fields that a decoder needs. */
export interface BufferedPacket {
  codec: Codec;
  ssrc: number;
  sequence: number;
  timestamp: number;
  datagram: Uint8Array;
  readonly payloadOffset: 0;
  payloadBytes: number;
  /** Position of its first sample, in ticks on the caller's clock. */
  position: number;
  ticks: number;
}

export class JitterBuffer {
  /** Packets dropped because the buffer was full. */
  overflows = 0;
  duplicates = 0;
  /** The first `#count` are waiting, ordered by position; the others are free. */
  readonly #packets: BufferedPacket[] = [];
  #count = 0;

  get waiting(): number {
    return this.#count;
  }

  /** Inserts a copy of a packet. Allocates only to grow. */
  put(audio: PacketAudio, position: number): void {
    let place = this.#count;
    while (place > 0 && this.#packets[place - 1]!.position > position) place -= 1;
    const before = this.#packets[place - 1];
    if (place > 0 && before!.sequence === audio.sequence && before!.ssrc === audio.ssrc) {
      this.duplicates += 1;
      return;
    }
    if (this.#count === MOST_PACKETS) {
      this.overflows += 1;
      return;
    }
    const packet = this.#packets[this.#count] ?? newPacket(audio.payloadBytes);
    for (let i = this.#count; i > place; i--) this.#packets[i] = this.#packets[i - 1]!;
    this.#packets[place] = packet;
    this.#count += 1;
    fill(packet, audio, position);
  }

  /** The first waiting packet; null without one. */
  get first(): BufferedPacket | null {
    return this.#count === 0 ? null : this.#packets[0]!;
  }

  /** Removes the first packet. It stays valid until the next `put`. */
  shift(): void {
    if (this.#count === 0) return;
    const packet = this.#packets[0]!;
    for (let i = 1; i < this.#count; i++) this.#packets[i - 1] = this.#packets[i]!;
    this.#count -= 1;
    this.#packets[this.#count] = packet;
  }
}

function newPacket(payloadBytes: number): BufferedPacket {
  const datagram = new Uint8Array(Math.max(USUAL_PAYLOAD_BYTES, payloadBytes));
  return {
    codec: 'PCMU',
    ssrc: 0,
    sequence: 0,
    timestamp: 0,
    datagram,
    payloadOffset: 0,
    payloadBytes: 0,
    position: 0,
    ticks: 0,
  };
}

function fill(packet: BufferedPacket, audio: PacketAudio, position: number): void {
  const { datagram, payloadOffset, payloadBytes } = audio;
  if (packet.datagram.length < payloadBytes) packet.datagram = new Uint8Array(payloadBytes);
  for (let i = 0; i < payloadBytes; i++) packet.datagram[i] = datagram[payloadOffset + i]!;
  packet.codec = audio.codec;
  packet.ssrc = audio.ssrc;
  packet.sequence = audio.sequence;
  packet.timestamp = audio.timestamp;
  packet.payloadBytes = payloadBytes;
  packet.position = position;
  packet.ticks = audio.ticks;
}
