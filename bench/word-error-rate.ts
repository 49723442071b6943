import { seededRandom } from '../runtime/seeded-random.ts';

/**
 * Word error rate: the fewest substitutions, deletions and insertions that turn the spoken words into the recognised
 * ones, over the number of spoken words. Both are normalised first, so that "Press 1, OK?" equals "press one okay".
 */

export interface WordErrors {
  words: number;
  substitutions: number;
  deletions: number;
  insertions: number;
}

export function wordErrors(spoken: string, recognised: string): WordErrors {
  return editsBetween(plainWords(spoken), plainWords(recognised));
}

export function sumOfErrors(all: readonly WordErrors[]): WordErrors {
  const sum = { words: 0, substitutions: 0, deletions: 0, insertions: 0 };
  for (const errors of all) {
    sum.words += errors.words;
    sum.substitutions += errors.substitutions;
    sum.deletions += errors.deletions;
    sum.insertions += errors.insertions;
  }
  return sum;
}

/** Above 1 if more was invented than spoken; 0 if nothing was spoken or recognised. */
export function errorRate(all: WordErrors): number {
  return errorsIn(all) / Math.max(1, all.words);
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
export function editsBetween(spoken: readonly string[], recognised: readonly string[]): WordErrors {
  const nothing: WordErrors = { words: spoken.length, substitutions: 0, deletions: 0, insertions: 0 };
  let previous = [nothing];
  for (const _ of recognised) previous.push({ ...previous.at(-1)!, insertions: previous.at(-1)!.insertions + 1 });
  for (const word of spoken) {
    const current = [{ ...previous[0]!, deletions: previous[0]!.deletions + 1 }];
    for (const [index, other] of recognised.entries()) {
      const diagonal = previous[index]!;
      const candidates = [
        other === word ? diagonal : { ...diagonal, substitutions: diagonal.substitutions + 1 },
        { ...previous[index + 1]!, deletions: previous[index + 1]!.deletions + 1 },
        { ...current[index]!, insertions: current[index]!.insertions + 1 },
      ];
      current.push(candidates.reduce((best, one) => (errorsIn(one) < errorsIn(best) ? one : best)));
    }
    previous = current;
  }
  return previous.at(-1)!;
}

function errorsIn({ substitutions, deletions, insertions }: WordErrors): number {
  return substitutions + deletions + insertions;
}
