import type { SpokenLanguage } from './languages/language.ts';

/** A written word, split into parts. */
export interface Token {
  written: string;
  /** Without unspeakable characters, numbers in ASCII; lead, core and trail joined. */
  clean: string;
  /** Opening quotes and brackets. */
  lead: string;
  /** Empty if there is only punctuation. */
  core: string;
  /** Punctuation after it. */
  trail: string;
  /** Also true for a vulgar fraction. */
  hasDigit: boolean;
  /** An empty line, an item of a list or a heading follows. */
  endsParagraph: boolean;
}

/** Words of one stretch of text and their language. */
export interface Context {
  tokens: readonly Token[];
  language: SpokenLanguage;
}

/** Spoken form of one or several words. */
export interface Reading {
  /** Without the surrounding punctuation, which is added again. */
  spoken: readonly string[];
  /** The last word's full stop belongs to an abbreviation; it may also end a sentence, or never does. */
  fullStop?: 'may-end' | 'never-ends';
  /** The signs before the first word are read, too. */
  includesLead?: true;
}

/** Null if it does not apply to the words at this place. */
export type Rule = (at: number, context: Context) => Reading | null;

export function toToken(written: string, endsParagraph = false): Token {
  const clean = asciiSeparators(
    asciiDigits(written.replace(UNSPOKEN, '').replace(/[\u2010\u2011\u2212]/g, '-')),
  ).replace(COMPARISON, (sign) => (sign === '<=' ? '≤' : '≥'));
  const lead = LEAD.exec(clean)?.[0] ?? '';
  const trailStart = startOfTrail(clean, lead.length);
  const core = clean.slice(lead.length, trailStart);
  const trail = clean.slice(trailStart);
  return { written, clean, lead, core, trail, hasDigit: HAS_DIGIT.test(core), endsParagraph };
}

/** Characters that are fractions, as part of a character class. */
export const VULGAR_FRACTIONS = '¼½¾⅓⅔⅛⅜⅝⅞';
const HAS_DIGIT = new RegExp(`[\\d${VULGAR_FRACTIONS}]`);

/** Whether the next token may belong to the same group: no punctuation or paragraph end follows. */
export function isOpen(token: Token | undefined): token is Token {
  return token !== undefined && token.trail === '' && !token.endsParagraph;
}

/** "x >= 5" and "<=10%", but no arrows. */
const COMPARISON = /(?<![<>=-])[<>]=(?=$|[\p{Sc}+-]?\.?\d)/gu;

/** A limit that stands alone is a word of its own. */
const LEAD = /^(?:[("'“”‘’„‚«»‹›[{¿¡「『（《【〈<>*_`|•]|[≤≥](?!$))+/u;
const TRAIL = /[.,;:!?…)\]}"'”’“»›«।॥۔،؛؟。，！？；：、」』）》】〉<>*_`|]/u;

/** Not a regular expression, which would take quadratic time for a long run of marks. */
function startOfTrail(text: string, least: number): number {
  let end = text.length;
  while (end > least && TRAIL.test(text[end - 1]!)) end--;
  return end;
}

/**
 * Control, format, private and unassigned characters. Spaces stay, and so do the joiners of Indian, Persian and Arabic
 * scripts, which change how a word is read.
 */
const UNSPOKEN = /(?!\u200c|\u200d|\s)(?:[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\ufffd]|\p{Variation_Selector})/gu;

/** Digits of other scripts start at multiples of ten in these blocks. */
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

/** Arabic and full-width ones. A full-width comma may separate two numbers, so it stays. */
function asciiSeparators(text: string): string {
  return text.replace(/(?<=\d)\u066c(?=\d{3})/g, ',').replace(/(?<=\d)[\u066b\uff0e](?=\d)/g, '.');
}

/** Some hundreds of entries. */
const asciiOf = new Map<string, string>();
const IS_DIGIT = /^\p{Nd}$/u;
