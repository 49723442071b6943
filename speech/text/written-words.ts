import { UNSPACED_SCRIPTS } from '../../runtime/unspaced-scripts.ts';

/** A written word, and whether an empty line, an item of a list or a heading follows. */
export interface WrittenWord {
  written: string;
  endsParagraph: boolean;
}

/**
 * Cuts a text into words. Joined with single spaces they are the text with collapsed white space, with two exceptions,
 * which also lose no character: scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese), cut by
 * dictionary, and overlong words.
 */
export function writtenWords(text: string): WrittenWord[] {
  const words: WrittenWord[] = [];
  for (const { 0: written, index } of text.matchAll(/\S+/gu)) {
    const end = index + written.length;
    const pieces = (SPACELESS.test(written) ? segmentsOf(written) : [written]).flatMap(piecesOf);
    for (const piece of pieces) words.push({ written: piece, endsParagraph: false });
    words.at(-1)!.endsParagraph = endsParagraph(text, end);
  }
  return words;
}

/** Begins a line that is an item of a list, or a heading, but not "# of guests" and "# to confirm". */
export const PARAGRAPH_MARK = /^(?:[-–—*•]\s|#{1,6}\s+[\p{Lu}\p{Lo}])/u;
const LONGEST_MARK = 16;

function endsParagraph(text: string, from: number): boolean {
  let lines = 0;
  for (let at = from; at < text.length; at++) {
    const character = text[at]!;
    if (character === '\n' || character === '\u2029') lines += character === '\n' ? 1 : 2;
    else if (!/\s/.test(character))
      return lines >= 2 || (lines === 1 && PARAGRAPH_MARK.test(text.slice(at, at + LONGEST_MARK)));
  }
  return false;
}

const SPACELESS = new RegExp(`[${UNSPACED_SCRIPTS}]`, 'u');

/** Segments by script; the language changes nothing. */
const SEGMENTER = new Intl.Segmenter('en', { granularity: 'word' });

/** Opening punctuation belongs to the next word, all other to the previous one. */
function segmentsOf(written: string): string[] {
  const segments: string[] = [];
  let opening = '';
  // Numbers, dates and addresses stay whole.
  for (const run of written.match(/[!-~€£₹¥￥°]+|[^!-~€£₹¥￥°]+/gu)!) {
    const isAscii = /^[!-~€£₹¥￥°]/u.test(run);
    for (const { segment, isWordLike } of isAscii ? [{ segment: run, isWordLike: true }] : SEGMENTER.segment(run)) {
      if (isWordLike) segments.push(`${opening}${segment}`);
      else if (/^[\p{Ps}\p{Pi}]/u.test(segment) || segments.length === 0) {
        opening += segment;
        continue;
      } else segments.push(`${segments.pop()}${opening}${segment}`);
      opening = '';
    }
  }
  if (opening !== '') segments.push(`${segments.pop() ?? ''}${opening}`);
  return segments;
}

function piecesOf(word: string): string[] {
  if (word.length <= LONG_NUMBER) return [word];
  const letters = word.match(/[\p{L}\p{M}]/gu)?.length ?? 0;
  // The spoken form of digits and signs is several times longer.
  if (letters * 2 < word.length) return word.match(/.{1,20}/gsu)!;
  return word.length > LONG_WORD ? word.match(/.{1,60}/gsu)! : [word];
}

/** Longer than 2026-11-28T14:05:00.123456+05:30 in brackets. */
const LONG_NUMBER = 40;
const LONG_WORD = 60;
