export interface SplitPart {
  type: 'text' | 'reasoning';
  text: string;
}

/**
 * Takes the `<think>` block at the start of an answer out of its text, wherever the pieces that it comes in are cut. The
 * white space before and behind the block belongs to neither. An answer that does not begin with one is text, tags and
 * all; of one that is never closed everything is reasoning.
 */
export class ThinkSplitter {
  #state: 'start' | 'thinking' | 'after' | 'text' = 'start';
  /** What may become a tag, or is white space at the start. */
  #held = '';

  push(piece: string): SplitPart[] {
    const text = this.#held + piece;
    this.#held = '';
    return this.#take(text).filter((part) => part.text !== '');
  }

  /** What was held back, once nothing follows. */
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
/** White space without end is no start of anything. */
const MOST_HELD = 256;

/** Of the beginning of the closing tag that the text ends with. */
function lengthOfTagAtEnd(text: string): number {
  for (let length = Math.min(CLOSED.length - 1, text.length); length > 0; length--) {
    if (CLOSED.startsWith(text.slice(text.length - length))) return length;
  }
  return 0;
}
