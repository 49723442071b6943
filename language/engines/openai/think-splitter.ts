export interface SplitPart {
  type: 'text' | 'reasoning';
  text: string;
}

/**
 * Separates the `<think>` block at the start of an answer from its text, wherever chunks are cut. White space around
 * the block is dropped. An answer that does not start with the block is all text, tags included. If the block is never
 * closed, everything is reasoning.
 */
export class ThinkSplitter {
  #state: 'start' | 'thinking' | 'after' | 'text' = 'start';
  /** A possible tag, or white space at the start. */
  #held = '';

  push(piece: string): SplitPart[] {
    const text = this.#held + piece;
    this.#held = '';
    return this.#take(text).filter((part) => part.text !== '');
  }

  /** Returns what was held back, after the last chunk. */
  end(): SplitPart[] {
    const held = this.#held;
    this.#held = '';
    return held === '' ? [] : [{ type: this.#state === 'thinking' ? 'reasoning' : 'text', text: held }];
  }

  #take(text: string): SplitPart[] {
    switch (this.#state) {
      case 'start':
        return this.#takeStart(text);
      case 'thinking':
        return this.#takeThought(text);
      case 'after': {
        const rest = text.trimStart();
        if (rest !== '') this.#state = 'text';
        return [{ type: 'text', text: rest }];
      }
      case 'text':
        return [{ type: 'text', text }];
    }
  }

  #takeStart(text: string): SplitPart[] {
    const begun = text.trimStart();
    if (begun.startsWith(OPENED)) {
      this.#state = 'thinking';
      return this.#takeThought(begun.slice(OPENED.length));
    }
    if (OPENED.startsWith(begun) && text.length <= MOST_HELD) {
      this.#held = text;
      return [];
    }
    this.#state = 'text';
    return [{ type: 'text', text }];
  }

  #takeThought(text: string): SplitPart[] {
    const closed = text.indexOf(CLOSED);
    if (closed >= 0) {
      this.#state = 'after';
      return [{ type: 'reasoning', text: text.slice(0, closed) }, ...this.#take(text.slice(closed + CLOSED.length))];
    }
    const sure = text.length - lengthOfTagAtEnd(text);
    this.#held = text.slice(sure);
    return [{ type: 'reasoning', text: text.slice(0, sure) }];
  }
}

const OPENED = '<think>';
const CLOSED = '</think>';
/** Endless white space is not the start of a tag. */
const MOST_HELD = 256;

function lengthOfTagAtEnd(text: string): number {
  for (let length = Math.min(CLOSED.length - 1, text.length); length > 0; length--) {
    if (CLOSED.startsWith(text.slice(text.length - length))) return length;
  }
  return 0;
}
