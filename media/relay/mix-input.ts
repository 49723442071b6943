import type { G711Codec } from '../codecs/g711.ts';
import { meanPower } from '../dsp/level.ts';
import { FRAME_SAMPLES, TELEPHONY_SAMPLE_RATE_HZ } from '../dsp/tones.ts';
import type { RecordedPacket } from '../recording/session-recorder.ts';
import { Timeline } from '../recording/timeline.ts';
import { TrackAnchor } from '../recording/track.ts';

/**
 * What one party says, in order and at the pace of the mixer. A packet may arrive `PLAYOUT_DELAY_MS` after its time;
 * what is missing by then is silence.
 */

/** Two packets of 20 ms, and one more for the network. */
const PLAYOUT_DELAY_MS = 60;
const SAMPLES_PER_MS = TELEPHONY_SAMPLE_RATE_HZ / 1000;
const PLAYOUT_DELAY_SAMPLES = PLAYOUT_DELAY_MS * SAMPLES_PER_MS;
/** Frames that wait after a stall of the thread; older ones are dropped, so that the delay does not stay. */
const MOST_FRAMES_WAITING = 3;
/** Weight of the newest frame in the level: the level falls by half in 5 frames, so that pauses between words do not matter. */
const LEVEL_DECAY = 0.87;

export class MixInput {
  /** The frame that `takeFrame` took last. */
  readonly frame = new Int16Array(FRAME_SAMPLES);
  /** Mean square of the last frames in 16-bit steps, which decides who is heard when many speak. */
  level = 0;
  readonly #timeline = new Timeline(1);
  readonly #anchor = new TrackAnchor();
  readonly #startedAtMs: number;
  #samplesLate = 0;
  #framesDropped = 0;

  constructor(nowMs: number) {
    this.#startedAtMs = nowMs;
  }

  /** Decodes a packet to its place. `power` is the mean square of its samples. Allocates nothing. */
  addAudio(codec: G711Codec, datagram: Uint8Array, packet: RecordedPacket, power: number, nowMs: number): void {
    const timeline = this.#timeline;
    const position = this.#anchor.place(packet, this.#sampleAt(nowMs), timeline.taken, power);
    const from = packet.payloadOffset;
    const written = timeline.put(0, position, codec, datagram, from, from + packet.payloadBytes);
    this.#samplesLate += packet.payloadBytes - written;
  }

  /** Moves the next 20 ms into `frame`. Call at the pace of the frames. */
  takeFrame(nowMs: number): void {
    const due = this.#sampleAt(nowMs) - PLAYOUT_DELAY_SAMPLES;
    const timeline = this.#timeline;
    while (due - timeline.taken > MOST_FRAMES_WAITING * FRAME_SAMPLES) {
      timeline.take(FRAME_SAMPLES, this.frame);
      this.#framesDropped += 1;
    }
    if (due - timeline.taken < FRAME_SAMPLES) this.frame.fill(0);
    else timeline.take(FRAME_SAMPLES, this.frame);
    this.level = Math.max(meanPower(this.frame), this.level * LEVEL_DECAY);
  }

  dump(): unknown {
    return { level: Math.round(this.level), samplesLate: this.#samplesLate, framesDropped: this.#framesDropped };
  }

  #sampleAt(nowMs: number): number {
    return Math.round((nowMs - this.#startedAtMs) * SAMPLES_PER_MS);
  }
}
