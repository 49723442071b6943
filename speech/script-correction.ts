import type { RecognisedWord } from '../machines/utterances.ts';
import { DOUBTFUL_IN_LATIN, ENGLISH_IN_DEVANAGARI, HINDI_IN_LATIN } from './script-lexicon.ts';

/**
 * Writes each word of a Hindi-English conversation in the script of its language: "मुझे ऑर्डर cancel karna hai" becomes
 * "मुझे order cancel करना है". Uses a lexicon of common words and changes nothing else: names and rare words stay, and
 * so do words of both languages unless Hindi is on both sides.
 *
 * - English in Devanagari becomes Latin, with an English plural (टिकट्स: tickets), if English may be spoken; also
 *   beside Marathi and Nepali.
 * - Hindi in Latin becomes Devanagari if Hindi may be spoken.
 *
 * If the languages are unknown, English in Devanagari is corrected in any text with Devanagari. Hindi in Latin is
 * corrected there too, and where at least two words and half of all are unambiguous.
 */
export function correctScript({
  text,
  words,
  languages,
}: {
  text: string;
  words: readonly RecognisedWord[];
  /** ISO 639-1 codes that may be spoken; null for any. */
  languages: readonly string[] | null;
}): { text: string; words: RecognisedWord[] } {
  const tokens = text.match(TOKEN) ?? [];
  const scope = scopeOf(tokens, languages);
  if (!scope.toLatin && !scope.toDevanagari) return { text, words: [...words] };
  const written = corrected(tokens, scope);
  let next = 0;
  const spoken = corrected(
    words.map(({ word }) => word.match(TOKEN)?.join('') ?? ''),
    scope,
  );
  return {
    text: text.replace(TOKEN, () => written[next++]!),
    words: words.map((word, index) => {
      const core = word.word.match(TOKEN)?.join('') ?? '';
      return { ...word, word: core === '' ? word.word : word.word.replace(core, () => spoken[index]!) };
    }),
  };
}

/** A run of letters with inner apostrophes, so that "it's" is one word. */
const TOKEN = /[\p{L}\p{M}\u200c\u200d]+(?:['’][\p{L}\p{M}]+)*/gu;

/** Hindi, Marathi and Nepali spell English words alike. */
const DEVANAGARI_LANGUAGES: readonly string[] = ['hi', 'mr', 'ne'];

interface Scope {
  toLatin: boolean;
  toDevanagari: boolean;
}

function scopeOf(tokens: readonly string[], languages: readonly string[] | null): Scope {
  if (languages !== null) {
    const isDevanagariSpoken = languages.some((language) => DEVANAGARI_LANGUAGES.includes(language));
    return { toLatin: isDevanagariSpoken && languages.includes('en'), toDevanagari: languages.includes('hi') };
  }
  const hasDevanagari = tokens.some(isDevanagari);
  const certain = tokens.filter((token) => HINDI_IN_LATIN.has(token.toLowerCase())).length;
  return {
    toLatin: hasDevanagari,
    toDevanagari: hasDevanagari || (certain >= 2 && certain >= tokens.length / 2),
  };
}

function corrected(tokens: readonly string[], scope: Scope): string[] {
  const first = tokens.map((token) => {
    if (isDevanagari(token)) return (scope.toLatin && englishOf(token)) || token;
    return (scope.toDevanagari && isTypedHindi(token) && HINDI_IN_LATIN.get(token.toLowerCase())) || token;
  });
  if (!scope.toDevanagari) return first;
  return betweenHindi(first, tokens);
}

/** Doubtful words between two Hindi words are Hindi, and so is a single one at the end after Hindi. */
function betweenHindi(written: readonly string[], tokens: readonly string[]): string[] {
  const out = [...written];
  for (let from = 0; from < tokens.length; from++) {
    let to = from;
    while (to < tokens.length && doubtfulHindi(tokens[to]!) !== undefined) to += 1;
    if (to === from) continue;
    const endsInHindi = to < tokens.length ? isDevanagari(written[to]!) : to - from === 1;
    if (from > 0 && isDevanagari(written[from - 1]!) && endsInHindi) {
      for (let index = from; index < to; index++) out[index] = doubtfulHindi(tokens[index]!)!;
    }
    from = to;
  }
  return out;
}

function doubtfulHindi(token: string): string | undefined {
  return isTypedHindi(token) ? DOUBTFUL_IN_LATIN.get(token.toLowerCase()) : undefined;
}

/** Words with inner capitals or only capitals are names and acronyms. */
function isTypedHindi(token: string): boolean {
  return !/\p{Lu}/u.test(token.slice(1)) && token.length > 1;
}

function isDevanagari(token: string): boolean {
  return /^[\p{Script=Devanagari}\p{M}\u200c\u200d]+$/u.test(token);
}

/** A final s or z, by itself after a vowel or with a virama after a consonant. */
const ENGLISH_PLURAL = /(?:\u094d|(?<=[\u093e-\u094c]))(?:\u0938|\u091c\u093c?|\u095b)$/u;

function englishOf(token: string): string | undefined {
  const word = token.normalize('NFC').replace(/[\u200c\u200d]/g, '');
  const whole = ENGLISH_IN_DEVANAGARI.get(word);
  if (whole !== undefined) return whole;
  const singular = ENGLISH_PLURAL.test(word) ? ENGLISH_IN_DEVANAGARI.get(word.replace(ENGLISH_PLURAL, '')) : undefined;
  return singular === undefined ? undefined : pluralOf(singular);
}

function pluralOf(word: string): string {
  if (/[^aeiou]y$/.test(word)) return `${word.slice(0, -1)}ies`;
  return /(?:s|x|z|ch|sh)$/.test(word) ? `${word}es` : `${word}s`;
}
