import type { AnswerResult } from '../../machines/events.ts';
import { ANSWER_WINDOW_SAMPLES, AnswerDetector } from '../answering/answer-detector.ts';
import { type PacketAudio, Timeline } from '../recording/timeline.ts';
import { Track } from '../recording/track.ts';

/**
 * Feeds a party's audio to answering machine detection in real time, with silence for gaps. A window is analysed
 * `HOLDBACK_MS` after its time, to allow late and reordered packets.
 */

const HOLDBACK_MS = 60;
const SAMPLES_PER_MS = 8;
const ECHO_MS = 400;
/** Holds the holdback, audio ahead of now, and a packet. */
const TIMELINE_SAMPLES = 8192;
/** Input of the detector, shared by the detectors of a thread. */
const due = new Int16Array(ANSWER_WINDOW_SAMPLES);

interface PartyAnswerDetectorOptions {
  /** Time of the answer, on the clock of the other methods. */
  nowMs: number;
  /** `afterMs` counts from the answer to the result. A `beep` may follow a `machine`. */
  onResult: (result: AnswerResult, afterMs: number) => void;
}

export class PartyAnswerDetector {
  readonly #onResult: PartyAnswerDetectorOptions['onResult'];
  readonly #startedAtMs: number;
  readonly #detector = new AnswerDetector();
  readonly #timeline = new Timeline(1, { capacity: TIMELINE_SAMPLES });
  readonly #track: Track;
  /** Peak power recently sent to the party, and its time. */
  #sentPower = 0;
  #sentAtMs = Number.NEGATIVE_INFINITY;
  #result: AnswerResult | null = null;

  constructor({ nowMs, onResult }: PartyAnswerDetectorOptions) {
    this.#startedAtMs = nowMs;
    this.#onResult = onResult;
    this.#track = new Track({
      timeline: this.#timeline,
      startedAtMs: nowMs,
      makeRoom: (atMs) => this.#judgeUntil(this.#track.sampleAt(atMs), atMs),
    });
  }

  /** No result follows. */
  get isOver(): boolean {
    return this.#detector.isOver;
  }

  /** Decodes a packet to its position. Allocates nothing. */
  addAudio(audio: PacketAudio, nowMs: number): void {
    if (this.isOver) return;
    const end = this.#track.add(audio, nowMs);
    // Not until now: after a stall of this thread, later packets of that time are still unread.
    this.#judgeUntil(Math.min(end, this.#track.sampleAt(nowMs)), nowMs);
  }

  /** Reports the mean square of audio sent to the party, which may return as an echo. */
  noteSent(power: number, nowMs: number): void {
    if (power < this.#sentPower && nowMs - this.#sentAtMs <= ECHO_MS) return;
    this.#sentPower = power;
    this.#sentAtMs = nowMs;
  }

  /**
   * Analyses due windows, also without packets. Call every 250 ms.
   * @param readUntilMs packets that arrived until then were added
   */
  judge(nowMs: number, readUntilMs: number): void {
    this.#judgeUntil(this.#track.sampleAt(readUntilMs), nowMs);
  }

  #judgeUntil(sample: number, nowMs: number): void {
    const timeline = this.#timeline;
    const dueSample = sample - HOLDBACK_MS * SAMPLES_PER_MS;
    while (!this.isOver && dueSample - timeline.taken >= ANSWER_WINDOW_SAMPLES) {
      timeline.take(ANSWER_WINDOW_SAMPLES, due);
      const mayEcho = nowMs - this.#sentAtMs <= ECHO_MS + HOLDBACK_MS;
      const result = this.#detector.add(due, mayEcho ? this.#sentPower : 0);
      if (result === null) continue;
      this.#result = result;
      this.#onResult(result, Math.round(nowMs - this.#startedAtMs));
    }
  }

  dump(): unknown {
    return { seconds: this.#timeline.taken / 1000 / SAMPLES_PER_MS, result: this.#result, isOver: this.isOver };
  }
}
