import type { RecognisedWord } from '../machines/utterances.ts';

/**
 * Removes hesitation sounds. Only meaningless ones: "mhm", "uh-huh" and "ah" are answers, "like" and "you know" are
 * words. Each language has its own list, because "um" is a number in Portuguese and "er" a pronoun in German.
 */
export function removeFillers(
  { text, words }: { text: string; words: readonly RecognisedWord[] },
  language: string,
): { text: string; words: RecognisedWord[] } {
  const fillers = FILLERS[language] ?? FILLERS_ANYWHERE;
  // In a transcript of only capitals, capitals do not mark an acronym.
  const isShouted = text === text.toUpperCase();
  const isFiller = (token: string) => {
    const sound = soundOf(token);
    return fillers.test(sound.toLowerCase()) && (isShouted || sound.length < 2 || sound !== sound.toUpperCase());
  };
  const tokens = text.split(/\s+/u).filter((token) => token !== '');
  if (!tokens.some(isFiller)) return { text, words: [...words] };
  return { text: joined(tokens, isFiller), words: words.filter(({ word }) => !isFiller(word)) };
}

/** Whole words in lower case. A drawn-out letter may repeat any number of times. */
const FILLERS: Record<string, RegExp> = Object.assign(Object.create(null), {
  en: /^(?:u+m+|u+h+|u+hm+|e+rm+|er|e+hm+|h+m+|m{3,})$/,
  de: /^(?:ä+h+|ä+h?m+|ö+h+|ö+h?m+|e+hm+|h+m+|m{3,})$/,
  fr: /^(?:e+u+h+|h+e+u+|h+e+m+|h+m+|m{3,})$/,
  es: /^(?:e+hm+|e{2,}m*|h+m+|m{3,})$/,
  it: /^(?:e+hm+|u+hm+|h+m+|m{3,})$/,
  pt: /^(?:ã+h+|e+hm+|h+u*m{2,}|h+m+|m{3,})$/,
  nl: /^(?:e+h+|e+hm+|u+h+|u+hm+|e+u+h+|h+m+|m{3,})$/,
  sv: /^(?:ö+h+|e+h+|e+hm+|h+m+|m{3,})$/,
  pl: /^(?:y{2,}|e{3,}|e+hm+|y+m+|h+m+|m{3,})$/,
  ru: /^(?:э+|э+м+|х+м+|м{2,})$/,
  uk: /^(?:е{3,}|е+м+|х+м+|м{2,})$/,
  hi: /^(?:उम्म+|उम्|अम्म+|हम्म+|ह्म्म+|म्म+म्?|u+m+|h+m+|m{3,})$/,
  ar: /^(?:ا?م{3,}|اه{3,}م*|ه{2,}م+)$/,
  zh: /^(?:呃+|額+)$/,
  ja: /^(?:え[ーぇ]+と|えー?っと[ー]*|えー+|うー+ん|あのー+)$/,
});

const FILLERS_ANYWHERE = /^(?:h+m{2,}|m{3,}|u+hm+|e+hm+)$/;

/** A word without the punctuation around it. */
function soundOf(token: string): string {
  return token.replace(/^[^\p{L}\p{M}\p{N}]+|[^\p{L}\p{M}\p{N}]+$/gu, '');
}

/** Removes fillers, but keeps a removed word's final mark and the capital of a sentence's first word. */
function joined(tokens: readonly string[], isFiller: (token: string) => boolean): string {
  const kept: string[] = [];
  let isCapitalWanted = false;
  for (const token of tokens) {
    if (!isFiller(token)) {
      kept.push(isCapitalWanted ? capitalised(token) : token);
      isCapitalWanted = false;
      continue;
    }
    if (isSentenceStart(kept)) isCapitalWanted ||= /^\p{Lu}/u.test(soundOf(token));
    const [ending] = /[.?!。？！।…]+$/u.exec(token) ?? [];
    const last = kept.at(-1);
    if (ending !== undefined && last !== undefined && !isSentenceStart(kept)) {
      kept[kept.length - 1] = last.replace(/[,;:—–-]+$/u, '') + ending;
    }
  }
  // "I am, um" leaves a comma that separates nothing.
  const isEndCut = tokens.length > 0 && isFiller(tokens.at(-1)!);
  return isEndCut ? kept.join(' ').replace(/\s*[,;:—–-]+$/u, '') : kept.join(' ');
}

function isSentenceStart(kept: readonly string[]): boolean {
  return kept.length === 0 || /[.?!。？！।…]["'”’)]*$/u.test(kept.at(-1)!);
}

function capitalised(token: string): string {
  return token.replace(/\p{L}/u, (letter) => letter.toUpperCase());
}
