import { type SpokenBlock, type SpokenWord, SynthesizerError, type WordMark } from '../synthesizer.ts';
import type { ScriptWord } from '../text/script.ts';
import { alignWords } from './align-words.ts';
import type { FinishedClause } from './cached-clause.ts';
import { SoundDetector } from './sounds.ts';

/** Anything longer is not speech: spelled letters in a slow voice take minutes. */
const MOST_CLAUSE_MS = 600_000;

/**
 * A clause during synthesis. The engine adds samples at full speed, so that it is soon free for others; the listener
 * takes them at its own pace.
 */
export class SpokenClause {
  readonly #words: readonly ScriptWord[];
  #blocks: Int16Array<ArrayBuffer>[] = [];
  #marks: WordMark[] = [];
  #sampleRateHz = 0;
  #samples = 0;
  /** Samples to drop, because a second engine repeats what the first produced before it died. */
  #toSkip = 0;
  #hasSeam = false;
  #detector = new SoundDetector(1);
  /** Position of the next samples to take. */
  #block = 0;
  #offset = 0;
  #outcome: 'open' | 'ended' | { error: unknown } = 'open';
  #changed = Promise.withResolvers<void>();

  constructor(words: readonly ScriptWord[]) {
    this.#words = words;
  }

  // For the listener ---------------------------------------------------------------------------------------------------

  /** 0 before any samples. */
  get sampleRateHz(): number {
    return this.#sampleRateHz;
  }

  /**
   * Returns a view of at most `most` samples; null if none are available now. @throws the failure, after the last
   * samples
   */
  take(most: number): Int16Array<ArrayBuffer> | null {
    const block = this.#blocks[this.#block];
    if (block === undefined) {
      if (typeof this.#outcome === 'object') throw this.#outcome.error;
      return null;
    }
    const samples = block.subarray(this.#offset, this.#offset + most);
    this.#offset += samples.length;
    if (this.#offset >= block.length) {
      this.#block += 1;
      this.#offset = 0;
    }
    return samples;
  }

  /** Whether synthesis is complete. Samples may still be waiting. */
  get isEnded(): boolean {
    return this.#outcome === 'ended';
  }

  /** Resolves when there is more to take, or at the end. */
  get changed(): Promise<void> {
    return this.#changed.promise;
  }

  /** Call after the end. One entry per word; times count from the first sample. */
  words(): SpokenWord[] {
    return alignWords({
      words: this.#words,
      marks: this.#marks,
      sounds: this.#detector.sounds(),
      durationMs: this.durationMs,
    });
  }

  get durationMs(): number {
    return this.#sampleRateHz === 0 ? 0 : (this.#samples * 1000) / this.#sampleRateHz;
  }

  get silenceAtEndMs(): number {
    return this.durationMs - (this.#detector.sounds().at(-1)?.endMs ?? 0);
  }

  // For the engine -----------------------------------------------------------------------------------------------------

  /** Current position, for `rewind`. */
  get position(): { samples: number; marks: number } {
    return { samples: this.#samples, marks: this.#marks.length };
  }

  /** @throws SynthesizerError if the rate differs from earlier samples */
  setRate(sampleRateHz: number): void {
    if (this.#samples > 0 && this.#sampleRateHz !== sampleRateHz) {
      throw new SynthesizerError('crashed', 'the engine changed its sample rate within a clause');
    }
    if (this.#sampleRateHz === sampleRateHz) return;
    this.#sampleRateHz = sampleRateHz;
    this.#detector = new SoundDetector(sampleRateHz);
  }

  /** @throws SynthesizerError `too_long` */
  add({ samples, marks }: SpokenBlock): void {
    this.#marks.push(...marks);
    const skipped = Math.min(this.#toSkip, samples.length);
    this.#toSkip -= skipped;
    if (skipped === samples.length) return;
    const fresh = samples.subarray(skipped);
    this.#blocks.push(fresh);
    this.#samples += fresh.length;
    this.#detector.add(fresh);
    this.#change();
    if (this.durationMs > MOST_CLAUSE_MS) throw new SynthesizerError('too_long', 'a clause that takes minutes');
  }

  /**
   * Discards everything after a position, to be spoken again. If the listener has taken some of it, keeps it and drops
   * as much of the repetition.
   */
  rewind({ samples, marks }: { samples: number; marks: number }): void {
    this.#marks.length = marks;
    if (this.#takenSamples() > samples) {
      this.#toSkip = this.#samples - samples;
      this.#hasSeam = true;
      return;
    }
    while (this.#samples > samples) this.#samples -= this.#blocks.pop()!.length;
    this.#detector = new SoundDetector(this.#sampleRateHz);
    for (const block of this.#blocks) this.#detector.add(block);
  }

  /** The repetition after a rewind is complete. */
  settle(): void {
    this.#toSkip = 0;
  }

  /**
   * Keeps what was spoken after a position as it is, cut off. Returns the word to continue from, which was started
   * last; null if unknown.
   */
  cutOff({ marks }: { marks: number }): number | null {
    this.#hasSeam = true;
    return this.#marks.slice(marks).at(-1)?.word ?? null;
  }

  /** Whether the listener has taken samples after a position. */
  isTakenSince({ samples }: { samples: number }): boolean {
    return this.#takenSamples() > samples;
  }

  end(): void {
    if (this.#outcome === 'open') this.#outcome = 'ended';
    this.#change();
  }

  fail(error: unknown): void {
    if (this.#outcome === 'open') this.#outcome = { error };
    this.#change();
  }

  /** The whole clause for the cache; null if it is not from one continuous synthesis. */
  finished(): FinishedClause | null {
    if (this.#outcome !== 'ended' || this.#hasSeam) return null;
    const samples = new Int16Array(this.#samples);
    let filled = 0;
    for (const block of this.#blocks) {
      samples.set(block, filled);
      filled += block.length;
    }
    return { sampleRateHz: this.#sampleRateHz, samples, marks: this.#marks };
  }

  #takenSamples(): number {
    let taken = this.#offset;
    for (let index = 0; index < this.#block; index++) taken += this.#blocks[index]!.length;
    return taken;
  }

  #change(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
