import type { Clock } from '../../runtime/clock.ts';
import type { SpokenWord } from '../../speech/synthesizer.ts';

export interface DeliveredTextOptions {
  /** Of the whole text: what was charged. */
  characters: number;
  clock: Pick<Clock, 'setTimeout' | 'clearTimeout'>;
  /** Must not reject. */
  save: (characters: number) => Promise<void>;
}

const SAVE_AFTER_MS = 1_000;

/**
 * Counts what a listener has received of a text, in characters of whole words, and saves that at most once a second. So
 * a crash loses a second of it, in the customer's favour.
 */
export class DeliveredText {
  readonly #options: DeliveredTextOptions;
  #characters = 0;
  #saved = 0;
  #timer: unknown = null;
  #isClosed = false;

  constructor(options: DeliveredTextOptions) {
    this.#options = options;
  }

  add(words: readonly SpokenWord[]): void {
    // Joined with spaces they are the text.
    for (const { word } of words) this.#characters += [...word].length + 1;
    if (this.#characters > this.#saved) this.#saveSoon();
  }

  close(): void {
    this.#isClosed = true;
    this.#options.clock.clearTimeout(this.#timer);
  }

  #saveSoon(): void {
    if (!this.#isClosed) this.#timer ??= this.#options.clock.setTimeout(() => void this.#save(), SAVE_AFTER_MS);
  }

  async #save(): Promise<void> {
    this.#saved = this.#characters;
    await this.#options.save(Math.min(this.#saved, this.#options.characters));
    this.#timer = null;
    if (this.#characters > this.#saved) this.#saveSoon();
  }
}
