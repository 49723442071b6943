import { isSentenceStart } from './abbreviations.ts';
import { endsLine, indexAfter, wordAfter } from './neighbours.ts';
import { lookup, mark, type Rule, TOKENS_PER_SLICE, type Token } from './token.ts';

/** Adds commas after unambiguous introductory words, and before "sir" and "ma'am". */
export const addCommas: Rule = function* (tokens) {
  const out: Token[] = [];
  let commaBehind = -1;
  for (let at = 0; at < tokens.length; at++) {
    if (at % TOKENS_PER_SLICE === 0) yield;
    const here = tokens[at]!;
    const word = lookup(here);
    if (INTRODUCING.has(word) && isSentenceStart(tokens, at))
      commaBehind = Math.max(commaBehind, lastIntroducing(tokens, at, word));
    out.push(here);
    if (at === commaBehind || (GREETED.has(word) && isAddressed(tokens, at))) out.push(mark(','));
  }
  return out;
};

/** Index of the last introductory word; -1 if no comma belongs after it. */
function lastIntroducing(tokens: readonly Token[], at: number, word: string): number {
  for (const { words, isBefore } of INTRODUCING.get(word)!) {
    let last = at;
    const matches = words.every((wanted) => {
      last = indexAfter(tokens, last);
      return lookup(tokens[last]) === wanted;
    });
    const next = matches ? wordAfter(tokens, last) : '';
    if (next !== '' && isBefore(next)) return last;
  }
  return -1;
}

function isAddressed(tokens: readonly Token[], at: number): boolean {
  const next = wordAfter(tokens, at);
  const last = indexAfter(tokens, at);
  const ends = endsLine(tokens, last) || /^[.!?,]/.test(tokens[last + 1]?.text ?? '');
  return (next === 'sir' || next === "ma'am") && ends;
}

const set = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));
const GREETED = set('yes no thanks you hello hi sorry');
/** Words that begin a clause. */
const SUBJECTS = set(
  `i we he she they it this that these those there the a an my our his her their your
  i'm i've i'll i'd we're we've we'll he's she's it's they're that's there's`,
);
const BEHIND_YES = set(
  `i we he she they it you please i'm i've i'll i'd we're we've we'll he's she's it's they're you're that's there's thanks thank`,
);
const NOT_BEHIND_FOR = set('for of to with');

interface Introduction {
  words: readonly string[];
  isBefore: (next: string) => boolean;
}

const INTRODUCING: ReadonlyMap<string, Introduction[]> = introductions([
  ['yes no nope yeah yep', (next) => BEHIND_YES.has(next)],
  ['however therefore thus otherwise meanwhile finally instead consequently', (next) => SUBJECTS.has(next)],
  [
    'unfortunately fortunately furthermore moreover nevertheless nonetheless additionally',
    (next) => !NOT_BEHIND_FOR.has(next),
  ],
]);

function introductions(rows: readonly (readonly [string, (next: string) => boolean])[]): Map<string, Introduction[]> {
  const all = new Map<string, Introduction[]>();
  const add = (first: string, introduction: Introduction) => all.set(first, [...(all.get(first) ?? []), introduction]);
  for (const [firsts, isBefore] of rows) for (const first of firsts.split(' ')) add(first, { words: [], isBefore });
  const phrases = [
    ...[
      'for example',
      'for instance',
      'in addition',
      'in other words',
      'on the other hand',
      'as a result',
      'in conclusion',
    ],
    ...['by the way', 'in fact', 'after all', 'to be honest', 'as far as i know', 'in my opinion'],
  ];
  for (const phrase of phrases) {
    const [first = '', ...words] = phrase.split(' ');
    add(first, { words, isBefore: (next) => SUBJECTS.has(next) });
  }
  return all;
}
