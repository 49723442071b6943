import type { AnswerResult } from '../../machines/events.ts';
import { ANSWER_WINDOW_SAMPLES, AnswerDetector } from '../answering/answer-detector.ts';
import { type PacketAudio, Timeline } from '../recording/timeline.ts';
import { Track } from '../recording/track.ts';

/**
 * Listens to what a party says after it has answered, in real time: what was lost or never sent is silence. A window is
 * judged `HOLDBACK_MS` after its time, so that packets may come late and in another order.
 */

const HOLDBACK_MS = 60;
/** Between two calls of `judge`. After more than that this thread stood still, and packets wait in the socket. */
const LATE_AFTER_MS = 600;
const SAMPLES_PER_MS = 8;
/** An echo comes back within this time. */
const ECHO_MS = 400;
/** More than the holdback, what may lie ahead of now, and a packet. */
const TIMELINE_SAMPLES = 8192;
/** What is about to be judged; the ears of a thread take turns. */
const due = new Int16Array(ANSWER_WINDOW_SAMPLES);

interface AnswerEarOptions {
  /** On the clock that all else here uses; the party has answered now. */
  nowMs: number;
  /** `afterMs` counts from the answer to the result. A `machine` may be followed by a `beep`. */
  onResult: (result: AnswerResult, afterMs: number) => void;
}

export class AnswerEar {
  readonly #onResult: AnswerEarOptions['onResult'];
  readonly #startedAtMs: number;
  readonly #detector = new AnswerDetector();
  readonly #timeline = new Timeline(1, { capacity: TIMELINE_SAMPLES });
  readonly #track: Track;
  /** Loudest that the party has heard of late, and when. */
  #heardPower = 0;
  #heardAtMs = Number.NEGATIVE_INFINITY;
  #result: AnswerResult | null = null;
  #judgedAtMs: number;

  constructor({ nowMs, onResult }: AnswerEarOptions) {
    this.#startedAtMs = nowMs;
    this.#judgedAtMs = nowMs;
    this.#onResult = onResult;
    this.#track = new Track({
      timeline: this.#timeline,
      startedAtMs: nowMs,
      makeRoom: (atMs) => this.#judgeUntil(this.#track.sampleAt(atMs), atMs),
    });
  }

  /** Nothing follows. */
  get isOver(): boolean {
    return this.#detector.isOver;
  }

  /** Decodes a packet to its place. Allocates nothing. */
  addAudio(audio: PacketAudio, nowMs: number): void {
    if (this.isOver) return;
    const end = this.#track.add(audio, nowMs);
    // Not until now: after a stall of this thread, the next packets of that time have not been read yet.
    this.#judgeUntil(Math.min(end, this.#track.sampleAt(nowMs)), nowMs);
  }

  /** Something of that mean square was said to the party, which may send an echo of it. */
  hears(power: number, nowMs: number): void {
    if (power < this.#heardPower && nowMs - this.#heardAtMs <= ECHO_MS) return;
    this.#heardPower = power;
    this.#heardAtMs = nowMs;
  }

  /** Judges what is due, also when no packet comes. Call every 250 ms. A late call leaves all to the next one. */
  judge(nowMs: number): void {
    const isLate = nowMs - this.#judgedAtMs > LATE_AFTER_MS;
    this.#judgedAtMs = nowMs;
    if (!isLate) this.#judgeUntil(this.#track.sampleAt(nowMs), nowMs);
  }

  #judgeUntil(sample: number, nowMs: number): void {
    const timeline = this.#timeline;
    const dueSample = sample - HOLDBACK_MS * SAMPLES_PER_MS;
    while (!this.isOver && dueSample - timeline.taken >= ANSWER_WINDOW_SAMPLES) {
      timeline.take(ANSWER_WINDOW_SAMPLES, due);
      const mayEcho = nowMs - this.#heardAtMs <= ECHO_MS + HOLDBACK_MS;
      const result = this.#detector.add(due, mayEcho ? this.#heardPower : 0);
      if (result === null) continue;
      this.#result = result;
      this.#onResult(result, Math.round(nowMs - this.#startedAtMs));
    }
  }

  dump(): unknown {
    return { seconds: this.#timeline.taken / 1000 / SAMPLES_PER_MS, result: this.#result, isOver: this.isOver };
  }
}
