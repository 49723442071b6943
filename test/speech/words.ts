import type { RecognisedWord } from '../../machines/utterances.ts';
import * as fc from '../properties.ts';

/** The words of a text, 300 ms apart. */
export function wordsOf(text: string, confidence: number | null = null): RecognisedWord[] {
  return text
    .split(' ')
    .filter((word) => word !== '')
    .map((word, index) => ({
      word,
      startMs: index * 300,
      endMs: index * 300 + 250,
      confidence,
      speaker: null,
      original: null,
    }));
}

/** Any code points, including lone surrogates and unassigned ones. */
export const anyText = fc.array(fc.nat(0x10ffff), { maxLength: 100 }).map((codes) => String.fromCodePoint(...codes));
