import { meanPower } from '../dsp/level.ts';
import { LossConcealer } from '../dsp/loss-concealer.ts';
import { NoiseGenerator } from '../dsp/noise-generator.ts';
import { FRAME_SAMPLES, TELEPHONY_SAMPLE_RATE_HZ } from '../dsp/tones.ts';
import type { RecordedPacket } from '../recording/session-recorder.ts';
import { ARRIVED, PAUSE, type PacketAudio, Timeline } from '../recording/timeline.ts';
import { TrackAnchor } from '../recording/track.ts';
import { emptyComfortNoise, parseComfortNoise } from '../rtp/comfort-noise.ts';

/**
 * What one party says, in order and at the pace of the mixer. A packet may arrive `PLAYOUT_DELAY_MS` after its time;
 * what is missing by then is concealed, or comfort noise where the party has announced that it pauses (RFC 3389).
 */

/** Two packets of 20 ms, and one more for the network. */
const PLAYOUT_DELAY_MS = 60;
const SAMPLES_PER_MS = TELEPHONY_SAMPLE_RATE_HZ / 1000;
const PLAYOUT_DELAY_SAMPLES = PLAYOUT_DELAY_MS * SAMPLES_PER_MS;
/** Frames that wait after a stall of the thread; older ones are dropped, so that the delay does not stay. */
const MOST_FRAMES_WAITING = 3;
/** Weight of the newest frame in the level: the level falls by half in 5 frames, so that pauses between words do not matter. */
const LEVEL_DECAY = 0.87;
/** Four seconds. */
const TIMELINE_SAMPLES = 32_768;

export class MixInput {
  /** The frame that `takeFrame` took last. */
  readonly frame = new Int16Array(FRAME_SAMPLES);
  /** Mean square of the last frames in 16-bit steps, which decides who is heard when many speak. */
  level = 0;
  readonly #timeline = new Timeline(1, { capacity: TIMELINE_SAMPLES, notesArrivals: true });
  readonly #anchor = new TrackAnchor();
  readonly #startedAtMs: number;
  readonly #arrivals = new Uint8Array(FRAME_SAMPLES);
  readonly #concealer = new LossConcealer();
  readonly #noise = new NoiseGenerator();
  readonly #announced = emptyComfortNoise();
  /** The last sample taken was missing; and what is missing is a pause that was announced. */
  #isMissing = false;
  #isPausing = false;
  #samplesLate = 0;
  #framesDropped = 0;

  constructor(nowMs: number) {
    this.#startedAtMs = nowMs;
  }

  /** Decodes a packet to its place. `power` is the mean square of its samples. Allocates nothing. */
  addAudio(audio: PacketAudio, packet: RecordedPacket, power: number, nowMs: number): void {
    const timeline = this.#timeline;
    const position = this.#anchor.place(packet, this.#sampleAt(nowMs), timeline.taken, power);
    const from = packet.payloadOffset;
    const written = timeline.put(0, position, audio, from, from + packet.payloadBytes);
    this.#samplesLate += packet.payloadBytes - written;
  }

  /** Takes a comfort noise packet: from its time on the party pauses, until its next audio. Allocates nothing. */
  addComfortNoise(datagram: Uint8Array, packet: RecordedPacket, nowMs: number): void {
    if (!parseComfortNoise(datagram, packet.payloadOffset, packet.payloadBytes, this.#announced)) return;
    this.#noise.describe(this.#announced);
    const position = this.#anchor.place(packet, this.#sampleAt(nowMs), this.#timeline.taken, 0);
    if (!this.#timeline.markPause(position) && this.#isMissing) this.#isPausing = true;
  }

  /** Moves the next 20 ms into `frame`. Call at the pace of the frames. */
  takeFrame(nowMs: number): void {
    const due = this.#sampleAt(nowMs) - PLAYOUT_DELAY_SAMPLES;
    const timeline = this.#timeline;
    while (due - timeline.taken > MOST_FRAMES_WAITING * FRAME_SAMPLES) {
      this.#take();
      this.#framesDropped += 1;
    }
    if (due - timeline.taken < FRAME_SAMPLES) this.frame.fill(0);
    else this.#take();
    this.level = Math.max(meanPower(this.frame), this.level * LEVEL_DECAY);
  }

  dump(): unknown {
    return {
      level: Math.round(this.level),
      samplesLate: this.#samplesLate,
      samplesConcealed: this.#concealer.concealed,
      framesDropped: this.#framesDropped,
      isPausing: this.#isPausing,
    };
  }

  #take(): void {
    const { frame } = this;
    const arrivals = this.#arrivals;
    this.#timeline.take(FRAME_SAMPLES, frame, arrivals);
    for (let from = 0; from < FRAME_SAMPLES; ) {
      let to = from + 1;
      while (to < FRAME_SAMPLES && arrivals[to] === arrivals[from]) to += 1;
      if (arrivals[from] === PAUSE) this.#isPausing = true;
      if (arrivals[from] === ARRIVED) this.#hear(from, to);
      else this.#fill(from, to);
      from = to;
    }
  }

  #hear(from: number, to: number): void {
    if (this.#isPausing) this.#noise.reset();
    this.#isPausing = false;
    this.#isMissing = false;
    this.#concealer.addReceived(this.frame, from, to);
  }

  #fill(from: number, to: number): void {
    this.#isMissing = true;
    if (!this.#isPausing) {
      this.#concealer.conceal(this.frame, from, to);
      return;
    }
    this.#noise.generate(this.frame, from, to);
    this.#concealer.addReceived(this.frame, from, to);
  }

  #sampleAt(nowMs: number): number {
    return Math.round((nowMs - this.#startedAtMs) * SAMPLES_PER_MS);
  }
}
