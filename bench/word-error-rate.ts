import { seededRandom } from '../runtime/seeded-random.ts';

/**
 * Word error rate: the least number of words to exchange, leave out or put in to make what was understood out of what
 * was said, over the words that were said. Both are written alike first, so that "Press 1, OK?" and "press one okay"
 * are the same.
 */

export interface WordErrors {
  /** That were said. */
  words: number;
  substituted: number;
  missed: number;
  added: number;
}

export function wordErrors(said: string, understood: string): WordErrors {
  return editsBetween(plainWords(said), plainWords(understood));
}

export function sumOfErrors(all: readonly WordErrors[]): WordErrors {
  const sum = { words: 0, substituted: 0, missed: 0, added: 0 };
  for (const errors of all) {
    sum.words += errors.words;
    sum.substituted += errors.substituted;
    sum.missed += errors.missed;
    sum.added += errors.added;
  }
  return sum;
}

/** Above 1 when more was made up than was said; 0 when nothing was said and nothing understood. */
export function errorRate({ words, substituted, missed, added }: WordErrors): number {
  const errors = substituted + missed + added;
  return errors === 0 ? 0 : errors / Math.max(1, words);
}

/** The 95 % confidence interval of the error rate, by a bootstrap over utterances. */
export function errorRateInterval(all: readonly WordErrors[]): [low: number, high: number] {
  const random = seededRandom(1);
  const rates = Array.from({ length: 2000 }, () =>
    errorRate(sumOfErrors(all.map(() => all[Math.floor(random() * all.length)]!))),
  ).sort((a, b) => a - b);
  return [rates[49] ?? 0, rates[1949] ?? 0];
}

/** Lower-case words without punctuation, numbers and symbols as they are spoken in English. */
export function plainWords(text: string): string[] {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[’`]/g, "'")
    .replace(/\[[^\]]*\]|\([^)]*\)/g, ' ')
    .replace(/[#*@&%]/g, (symbol) => ` ${SYMBOLS[symbol]} `)
    .replace(/(\d)[,](?=\d{3})/g, '$1')
    .replace(/(\d)\.(?=\d)/g, '$1 point ')
    .replace(/\d+/g, (digits) => ` ${spokenNumber(digits)} `)
    .split(/[^\p{L}\p{M}']+/u)
    .map((word) => word.replace(/^'+|'+$/g, ''))
    .filter((word) => word !== '')
    .flatMap((word) => (SPELLINGS[word] ?? word).split(' '));
}

const SYMBOLS: Record<string, string> = { '#': 'pound', '*': 'star', '@': 'at', '&': 'and', '%': 'percent' };

/** One of several ways to write what sounds the same. */
const SPELLINGS: Record<string, string> = {
  mr: 'mister',
  mrs: 'missus',
  dr: 'doctor',
  ok: 'okay',
  voicemail: 'voice mail',
  mailbox: 'mail box',
  touchtone: 'touch tone',
  cannot: 'can not',
  logon: 'log on',
  login: 'log in',
};

const ONES =
  'zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen'.split(
    ' ',
  );
const TENS = '_ _ twenty thirty forty fifty sixty seventy eighty ninety'.split(' ');

/** Up to 999 as a number, longer ones and those that start with a zero digit by digit. */
function spokenNumber(digits: string): string {
  if (digits.length > 3 || (digits.length > 1 && digits.startsWith('0'))) {
    return [...digits].map((digit) => ONES[Number(digit)]).join(' ');
  }
  const value = Number(digits);
  const hundreds = Math.floor(value / 100);
  const rest = value % 100;
  const spokenRest =
    rest < 20 ? ONES[rest]! : `${TENS[Math.floor(rest / 10)]}${rest % 10 === 0 ? '' : ` ${ONES[rest % 10]}`}`;
  if (hundreds === 0) return spokenRest;
  return `${ONES[hundreds]} hundred${rest === 0 ? '' : ` ${spokenRest}`}`;
}

/** Levenshtein's alignment, row by row; of alignments with as few errors, one with the most words in their place. */
export function editsBetween(said: readonly string[], understood: readonly string[]): WordErrors {
  const nothing: WordErrors = { words: said.length, substituted: 0, missed: 0, added: 0 };
  let previous = [nothing];
  for (const _ of understood) previous.push({ ...previous.at(-1)!, added: previous.at(-1)!.added + 1 });
  for (const word of said) {
    const current = [{ ...previous[0]!, missed: previous[0]!.missed + 1 }];
    for (const [index, heard] of understood.entries()) {
      const diagonal = previous[index]!;
      const candidates = [
        heard === word ? diagonal : { ...diagonal, substituted: diagonal.substituted + 1 },
        { ...previous[index + 1]!, missed: previous[index + 1]!.missed + 1 },
        { ...current[index]!, added: current[index]!.added + 1 },
      ];
      current.push(candidates.reduce((best, one) => (errorsIn(one) < errorsIn(best) ? one : best)));
    }
    previous = current;
  }
  return previous.at(-1)!;
}

function errorsIn({ substituted, missed, added }: WordErrors): number {
  return substituted + missed + added;
}
