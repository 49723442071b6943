import type { SpokenLanguage } from './languages/language.ts';

/** A written word, taken apart. */
export interface Token {
  written: string;
  /** Without what is never spoken, digits as 0 to 9; lead, core and trail side by side. */
  clean: string;
  /** Quotes and brackets that open before it. */
  lead: string;
  /** Empty when there is nothing but punctuation. */
  core: string;
  /** Punctuation behind it. */
  trail: string;
  /** Also a vulgar fraction. */
  hasDigit: boolean;
  /** An empty line follows. */
  endsParagraph: boolean;
}

/** Words of one stretch of text and the language they are read in. */
export interface Context {
  tokens: readonly Token[];
  language: SpokenLanguage;
}

/** How one or several words are read together: what is spoken for each. */
export interface Reading {
  /** Without the punctuation that surrounds the words, which is put back. */
  spoken: readonly string[];
  /** The full stop behind the last of them belongs to an abbreviation; it may end a sentence as well, or never. */
  fullStop?: 'may-end' | 'never-ends';
}

/** Null where it does not apply to the words at this place. */
export type Rule = (at: number, context: Context) => Reading | null;

export function toToken(written: string, endsParagraph = false): Token {
  const clean = asciiDigits(written.replace(UNSPOKEN, '').replace(/[\u2010\u2011\u2212]/g, '-'));
  const lead = LEAD.exec(clean)?.[0] ?? '';
  const trailStart = startOfTrail(clean, lead.length);
  const core = clean.slice(lead.length, trailStart);
  const trail = clean.slice(trailStart);
  return { written, clean, lead, core, trail, hasDigit: /[\d¼½¾⅓⅔⅛⅜⅝⅞]/.test(core), endsParagraph };
}

/** Whether the token may be followed by another of the same group: nothing closes or ends behind it. */
export function isOpen(token: Token | undefined): token is Token {
  return token !== undefined && token.trail === '' && !token.endsParagraph;
}

const LEAD = /^[("'“”‘’„‚«»‹›[{¿¡「『（《【〈<>*_`|•]+/u;
const TRAIL = /[.,;:!?…)\]}"'”’“»›«।॥۔،؛؟。，！？；：、」』）》】〉<>*_`|]/u;

/** Without a regular expression, which would try every place of a long run of marks. */
function startOfTrail(text: string, least: number): number {
  let end = text.length;
  while (end > least && TRAIL.test(text[end - 1]!)) end--;
  return end;
}

/**
 * Control and format characters and what is private or unassigned. The joiners of Indian, Persian and Arabic writing
 * change how a word is read and stay; so do spaces.
 */
const UNSPOKEN = /(?!\u200c|\u200d|\s)(?:[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\ufffd]|\p{Variation_Selector})/gu;

/** Digits of other scripts begin at multiples of ten of these blocks. */
const OTHER_DIGITS = /(?!\d)\p{Nd}/gu;

function asciiDigits(text: string): string {
  return text.replace(OTHER_DIGITS, (digit) => {
    const known = asciiOf.get(digit);
    if (known !== undefined) return known;
    const codePoint = digit.codePointAt(0)!;
    let zero = codePoint;
    while (codePoint - zero < 9 && IS_DIGIT.test(String.fromCodePoint(zero - 1))) zero--;
    const ascii = String(codePoint - zero);
    asciiOf.set(digit, ascii);
    return ascii;
  });
}

/** There are some hundreds. */
const asciiOf = new Map<string, string>();
const IS_DIGIT = /^\p{Nd}$/u;
