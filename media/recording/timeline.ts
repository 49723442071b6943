import type { Codec } from '../../machines/events.ts';
import { ALAW_TO_LINEAR, MULAW_TO_LINEAR } from '../codecs/g711.ts';

/**
 * Some seconds of one track, or of two side by side, addressed by position in samples. Packets are decoded into their
 * place in any order; what nobody filled is silence. `take` hands out the oldest part and clears it.
 */

const CAPACITY = 32_768;

/** How a sample came: not at all, in a packet, or not because its speaker pauses from here on. */
export const MISSING = 0;
export const ARRIVED = 1;
export const PAUSE = 2;

/** The audio of a packet. One object may be reused for every packet. */
export interface PacketAudio {
  codec: Codec;
  datagram: Uint8Array;
  /** Of G.722: a sample at 8 kHz for each octet of the payload. G.711 is decoded where it goes. */
  samples: Int16Array;
}

export type Channel = 0 | 1;

interface TimelineOptions {
  /** In samples, a power of two. Default: four seconds. */
  capacity?: number;
  /** Whether `take` can report which samples arrived; for one channel only. Default false. */
  notesArrivals?: boolean;
  /** Where it begins. Default 0. */
  taken?: number;
}

export class Timeline {
  readonly #channels: 1 | 2;
  /** Interleaved, index `channels * (position & mask) + channel`. */
  readonly #ring: Int16Array;
  readonly #capacity: number;
  readonly #mask: number;
  /** How each sample of the ring came; null where silence and loss are the same. */
  readonly #arrivals: Uint8Array | null;
  #taken = 0;

  constructor(channels: 1 | 2, { capacity = CAPACITY, notesArrivals = false, taken = 0 }: TimelineOptions = {}) {
    this.#channels = channels;
    this.#capacity = capacity;
    this.#mask = capacity - 1;
    this.#ring = new Int16Array(channels * capacity);
    this.#arrivals = notesArrivals ? new Uint8Array(capacity) : null;
    this.#taken = taken;
  }

  /** Everything before this position was handed out. */
  get taken(): number {
    return this.#taken;
  }

  /** The first position that does not fit before something is taken. */
  get end(): number {
    return this.#taken + this.#capacity;
  }

  /**
   * Puts the audio of a payload, octets `from`..`to` of its datagram, to `position`; parts outside `taken`..`end` are left
   * out. Returns the samples written.
   */
  put(channel: Channel, position: number, audio: PacketAudio, from: number, to: number): number {
    const { codec, datagram, samples } = audio;
    const isDecoded = codec === 'G722';
    const table = codec === 'PCMU' ? MULAW_TO_LINEAR : ALAW_TO_LINEAR;
    const channels = this.#channels;
    const mask = this.#mask;
    const first = Math.max(from, from + this.#taken - position);
    const last = Math.min(to, from + this.end - position);
    const arrivals = this.#arrivals;
    for (let i = first; i < last; i++) {
      const slot = (position + i - from) & mask;
      this.#ring[channels * slot + channel] = isDecoded ? samples[i - from]! : table[datagram[i]!]!;
      if (arrivals !== null) arrivals[slot] = ARRIVED;
    }
    return Math.max(0, last - first);
  }

  /** Notes that the speaker pauses from `position` on. False when that was taken already. */
  markPause(position: number): boolean {
    if (position < this.#taken) return false;
    const slot = position & this.#mask;
    if (this.#arrivals !== null && position < this.end && this.#arrivals[slot] === MISSING)
      this.#arrivals[slot] = PAUSE;
    return true;
  }

  /**
   * Moves the oldest `count` sample frames into `target` from its start, interleaved, and how they came into `arrivals`:
   * `MISSING`, `ARRIVED` or `PAUSE`.
   */
  take(count: number, target: Int16Array, arrivals: Uint8Array | null = null): void {
    const channels = this.#channels;
    let copied = 0;
    while (copied < count) {
      const slot = this.#taken & this.#mask;
      const run = Math.min(count - copied, this.#capacity - slot);
      target.set(this.#ring.subarray(channels * slot, channels * (slot + run)), channels * copied);
      this.#ring.fill(0, channels * slot, channels * (slot + run));
      if (this.#arrivals !== null) {
        arrivals?.set(this.#arrivals.subarray(slot, slot + run), copied);
        this.#arrivals.fill(MISSING, slot, slot + run);
      }
      this.#taken += run;
      copied += run;
    }
  }
}
