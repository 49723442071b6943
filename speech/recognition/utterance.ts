import type { UtteranceSummary } from '../../machines/utterances.ts';

/** How an utterance came to its end. `atMs` is when speech ended, by `performance.now`. */
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

/** An utterance with all its audio, which is kept until it is told: whoever recognises it may have to start again. */
export class Utterance {
  readonly utteranceId: number;
  readonly channel: number;
  /** Of its first sample, in time of the stream. */
  readonly startMs: number;
  /** Null while it goes on. */
  end: UtteranceEnd | null = null;
  #samples = new Int16Array(INITIAL_SAMPLES);
  #length = 0;
  #taken = 0;
  #changed = Promise.withResolvers<void>();

  constructor({ utteranceId, channel, startMs }: { utteranceId: number; channel: number; startMs: number }) {
    this.utteranceId = utteranceId;
    this.channel = channel;
    this.startMs = startMs;
  }

  get length(): number {
    return this.#length;
  }

  /** How much of it any recognizer has had; a second attempt does not count again. */
  get untaken(): number {
    return this.#length - this.#taken;
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

  /** A copy of what follows that position; empty when nothing does. */
  read(position: number): Int16Array<ArrayBuffer> {
    return this.#samples.slice(position, Math.min(this.#length, position + MOST_SAMPLES_PER_READ));
  }

  readAll(): Int16Array {
    return this.#samples.subarray(0, this.#length);
  }

  /** Notes that a recognizer has come so far; returns how many samples none had had before. */
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
