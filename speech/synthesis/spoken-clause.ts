import { type SpokenBlock, type SpokenWord, SynthesizerError, type WordMark } from '../synthesizer.ts';
import type { ScriptWord } from '../text/script.ts';
import { alignWords } from './align-words.ts';
import type { FinishedClause } from './cached-clause.ts';
import { SoundDetector } from './sounds.ts';

/** What is longer is no speech: letters that a slow voice can only name take minutes. */
const MOST_CLAUSE_MS = 600_000;

/**
 * A clause while it is spoken: an engine puts in what it says, as fast as it can, so that others may have it soon; the
 * listener takes it out at his own pace.
 */
export class SpokenClause {
  readonly #words: readonly ScriptWord[];
  #blocks: Int16Array<ArrayBuffer>[] = [];
  #marks: WordMark[] = [];
  #sampleRateHz = 0;
  #samples = 0;
  /** Samples that an engine says again after the first one died in the middle. */
  #toSkip = 0;
  #hasSeam = false;
  #detector = new SoundDetector(1);
  /** Of what is taken next. */
  #block = 0;
  #offset = 0;
  #outcome: 'open' | 'ended' | { error: unknown } = 'open';
  #changed = Promise.withResolvers<void>();

  constructor(words: readonly ScriptWord[]) {
    this.#words = words;
  }

  // For the listener ---------------------------------------------------------------------------------------------------

  /** 0 as long as there is nothing. */
  get sampleRateHz(): number {
    return this.#sampleRateHz;
  }

  /** A view of the next samples, so many at most; null when there are none now. @throws why it failed, after the last */
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

  /** Whether all was said. Some of it may not have been taken yet. */
  get isEnded(): boolean {
    return this.#outcome === 'ended';
  }

  /** Resolves when there is more to take, or no more to come. */
  get changed(): Promise<void> {
    return this.#changed.promise;
  }

  /** Once it has ended: one for each word; times count from its first sample. */
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

  /** Since its last sound. */
  get silenceAtEndMs(): number {
    return this.durationMs - (this.#detector.sounds().at(-1)?.endMs ?? 0);
  }

  // For who speaks it --------------------------------------------------------------------------------------------------

  /** How much of it there is: a point to which `rewind` leads. */
  get position(): { samples: number; marks: number } {
    return { samples: this.#samples, marks: this.#marks.length };
  }

  /** @throws SynthesizerError for a rate that is not that of what was spoken before */
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
   * Takes back what was spoken since, for it to be spoken again. Should the listener have some of it, all of it stays, and
   * so much of the second time is left out.
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

  /** All that belongs to where it was rewound to is spoken. */
  settle(): void {
    this.#toSkip = 0;
  }

  /**
   * Leaves what was spoken since as it is, cut off; the rest is to be spoken from the word on that was begun last, which
   * is answered. Null when that is not known.
   */
  cutOff({ marks }: { marks: number }): number | null {
    this.#hasSeam = true;
    return this.#marks.slice(marks).at(-1)?.word ?? null;
  }

  /** Whether the listener has anything of what was spoken since. */
  isHeardSince({ samples }: { samples: number }): boolean {
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

  /** All of it, for the cache; null when it is not as one engine says it. */
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
