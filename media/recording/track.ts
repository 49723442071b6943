import { timestampDelta } from '../rtp/receiver-statistics.ts';

/**
 * Where the samples of one leg belong on the recording's clock. RTP timestamps give the exact distance between
 * packets, arrival gives the common clock of both legs: the first packet is anchored where it arrived, later ones
 * follow their timestamps. The anchor moves only when the two disagree for good: clocks that drift, a changed
 * network delay, or timestamps that leap. Whatever timestamps say, a sample lands within `MOST_AHEAD` of now, so
 * they cannot order hours of silence.
 */

/** In samples of 125 us. */
export const MOST_AHEAD = 4000;
const MOST_BEHIND = 24_000;
/** Slow disagreement that is put right in the next quiet frame, and one that is put right at once. */
const DRIFT_SOFT = 240;
const DRIFT_HARD = 800;
/** Frames in a row that came too late to be written: the anchor is wrong, not the network. */
const MOST_LATE_IN_A_ROW = 25;
/** Mean power (16-bit steps squared) below which nobody hears a few samples repeated or missing. */
const QUIET_POWER = 100 * 100;

export class TrackAnchor {
  /** Times the anchor was moved after the first packet. */
  adjustments = 0;
  #ssrc = -1;
  #timestamp = 0;
  #position = 0;
  #averageError = 0;
  #lateInARow = 0;

  /**
   * The recording position, in samples, of a packet's first sample.
   * `oldestWritable`: what lies before it was written to disk. `power`: mean square of the packet's samples.
   */
  place(packet: { ssrc: number; timestamp: number }, nowSample: number, oldestWritable: number, power: number): number {
    if (packet.ssrc !== this.#ssrc) return this.#anchor(packet, nowSample);
    const position = this.#position + timestampDelta(packet.timestamp, this.#timestamp);
    const error = position - nowSample;
    if (error > MOST_AHEAD || error < -MOST_BEHIND) return this.#anchor(packet, nowSample);
    this.#lateInARow = position < oldestWritable ? this.#lateInARow + 1 : 0;
    if (this.#lateInARow > MOST_LATE_IN_A_ROW) return this.#anchor(packet, nowSample);
    this.#averageError += (error - this.#averageError) / 64;
    const drift = Math.abs(this.#averageError);
    if (drift > DRIFT_HARD || (drift > DRIFT_SOFT && power < QUIET_POWER)) {
      this.#follow(packet, position - Math.round(this.#averageError));
      this.#averageError = 0;
      this.adjustments += 1;
      return this.#position;
    }
    // Move the reference along, so that 32-bit distances stay short however long the call is.
    if (position > this.#position) this.#follow(packet, position);
    return position;
  }

  #anchor(packet: { ssrc: number; timestamp: number }, nowSample: number): number {
    if (this.#ssrc !== -1) this.adjustments += 1;
    this.#ssrc = packet.ssrc;
    this.#averageError = 0;
    this.#lateInARow = 0;
    this.#follow(packet, nowSample);
    return nowSample;
  }

  #follow(packet: { timestamp: number }, position: number): void {
    this.#timestamp = packet.timestamp;
    this.#position = position;
  }
}
