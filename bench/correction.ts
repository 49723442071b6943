import { correctByRules } from '../language/correction/rules/correct-by-rules.ts';
import type { CorrectionStyle } from '../language/correction/text-correction.ts';
import { CORRECT_TEXTS } from './correction-texts.ts';
import { seedErrors } from './seed-errors.ts';
import { editsBetween, sumOfErrors } from './word-error-rate.ts';

/**
 * Measures what the rules of text correction fix and break: wrong words before and after, including capitals, marks and
 * apostrophes, also in correct texts, which should stay. Then characters per second of CPU time, compared with one
 * regular expression that replaces the words of the same dictionary.
 */

const STYLE: CorrectionStyle = {
  ...{ tone: null, autoCapitalize: true, autoPunctuate: true, useContractions: null, expandAbbreviations: false },
};
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
const MEASURE_MS = 1_000;
/** A hundred words of the texts. */
const DICTIONARY = [...new Set(CORRECT_TEXTS.join(' ').match(/\b[a-z]{4,}\b/g))]
  .slice(0, 100)
  .map((term) => ({ term, replacement: `${term[0]!.toUpperCase()}-${term}` }));

console.log('words wrong, capitals and marks included');
for (const chance of [0, 0.25, 0.5, 1]) {
  const pairs = CORRECT_TEXTS.flatMap((text) =>
    SEEDS.map((seed) => ({ text, typed: seedErrors(text, { chance, seed }) })),
  );
  const before = wrong(pairs.map(({ text, typed }) => [text, typed]));
  const after = wrong(pairs.map(({ text, typed }) => [text, corrected(typed)]));
  console.log(
    `  errors seeded at ${percent(chance)} of their places: ${percent(before)} before, ${percent(after)} after`,
  );
}

const long = seedErrors(CORRECT_TEXTS.join(' ').repeat(12), { chance: 0.5, seed: 1 }).slice(0, 30_000);
const pattern = new RegExp(`\\b(?:${DICTIONARY.map(({ term }) => term).join('|')})\\b`, 'gi');
const byTerm = new Map(DICTIONARY.map(({ term, replacement }) => [term, replacement]));
const reference = charactersPerSecond(() => long.replace(pattern, (term) => byTerm.get(term.toLowerCase()) ?? term));
const rules = charactersPerSecond(() => corrected(long, DICTIONARY));
const dictionaryOnly = charactersPerSecond(() => corrected(long, DICTIONARY, false));
console.log('characters a second');
console.log(`  one regular expression of the dictionary's words: ${thousands(reference)}`);
console.log(
  `  rules with the dictionary alone: ${thousands(dictionaryOnly)}, 1/${Math.round(reference / dictionaryOnly)} of it`,
);
console.log(`  all rules, until nothing changes: ${thousands(rules)}, 1/${Math.round(reference / rules)} of it`);

function corrected(text: string, dictionary: typeof DICTIONARY = [], isStyled = true): string {
  const style = isStyled ? STYLE : { ...STYLE, autoCapitalize: false, autoPunctuate: false };
  const work = correctByRules({ text, dictionary, style, appContext: null });
  let step = work.next();
  while (!step.done) step = work.next();
  return step.value;
}

/** Share of the words of the correct texts. */
function wrong(pairs: readonly (readonly string[])[]): number {
  const { words, substitutions, deletions, insertions } = sumOfErrors(
    pairs.map(([text = '', written = '']) => editsBetween(text.split(' '), written.split(' '))),
  );
  return (substitutions + deletions + insertions) / words;
}

function charactersPerSecond(run: () => string): number {
  for (let index = 0; index < 5; index++) run();
  const startedAt = process.cpuUsage();
  const endMs = performance.now() + MEASURE_MS;
  let characters = 0;
  while (performance.now() < endMs) {
    run();
    characters += long.length;
  }
  const { user, system } = process.cpuUsage(startedAt);
  return (characters * 1e6) / (user + system);
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function thousands(count: number): string {
  return `${Math.round(count / 1000).toLocaleString('en')} thousand`;
}
