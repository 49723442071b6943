import { seededRandom } from '../runtime/seeded-random.ts';

/**
 * Word error rate: the fewest substitutions, deletions and insertions that turn the spoken words into the recognised
 * ones, over the number of spoken words. Both are normalised first, so that "Press 1, OK?" equals "press one okay".
 */

export interface WordErrors {
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

/** Above 1 if more was invented than spoken; 0 if nothing was spoken or recognised. */
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

/** Lower-case words without punctuation; numbers and symbols as spoken in English. */
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

/** Maps different spellings of the same sound to one. */
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

/** Up to 999 as a number; longer ones and those with a leading zero digit by digit. */
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

/** Levenshtein alignment, row by row. Prefers the one with the most matching words among equally good alignments. */
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
