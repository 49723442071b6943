import type { UtteranceSummary } from '../../machines/utterances.ts';

/** How an utterance ended. `atMs` is the end of speech on the clock of `performance.now`. */
export type UtteranceEnd =
  | { type: 'ended'; summary: UtteranceSummary; atMs: number }
  | {
      type: 'discarded';
      summary: UtteranceSummary;
      reason: 'speech_end_too_short' | 'low_snr_dropped';
      atMs: number;
    };

const INITIAL_SAMPLES = 32_000;
/** A recognizer that is behind gets a second at a time. */
const MOST_SAMPLES_PER_READ = 16_000;

/** An utterance with all its audio, kept until its outcome is emitted because recognition may have to restart. */
export class Utterance {
  readonly utteranceId: number;
  readonly channel: number;
  /** Time of its first sample in the stream. */
  readonly startMs: number;
  end: UtteranceEnd | null = null;
  #samples = new Int16Array(INITIAL_SAMPLES);
  #length = 0;
  #taken = 0;
  /** Positions of pauses, in order. */
  readonly #pauses: number[] = [];
  #changed = Promise.withResolvers<void>();

  constructor({ utteranceId, channel, startMs }: { utteranceId: number; channel: number; startMs: number }) {
    this.utteranceId = utteranceId;
    this.channel = channel;
    this.startMs = startMs;
  }

  get length(): number {
    return this.#length;
  }

  append(samples: Int16Array): void {
    const needed = this.#length + samples.length;
    if (needed > this.#samples.length) {
      const grown = new Int16Array(Math.max(needed, this.#samples.length * 2));
      grown.set(this.#samples.subarray(0, this.#length));
      this.#samples = grown;
    }
    this.#samples.set(samples, this.#length);
    this.#length = needed;
    this.wake();
  }

  /** Marks a pause after the audio so far, where the utterance is probably over. */
  pause(): void {
    if (this.#pauses.at(-1) !== this.#length) this.#pauses.push(this.#length);
    this.wake();
  }

  /** Copies the audio from a position to the next pause; empty if there is none. */
  read(position: number): Int16Array<ArrayBuffer> {
    const pause = this.#pauses.find((each) => each > position) ?? this.#length;
    return this.#samples.slice(position, Math.min(pause, position + MOST_SAMPLES_PER_READ));
  }

  pausesAt(position: number): boolean {
    return this.#pauses.includes(position);
  }

  readAll(): Int16Array {
    return this.#samples.subarray(0, this.#length);
  }

  /** Records a recognizer's progress; returns how many samples no recognizer had before. */
  take(position: number): number {
    const fresh = Math.max(0, position - this.#taken);
    this.#taken += fresh;
    return fresh;
  }

  conclude(end: UtteranceEnd): void {
    this.end = end;
    this.wake();
  }

  /** Resolves with the next change: audio, the end, or a wake-up. */
  changed(): Promise<void> {
    return this.#changed.promise;
  }

  wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
