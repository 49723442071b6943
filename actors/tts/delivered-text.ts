import type { Clock } from '../../runtime/clock.ts';
import type { SpokenWord } from '../../speech/synthesizer.ts';

export interface DeliveredTextOptions {
  /** Charged characters of the whole text. */
  characters: number;
  clock: Pick<Clock, 'setTimeout' | 'clearTimeout'>;
  /** Must not reject. */
  save: (characters: number) => Promise<void>;
}

const SAVE_AFTER_MS = 1_000;

/**
 * Counts the characters of a text, in whole words, that a listener has received. Saves the count at most once a second,
 * so a crash loses a second in the customer's favour.
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
    // The words joined with spaces are the text.
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
