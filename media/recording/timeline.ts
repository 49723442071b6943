import type { Codec } from '../../machines/events.ts';
import { ALAW_TO_LINEAR, MULAW_TO_LINEAR } from '../codecs/g711.ts';

/**
 * Some seconds of one or two channels at 8 or 16 kHz, by sample position. Packets may be written in any order; gaps are
 * silence. `take` returns the oldest part and clears it.
 */

const CAPACITY_TICKS = 32_768;

/** State of a sample: not received, received, or not sent because the speaker pauses. */
export const MISSING = 0;
export const ARRIVED = 1;
export const PAUSE = 2;

/**
 * Decoded audio of a packet and its position in the stream, in ticks of 125 us (samples at 8 kHz), whatever the codec's
 * clock. The object may be reused.
 */
export interface PacketAudio {
  readonly codec: Codec;
  readonly ssrc: number;
  readonly sequence: number;
  /** 32 bits, of the first sample. */
  readonly timestamp: number;
  readonly ticks: number;
  readonly power: number;
  /** Source of G.711, which is decoded directly into its destination. */
  readonly datagram: Uint8Array;
  readonly payloadOffset: number;
  readonly payloadBytes: number;
  /** Samples at 8 kHz, one per tick, valid until the next packet. */
  narrow(): Int16Array;
  /** Samples at 16 kHz, two per tick, valid until the next packet. */
  wide(): Int16Array;
}

export type Channel = 0 | 1;

interface TimelineOptions {
  /** 1 for 8 kHz, the default, and 2 for 16 kHz. */
  samplesPerTick?: 1 | 2;
  /** In samples, a power of two. Default: four seconds. */
  capacity?: number;
  /** Whether `take` can report which samples arrived; one channel only. Default false. */
  notesArrivals?: boolean;
  /** Start position. Default 0. */
  taken?: number;
}

export class Timeline {
  readonly samplesPerTick: 1 | 2;
  readonly #channels: 1 | 2;
  /** Interleaved, index `channels * (position & mask) + channel`. */
  readonly #ring: Int16Array;
  readonly #capacity: number;
  readonly #mask: number;
  /** State of each sample; null if not tracked. */
  readonly #arrivals: Uint8Array | null;
  #taken = 0;

  constructor(channels: 1 | 2, options: TimelineOptions = {}) {
    const { samplesPerTick = 1, notesArrivals = false, taken = 0 } = options;
    const { capacity = CAPACITY_TICKS * samplesPerTick } = options;
    this.samplesPerTick = samplesPerTick;
    this.#channels = channels;
    this.#capacity = capacity;
    this.#mask = capacity - 1;
    this.#ring = new Int16Array(channels * capacity);
    this.#arrivals = notesArrivals ? new Uint8Array(capacity) : null;
    this.#taken = taken;
  }

  /** Position up to which everything was taken. */
  get taken(): number {
    return this.#taken;
  }

  /** First position beyond the capacity. */
  get end(): number {
    return this.#taken + this.#capacity;
  }

  /**
   * Writes the audio of a packet to `position`, except for parts outside `taken`..`end`. Returns the samples written.
   */
  put(channel: Channel, position: number, audio: PacketAudio): number {
    const count = audio.ticks * this.samplesPerTick;
    if (this.samplesPerTick === 2) return this.putSamples(channel, position, audio.wide(), count);
    const { codec, datagram, payloadOffset } = audio;
    if (codec !== 'PCMU' && codec !== 'PCMA') return this.putSamples(channel, position, audio.narrow(), count);
    const table = codec === 'PCMU' ? MULAW_TO_LINEAR : ALAW_TO_LINEAR;
    const last = Math.min(count, this.end - position);
    const first = Math.max(0, this.#taken - position);
    for (let i = first; i < last; i++) this.#set(channel, position + i, table[datagram[payloadOffset + i]!]!);
    return Math.max(0, last - first);
  }

  /** As `put`, for the first `count` samples at the rate of the timeline. */
  putSamples(channel: Channel, position: number, samples: Int16Array, count: number): number {
    const last = Math.min(count, this.end - position);
    const first = Math.max(0, this.#taken - position);
    for (let i = first; i < last; i++) this.#set(channel, position + i, samples[i]!);
    return Math.max(0, last - first);
  }

  #set(channel: Channel, position: number, sample: number): void {
    const slot = position & this.#mask;
    this.#ring[this.#channels * slot + channel] = sample;
    if (this.#arrivals !== null) this.#arrivals[slot] = ARRIVED;
  }

  get firstArrival(): number {
    return this.#arrivals?.[this.#taken & this.#mask] ?? MISSING;
  }

  /** Marks the start of a pause. False if `position` was already taken. */
  markPause(position: number): boolean {
    if (position < this.#taken) return false;
    const slot = position & this.#mask;
    if (this.#arrivals !== null && position < this.end && this.#arrivals[slot] === MISSING)
      this.#arrivals[slot] = PAUSE;
    return true;
  }

  /**
   * Moves the oldest `count` sample frames into `target`, interleaved, and their states (`MISSING`, `ARRIVED` or
   * `PAUSE`) into `arrivals`.
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
