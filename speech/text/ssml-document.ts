import type { Interpretation } from './say-as.ts';
import type { Prosody, VoiceWish } from './script.ts';

/** Parsed SSML: stretches of text with one prosody and voice, in spoken order. */
export interface SsmlDocument {
  /** The value of `xml:lang` as written; null without. */
  language: string | null;
  passages: SsmlPassage[];
  /** From `voice` and `lang` elements, in the order in which they open. */
  voices: VoiceWish[];
}

export interface SsmlPassage {
  spans: SsmlSpan[];
  prosody: Prosody;
  /** Index into `SsmlDocument.voices`; null: the voice of the request. */
  voice: number | null;
  /** Marks after the text and before the pause. */
  endMarks: string[];
  pauseAfterMs: number;
}

export interface SsmlSpan {
  text: string;
  /** How to read the text; null: by the usual rules. */
  reading: SsmlReading | null;
  /** In order. `at` is an offset into the text. */
  marks: { name: string; at: number }[];
}

export type SsmlReading =
  | { kind: 'say-as'; interpretation: Interpretation }
  | { kind: 'sub'; alias: string }
  | { kind: 'phoneme'; ipa: string };

/** The longest silence after one passage. */
export const LONGEST_BREAK_MS = 10_000;

/** Builds passages from text, pauses and marks. */
export class PassageBuilder {
  readonly passages: SsmlPassage[] = [];
  /** The next text starts a new passage. */
  #isCut = true;
  /** Marks wait for the text after them, which determines their time. */
  #waitingMarks: string[] = [];

  /** Ends the passage. */
  cut(): void {
    this.#isCut = true;
  }

  mark(name: string): void {
    this.#waitingMarks.push(name);
  }

  text(
    written: string,
    { prosody, voice, reading }: Pick<SsmlPassage, 'prosody' | 'voice'> & Pick<SsmlSpan, 'reading'>,
  ) {
    let rest = written;
    if (this.#isCut) {
      const last = this.passages.at(-1);
      // A comma after the end of an element belongs to the word in it.
      const closing = last?.pauseAfterMs === 0 ? (/^[.,;:!?…)\]"'”’»।]+/u.exec(rest)?.[0] ?? '') : '';
      if (closing !== '' && reading === null && !/(^|\s)$/u.test(last?.spans.at(-1)?.text ?? '')) {
        last!.spans.push({ text: closing, reading: null, marks: [] });
        rest = rest.slice(closing.length);
      }
      if (rest.trim() === '') return;
      this.passages.push({ spans: [], prosody, voice, endMarks: [], pauseAfterMs: 0 });
      this.#isCut = false;
    }
    const marks = rest.trim() === '' ? [] : this.#takeMarks().map((name) => ({ name, at: 0 }));
    this.passages.at(-1)!.spans.push({ text: rest, reading, marks });
  }

  /** Appends to the last passage, or forms its own. */
  pause(ms: number, style: Pick<SsmlPassage, 'prosody' | 'voice'>): void {
    this.#isCut = true;
    const last = this.passages.at(-1);
    const marks = this.#takeMarks();
    const isInPause = marks.length > 0 && last?.pauseAfterMs !== 0;
    if (last === undefined || isInPause || last.pauseAfterMs + ms > LONGEST_BREAK_MS) {
      this.passages.push({ spans: [], ...style, endMarks: marks, pauseAfterMs: ms });
    } else {
      last.endMarks.push(...marks);
      last.pauseAfterMs += ms;
    }
  }

  /** Places the marks at the end of the document. */
  end(style: Pick<SsmlPassage, 'prosody' | 'voice'>): void {
    if (this.#waitingMarks.length > 0) this.pause(0, style);
  }

  #takeMarks(): string[] {
    const marks = this.#waitingMarks;
    this.#waitingMarks = [];
    return marks;
  }
}
