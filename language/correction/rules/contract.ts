import { isSentenceStart } from './abbreviations.ts';
import { isShouted } from './letter-case.ts';
import { indexAfter, wordAfter, wordBefore } from './neighbours.ts';
import { isParticiple } from './participles.ts';
import { lookup, type Rule, TOKENS_PER_SLICE, type Token, word } from './token.ts';

/**
 * Contracts: do not, I am, we will, let us. Contracts a verb only with pronouns and the like, never with nouns, and
 * only before another word: "yes, it's." and "than he's." are wrong.
 */
export const contract: Rule = function* (tokens) {
  const out: Token[] = [];
  for (let at = 0; at < tokens.length; at++) {
    if (at % TOKENS_PER_SLICE === 0) yield;
    const here = tokens[at]!;
    const first = lookup(here);
    const second = first === '' ? '' : wordAfter(tokens, at);
    const ending = first === 'cannot' ? 'cannot' : endingOf(tokens, at, first, second);
    if (ending === null) {
      out.push(here);
      continue;
    }
    if (ending === 'cannot') out.push(word(here.text === 'CANNOT' ? "CAN'T" : `${here.text.slice(0, 2)}n't`));
    else {
      const next = tokens[at + 2]!;
      out.push(word(joined(here.text, ending, next.text)));
      at += 2;
    }
  }
  return out;
};

function endingOf(tokens: readonly Token[], at: number, first: string, second: string): string | null {
  if (second === 'not') return NEGATED.has(first) && wordAfter(tokens, at + 2) !== 'only' ? "n't" : null;
  const ending = CONTRACTED.get(second)?.get(first);
  if (ending === undefined) return null;
  const third = wordAfter(tokens, at + 2);
  if (third === '' || RELATIVE.has(wordBefore(tokens, at))) return null;
  if (second === 'us') return isSentenceStart(tokens, at) && !LET_US_ALONE.has(third) ? "'s" : null;
  if (third === 'not') {
    // "it is not" becomes "it isn't", but "I amn't" does not exist.
    return second === 'am' ? ending : null;
  }
  if (second === 'have' || second === 'has') {
    const verb = ADVERBS.has(third) ? wordAfter(tokens, indexAfter(tokens, at + 2)) : third;
    return isParticiple(verb) ? ending : null;
  }
  if (ASKING.has(first) && PERSONS.has(third)) return null;
  return ending;
}

function joined(first: string, ending: string, second: string): string {
  const isCapital = isShouted(second) && (isShouted(first) || first.length === 1);
  if (ending !== "n't") return first + (isCapital ? ending.toUpperCase() : ending);
  const stem = IRREGULAR.get(first.toLowerCase());
  const bare = stem === undefined ? first : first.slice(0, stem);
  const negated = first.toLowerCase() === 'will' ? `${first[0]}${isCapital ? 'O' : 'o'}` : bare;
  return negated + (isCapital ? "N'T" : "n't");
}

/** How many letters stay: ca(n)n't, wo(will)n't. */
const IRREGULAR = new Map([
  ['can', 2],
  ['will', 1],
]);

const set = (text: string): ReadonlySet<string> => new Set(text.split(' '));
const NEGATED = set('do does did is are was were has have had would could should must can will need');
const SINGULAR = 'he she it that there who what where here how';
const table = (firsts: string, ending: string) => new Map(firsts.split(' ').map((first) => [first, ending]));
const CONTRACTED: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map([
  ['am', table('i', "'m")],
  ['are', table('you we they', "'re")],
  ['is', table(SINGULAR, "'s")],
  ['has', table('he she it that there who what', "'s")],
  ['have', table('i you we they', "'ve")],
  ['will', table('i you he she it we they that there', "'ll")],
  ['would', table('i you he she we they', "'d")],
  ['us', table('let', "'s")],
]);

/** After these the verb is stressed and cannot contract: what it is today, than he is now, where we are going. */
const RELATIVE = set('what who where how when why which than as whatever wherever however');
const ASKING = set('who what where how');
const PERSONS = set('he she it they we you i');
const ADVERBS = set('already just never always also recently only ever really finally');
const LET_US_ALONE = set('know in have out off down be hear');
