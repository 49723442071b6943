import { ALAW_TO_LINEAR, type G711Codec, LINEAR_TO_ALAW, LINEAR_TO_MULAW, MULAW_TO_LINEAR } from '../codecs/g711.ts';
import type { SendingEnd } from '../media-plane.ts';
import { RTP_HEADER_BYTES } from '../rtp/packet.ts';
import { sequenceDelta } from '../rtp/receiver-statistics.ts';
import { NarrowSound } from './narrow-sound.ts';

/**
 * A sound that the platform plays to a leg, and its progress. It replaces the other party's audio, or is mixed with it
 * at reduced level. Encoded as it is sent, so that it follows codec changes. Positions are ticks of 125 us: one sample
 * at 8 kHz, two at 16 kHz.
 */

/** 12.04 dB: the other party stays intelligible, and the sound over it clear. */
const DUCKED_GAIN = 64;
const FULL_GAIN = 256;
/** 40 ms from one level to the other, because a step would click. */
const RAMP_SAMPLES = 320;
/** Gain of the other party, in parts of `FULL_GAIN`, by distance in ticks to the nearer end of the sound. */
const GAIN_BY_DISTANCE = Int16Array.from({ length: RAMP_SAMPLES + 1 }, (_, distance) =>
  Math.round(FULL_GAIN + ((DUCKED_GAIN - FULL_GAIN) * distance) / RAMP_SAMPLES),
);

const NOTHING = new Int16Array(0);

export interface PlaybackOptions {
  /** Linear, mono. */
  samples: Int16Array<ArrayBuffer>;
  /** Default 8000. */
  sampleRateHz?: 8000 | 16_000 | undefined;
  /** True mixes it with the other party; false replaces that party. */
  over: boolean;
  /** Repeats it. Default false. */
  isLooped?: boolean | undefined;
  /** Ends instead of waiting if the leg does not receive media: at the start, or `always`. Default false. */
  ifListening?: boolean | 'always' | undefined;
  onStarted: () => void;
  /** Called once. */
  onEnded: (end: SendingEnd) => void;
}

export class Playback {
  readonly over: boolean;
  readonly #ticks: number;
  /** At 8 kHz; empty until a 16 kHz sound must be converted. */
  #samples: Int16Array;
  /** At 16 kHz; null for a sound of 8 kHz. */
  readonly #wide: Int16Array | null;
  #narrow: NarrowSound | null = null;
  readonly #isLooped: boolean;
  readonly #ifListening: boolean | 'always';
  readonly #onStarted: () => void;
  readonly #onEnded: (end: SendingEnd) => void;
  #position = 0;
  #hasStarted = false;
  #hasEnded = false;
  /** Sequence number of the last mixed packet; -1 after a frame alone, because any later packet has a new number. */
  #lastSequence = -1;
  #lastPosition = 0;

  constructor(options: PlaybackOptions) {
    const { samples, sampleRateHz = 8000, over, isLooped = false, ifListening = false, onStarted, onEnded } = options;
    // Drops an odd last sample to get whole ticks.
    this.#wide = sampleRateHz === 16_000 ? samples.subarray(0, samples.length & ~1) : null;
    this.#isLooped = isLooped && (this.#wide ?? samples).length > 0;
    this.#ticks = this.#wide === null ? samples.length : this.#wide.length / 2;
    this.#samples = this.#wide === null ? samples : NOTHING;
    this.#ifListening = ifListening;
    this.over = over;
    this.#onStarted = onStarted;
    this.#onEnded = onEnded;
  }

  get isSpent(): boolean {
    return !this.#isLooped && this.#position >= this.#ticks;
  }

  /** Whether it ends if the leg does not receive media now. */
  get requiresListener(): boolean {
    return this.#ifListening === 'always' || (this.#ifListening && !this.#hasStarted);
  }

  get isWide(): boolean {
    return this.#wide !== null;
  }

  /** Fills the payload of `packet` with the next samples, padded with silence. */
  takeFrame(codec: G711Codec, packet: Uint8Array): void {
    this.#start();
    this.#lastSequence = -1;
    this.#prepare(this.#position, packet.length - RTP_HEADER_BYTES);
    const encode = encodingTable(codec);
    for (let i = RTP_HEADER_BYTES; i < packet.length; i++) {
      packet[i] = encode[this.#sampleAt(this.#position) & 0xffff]!;
      this.#position += 1;
    }
  }

  /**
   * Fills the payload of `packet` with the next samples, mixed with the other party's octets from `datagram` at
   * `payloadOffset`. A duplicate or late packet, by its sequence number, consumes no new samples.
   */
  mix(
    codec: G711Codec,
    packet: Uint8Array,
    sequence: number,
    otherCodec: G711Codec,
    datagram: Uint8Array,
    payloadOffset: number,
  ): void {
    this.#start();
    const count = packet.length - RTP_HEADER_BYTES;
    const position = this.#advance(sequence, count);
    this.#prepare(position, count);
    const encode = encodingTable(codec);
    const decode = otherCodec === 'PCMU' ? MULAW_TO_LINEAR : ALAW_TO_LINEAR;
    for (let i = 0; i < count; i++) {
      const at = position + i;
      const other = (decode[datagram[payloadOffset + i]!]! * this.#gainAt(at)) >> 8;
      const sum = other + this.#sampleAt(at);
      packet[RTP_HEADER_BYTES + i] = encode[Math.max(-32_768, Math.min(32_767, sum)) & 0xffff]!;
    }
  }

  /** As `takeFrame`, before encoding: fills `ticks`, at 16 kHz if it `isWide`, else at 8 kHz. */
  takeSamples(target: Int16Array, ticks: number): void {
    this.#start();
    this.#lastSequence = -1;
    if (this.isWide) for (let i = 0; i < 2 * ticks; i++) target[i] = this.#wideAt(2 * this.#position + i);
    else for (let i = 0; i < ticks; i++) target[i] = this.#sampleAt(this.#position + i);
    this.#position += ticks;
  }

  /** As `mix`, before encoding: mixes into `ticks` of the other party at 8 kHz. */
  mixSamples(target: Int16Array, ticks: number, sequence: number): void {
    this.#start();
    const position = this.#advance(sequence, ticks);
    this.#prepare(position, ticks);
    for (let i = 0; i < ticks; i++) {
      const other = (target[i]! * this.#gainAt(position + i)) >> 8;
      target[i] = Math.max(-32_768, Math.min(32_767, other + this.#sampleAt(position + i)));
    }
  }

  /** As `mixSamples`, for two samples per tick at 16 kHz. Only if it `isWide`. */
  mixWide(target: Int16Array, ticks: number, sequence: number): void {
    this.#start();
    const position = this.#advance(sequence, ticks);
    for (let i = 0; i < 2 * ticks; i++) {
      const other = (target[i]! * this.#gainAt(position + (i >> 1))) >> 8;
      target[i] = Math.max(-32_768, Math.min(32_767, other + this.#wideAt(2 * position + i)));
    }
  }

  /** Converts the samples that `#sampleAt` will return. */
  #prepare(position: number, ticks: number): void {
    if (this.#wide === null) return;
    this.#narrow ??= new NarrowSound(this.#wide, this.#isLooped);
    this.#samples = this.#narrow.samples;
    const from = this.#isLooped ? position % this.#ticks : position;
    this.#narrow.prepare(from, from + ticks);
    if (this.#isLooped && from + ticks > this.#ticks) this.#narrow.prepare(0, from + ticks - this.#ticks);
  }

  #wideAt(index: number): number {
    const wide = this.#wide!;
    if (this.#isLooped) return wide[index % wide.length]!;
    return index < wide.length ? wide[index]! : 0;
  }

  /** Silence after the last sample, unless looped. */
  #sampleAt(position: number): number {
    const samples = this.#samples;
    if (this.#isLooped) return samples[position % samples.length]!;
    return position < samples.length ? samples[position]! : 0;
  }

  /** Gain of the other party, in parts of `FULL_GAIN`. A looped sound has no end at which it rises. */
  #gainAt(position: number): number {
    const left = this.#isLooped ? RAMP_SAMPLES : this.#ticks - position;
    return GAIN_BY_DISTANCE[Math.max(0, Math.min(position, left, RAMP_SAMPLES))]!;
  }

  /** Returns the start position for a packet and advances by `count`. */
  #advance(sequence: number, count: number): number {
    const isNew = this.#lastSequence < 0 || sequenceDelta(sequence, this.#lastSequence) > 0;
    if (!isNew) return this.#lastPosition;
    this.#lastSequence = sequence;
    this.#lastPosition = this.#position;
    this.#position += count;
    return this.#lastPosition;
  }

  /** Idempotent: only the first call reports. */
  end(end: SendingEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#onEnded(end);
  }

  dump(): unknown {
    return {
      over: this.over,
      isLooped: this.#isLooped,
      position: this.#position,
      ticks: this.#ticks,
      isWide: this.isWide,
    };
  }

  #start(): void {
    if (this.#hasStarted) return;
    this.#hasStarted = true;
    this.#onStarted();
  }
}

function encodingTable(codec: G711Codec): Uint8Array {
  return codec === 'PCMU' ? LINEAR_TO_MULAW : LINEAR_TO_ALAW;
}
