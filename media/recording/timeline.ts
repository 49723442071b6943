import type { Codec } from '../../machines/events.ts';
import { ALAW_TO_LINEAR, MULAW_TO_LINEAR } from '../codecs/g711.ts';

/**
 * Some seconds of one track, or of two side by side, at 8 or 16 kHz, addressed by position in samples. Packets are decoded into their
 * place in any order; what nobody filled is silence. `take` hands out the oldest part and clears it.
 */

const CAPACITY_TICKS = 32_768;

/** How a sample came: not at all, in a packet, or not because its speaker pauses from here on. */
export const MISSING = 0;
export const ARRIVED = 1;
export const PAUSE = 2;

/**
 * The audio of a packet and its place in the stream. Times are in ticks of 125 us, which are samples at 8 kHz, whatever the
 * clock of the codec. One object may be reused for every packet.
 */
export interface PacketAudio {
  readonly codec: Codec;
  readonly ssrc: number;
  readonly sequence: number;
  /** 32 bits, of the first sample. */
  readonly timestamp: number;
  readonly ticks: number;
  /** Mean square of the samples. */
  readonly power: number;
  /** G.711 is decoded from here to where it goes. */
  readonly datagram: Uint8Array;
  readonly payloadOffset: number;
  readonly payloadBytes: number;
  /** The samples at 8 kHz, one a tick, until the next packet. */
  narrow(): Int16Array;
  /** The samples at 16 kHz, two a tick, until the next packet. */
  wide(): Int16Array;
}

export type Channel = 0 | 1;

interface TimelineOptions {
  /** 1 for 8 kHz, which is the default, and 2 for 16 kHz. */
  samplesPerTick?: 1 | 2;
  /** In samples, a power of two. Default: four seconds. */
  capacity?: number;
  /** Whether `take` can report which samples arrived; for one channel only. Default false. */
  notesArrivals?: boolean;
  /** Where it begins. Default 0. */
  taken?: number;
}

export class Timeline {
  readonly samplesPerTick: 1 | 2;
  readonly #channels: 1 | 2;
  /** Interleaved, index `channels * (position & mask) + channel`. */
  readonly #ring: Int16Array;
  readonly #capacity: number;
  readonly #mask: number;
  /** How each sample of the ring came; null where silence and loss are the same. */
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

  /** Everything before this position was handed out. */
  get taken(): number {
    return this.#taken;
  }

  /** The first position that does not fit before something is taken. */
  get end(): number {
    return this.#taken + this.#capacity;
  }

  /** Puts the audio of a packet to `position`; parts outside `taken`..`end` are left out. Returns the samples written. */
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

  /** How the oldest sample came. */
  get firstArrival(): number {
    return this.#arrivals?.[this.#taken & this.#mask] ?? MISSING;
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
