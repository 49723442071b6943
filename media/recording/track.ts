import { timestampDelta } from '../rtp/receiver-statistics.ts';
import type { Channel, PacketAudio, Timeline } from './timeline.ts';

const TICKS_PER_MS = 8;

interface TrackOptions {
  timeline: Timeline;
  /** Default 0. */
  channel?: Channel;
  /** Time of position 0 of the timeline. */
  startedAtMs: number;
  /** Takes due samples from the timeline; called if a packet does not fit. */
  makeRoom: (nowMs: number) => void;
}

/** Writes the packets of one party to their positions in a timeline. */
export class Track {
  samplesLate = 0;
  readonly #timeline: Timeline;
  readonly #channel: Channel;
  readonly #startedAtMs: number;
  readonly #makeRoom: (nowMs: number) => void;
  readonly #anchor = new TrackAnchor();

  constructor({ timeline, channel = 0, startedAtMs, makeRoom }: TrackOptions) {
    this.#timeline = timeline;
    this.#channel = channel;
    this.#startedAtMs = startedAtMs;
    this.#makeRoom = makeRoom;
  }

  /** Decodes a packet to its position. Returns the position after it. Allocates nothing. */
  add(audio: PacketAudio, nowMs: number): number {
    const timeline = this.#timeline;
    const { samplesPerTick } = timeline;
    const takenTicks = timeline.taken / samplesPerTick;
    const position = samplesPerTick * this.#anchor.place(audio, this.#tickAt(nowMs), takenTicks, audio.power);
    const samples = samplesPerTick * audio.ticks;
    // After a stall of this thread the timeline may still be full of old audio.
    if (position + samples > timeline.end) this.#makeRoom(nowMs);
    this.samplesLate += samples - timeline.put(this.#channel, position, audio);
    return position + samples;
  }

  sampleAt(nowMs: number): number {
    return this.#timeline.samplesPerTick * this.#tickAt(nowMs);
  }

  #tickAt(nowMs: number): number {
    return Math.round((nowMs - this.#startedAtMs) * TICKS_PER_MS);
  }

  get adjustments(): number {
    return this.#anchor.adjustments;
  }
}

/**
 * Maps the samples of one leg to the recording's clock. RTP timestamps give exact distances, arrival times the common
 * clock of both legs. The first packet is anchored at its arrival, later ones follow their timestamps. The anchor moves
 * only on a lasting difference: clock drift, a changed network delay, or a timestamp jump. A sample lands within
 * `MOST_AHEAD` of now, so bad timestamps cannot create hours of silence.
 */

/** In ticks of 125 us. */
const MOST_AHEAD = 4000;
const MOST_BEHIND = 24_000;
/**
 * Packets are delayed, never early. So the least delayed one of a window shows the clock difference, despite jitter and
 * stalls.
 */
const DRIFT_WINDOW = 40_000;
const DRIFT_TOLERATED = 240;
/** Frames that arrived too late since the last one without delay: the anchor is wrong, not the network. */
const MOST_FRAMES_LATE = 25;
/** Mean power (16-bit steps squared) below which a few repeated or missing samples are inaudible. */
const QUIET_POWER = 100 * 100;

export class TrackAnchor {
  /** Times the anchor was moved after the first packet. */
  adjustments = 0;
  #ssrc = -1;
  #timestamp = 0;
  #position = 0;
  #framesLate = 0;
  #windowStart = 0;
  #leastLate = Number.NEGATIVE_INFINITY;
  /** Drift found in the last window. Corrected in a quiet frame, or at the end of the next window. */
  #drift = 0;

  /**
   * The recording position, in samples, of a packet's first sample.
   * @param oldestWritable position up to which samples were already written to disk
   * @param power mean square of the packet's samples
   */
  place(packet: { ssrc: number; timestamp: number }, nowSample: number, oldestWritable: number, power: number): number {
    if (packet.ssrc !== this.#ssrc) return this.#anchor(packet, nowSample);
    let position = this.#position + timestampDelta(packet.timestamp, this.#timestamp);
    const error = position - nowSample;
    if (error > MOST_AHEAD || error < -MOST_BEHIND) return this.#anchor(packet, nowSample);
    // Not reset by a delayed frame that just fits: `oldestWritable` moves in steps.
    if (position < oldestWritable) this.#framesLate += 1;
    else if (error >= -DRIFT_TOLERATED) this.#framesLate = 0;
    if (this.#framesLate > MOST_FRAMES_LATE) return this.#anchor(packet, nowSample);
    this.#leastLate = Math.max(this.#leastLate, error);
    const isWindowOver = nowSample - this.#windowStart >= DRIFT_WINDOW;
    if (this.#drift !== 0 && (isWindowOver || power < QUIET_POWER)) {
      position -= this.#drift;
      this.#follow(packet, position);
      this.adjustments += 1;
      this.#startWindow(nowSample);
    } else if (isWindowOver) {
      const drift = Math.abs(this.#leastLate) > DRIFT_TOLERATED ? this.#leastLate : 0;
      this.#startWindow(nowSample);
      this.#drift = drift;
    }
    // Move the reference along, so that 32-bit distances stay short in long calls.
    if (position > this.#position) this.#follow(packet, position);
    return position;
  }

  #anchor(packet: { ssrc: number; timestamp: number }, nowSample: number): number {
    if (this.#ssrc !== -1) this.adjustments += 1;
    this.#ssrc = packet.ssrc;
    this.#framesLate = 0;
    this.#startWindow(nowSample);
    this.#follow(packet, nowSample);
    return nowSample;
  }

  #startWindow(nowSample: number): void {
    this.#windowStart = nowSample;
    this.#leastLate = Number.NEGATIVE_INFINITY;
    this.#drift = 0;
  }

  #follow(packet: { timestamp: number }, position: number): void {
    this.#timestamp = packet.timestamp;
    this.#position = position;
  }
}
