import type { ReadWord } from './read-words.ts';

/**
 * Cuts words into clauses for synthesis: sentences, and parts of long ones. The first clause is as short as possible,
 * because the listener waits for it. Units such as dates stay together.
 */
export function cutClauses(words: readonly ReadWord[], { isFirst }: { isFirst: boolean }): ReadWord[][] {
  const clauses: ReadWord[][] = [];
  let start = 0;
  let isFirstOfText = isFirst;
  while (start < words.length) {
    const end = endOfClause(words, start, isFirstOfText ? FIRST : LATER);
    const clause = words.slice(start, end);
    clauses.push(clause);
    isFirstOfText &&= clause.every(({ spoken }) => spoken === '');
    start = end;
  }
  return clauses;
}

interface Limits {
  words: number;
  length: number;
  /** A sentence up to this length stays whole. */
  sentence: number;
  /** Number of words from which a comma ends the clause; null: only the end of a sentence does. */
  commaWords: number | null;
  /** Minimum length of a clause cut at a comma or conjunction. */
  least: number;
}

const FIRST: Limits = { words: 12, length: 60, sentence: 70, commaWords: 3, least: 12 };
const LATER: Limits = { words: 1000, length: 250, sentence: 250, commaWords: null, least: 80 };

function endOfClause(words: readonly ReadWord[], start: number, limits: Limits): number {
  let length = 0;
  let atComma = 0;
  let atConjunction = 0;
  let anywhere = 0;
  for (let at = start; at < words.length; at++) {
    const { written, spoken, ends, joinsNext } = words[at]!;
    const before = length;
    length += Math.max(written.length, spoken.length) + 1;
    if (length > limits.sentence && at > start) {
      const end = atComma || atConjunction || anywhere;
      if (end > start) return end;
      // A unit that stays together, such as a telephone number: up to the limit of any clause.
      if (length > LATER.length) return at;
      if (!words[at - 1]!.joinsNext && before >= limits.least) return at;
    }
    if (
      before >= limits.least &&
      !words[at - 1]?.joinsNext &&
      CONJUNCTION.test(written) &&
      isWithin(limits, at - start, before)
    ) {
      atConjunction = at;
    }
    if (ends === 'sentence') return at + 1;
    if (joinsNext || !isWithin(limits, at - start + 1, length)) continue;
    if (length >= limits.least) anywhere = at + 1;
    if (ends !== 'clause') continue;
    if (limits.commaWords !== null && at - start + 1 >= limits.commaWords) return at + 1;
    if (length >= limits.least) atComma = at + 1;
  }
  return limits.commaWords === null || length <= limits.sentence ? words.length : anywhere || words.length;
}

function isWithin(limits: Limits, words: number, length: number): boolean {
  return words <= limits.words && length <= limits.length;
}

/** A pause before these is natural. */
const CONJUNCTION =
  /^(and|or|but|because|which|that|who|when|where|while|if|so|to|for|with|from|then|und|oder|aber|weil|dass|et|ou|mais|que|y|o|pero|और|कि|लेकिन|तो|क्योंकि|या|এবং|কিন্তু|மற்றும்|ஆனால்|మరియు|కానీ|आणि|पण|અને|ಮತ್ತು|കൂടാതെ|ਅਤੇ|ଏବଂ|আৰু|اور|لیکن)$/iu;
