import { isSentenceStart } from './abbreviations.ts';
import { isShouted } from './letter-case.ts';
import { endsLine, indexAfter, wordAfter, wordBefore } from './neighbours.ts';
import { HAS_PARTICIPLES, isParticiple } from './participles.ts';
import { lookup, type Rule, TOKENS_PER_SLICE, type Token, token, word } from './token.ts';

/**
 * Expands contractions. 's becomes "has" before some participles, else "is"; after nouns it is possessive and stays. 'd
 * becomes "had" before participles and "better", else "would". In questions "not" moves behind the person.
 */
export const expandContractions: Rule = function* (tokens) {
  const out: Token[] = [];
  for (let at = 0; at < tokens.length; at++) {
    if (at % TOKENS_PER_SLICE === 0) yield;
    const here = tokens[at]!;
    const written = lookup(here);
    const parts = written.includes("'") ? partsOf(tokens, at, written) : null;
    if (parts === null) {
      out.push(here);
      continue;
    }
    const { stem, ending, isQuestion } = parts;
    const suffix = here.text.slice(stem.length);
    const added = /\p{Lu}/u.test(suffix) ? ending.toUpperCase() : ending;
    if (ending === 'cannot') {
      out.push(word(isShouted(here.text) ? 'CANNOT' : `${here.text[0]}annot`));
      continue;
    }
    out.push(word(fullStem(here.text, stem)));
    out.push(token('space', ' '));
    if (isQuestion) {
      // do + you + not
      out.push(tokens[at + 2]!, token('space', ' '));
      at += 2;
    }
    out.push(word(added));
  }
  return out;
};

interface Parts {
  /** The written word before the contraction. */
  stem: string;
  ending: string;
  isQuestion: boolean;
}

function partsOf(tokens: readonly Token[], at: number, written: string): Parts | null {
  const split = written.indexOf("'");
  if (split !== written.lastIndexOf("'")) return null;
  const next = wordAfter(tokens, at);
  const whole = (stem: string, ending: string): Parts => ({ stem, ending, isQuestion: false });
  if (written.endsWith("n't")) {
    if (!NEGATED.has(written)) return null;
    const asks = isAsking(tokens, at, next);
    if (asks === null) return null;
    if (written === "can't" && !asks) return whole("can't", 'cannot');
    return { stem: written.slice(0, -3), ending: 'not', isQuestion: asks };
  }
  const stem = written.slice(0, split);
  switch (written.slice(split)) {
    case "'m":
      return stem === 'i' ? whole(stem, 'am') : null;
    case "'re":
      return PLURAL.has(stem) ? whole(stem, 'are') : null;
    case "'ve":
      return HAVING.has(stem) ? whole(stem, 'have') : null;
    case "'ll":
      return WILLING.has(stem) ? whole(stem, 'will') : null;
    case "'all":
      return stem === 'y' ? whole('y', 'all') : null;
    case "'s":
      if (stem === 'let') return whole(stem, 'us');
      if (!SINGULAR.has(stem)) return null;
      return whole(stem, HAS_PARTICIPLES.has(verbAfter(tokens, at, next)) ? 'has' : 'is');
    case "'d": {
      if (!WILLING.has(stem)) return null;
      const verb = skipAdverb(tokens, at, next);
      if (verb === '') return null;
      return whole(stem, verb === 'better' || isParticiple(verb) ? 'had' : 'would');
    }
    default:
      return null;
  }
}

/** Null if expanding would need another word order: isn't the car nice. */
function isAsking(tokens: readonly Token[], at: number, next: string): boolean | null {
  const isOpening = isSentenceStart(tokens, at) || ASKING.has(wordBefore(tokens, at));
  const isTag = tokens[at - 1]?.kind === 'space' && tokens[at - 2]?.text === ',';
  const verb = lookup(tokens[at]);
  if (!isOpening && !isTag) return false;
  if (PERSONS.has(next)) {
    const afterPerson = wordAfter(tokens, indexAfter(tokens, at));
    if (isTag && !isOpening) return endsLine(tokens, at + 2) || tokens[at + 3]?.kind === 'mark';
    // "Don't you dare" is not a question.
    return verb === "don't" && ['dare', 'ever', 'worry', 'forget'].includes(afterPerson) ? null : true;
  }
  return isOpening && verb !== "don't" && next !== '' && !/^(?:going|been|be|it)$/.test(next) ? null : false;
}

/** In "What's he got" the relevant word follows the person. */
function verbAfter(tokens: readonly Token[], at: number, next: string): string {
  return PERSONS.has(next) ? wordAfter(tokens, indexAfter(tokens, at)) : skipAdverb(tokens, at, next);
}

function skipAdverb(tokens: readonly Token[], at: number, next: string): string {
  return ADVERBS.has(next) ? wordAfter(tokens, indexAfter(tokens, at)) : next;
}

function fullStem(text: string, stem: string): string {
  const found = IRREGULAR.get(stem);
  const bare = text.slice(0, stem.length);
  if (found === undefined) return bare;
  const full = isShouted(text) ? found.toUpperCase() : found;
  return bare[0]! + full.slice(1);
}

/** In won't, shan't, can't in questions, y'all. */
const IRREGULAR = new Map([
  ['wo', 'will'],
  ['sha', 'shall'],
  ['ca', 'can'],
  ['y', 'you'],
]);

const set = (text: string): ReadonlySet<string> => new Set(text.split(' '));
const NEGATED = set(
  "don't doesn't didn't isn't aren't wasn't weren't hasn't haven't hadn't wouldn't couldn't shouldn't mustn't needn't can't won't shan't",
);
const SINGULAR = set('it he she that what who where there here how when why');
const PLURAL = set('you we they who what there');
const HAVING = set('i you we they would could should might must who');
const WILLING = set('i you he she it we they that there who what');
const PERSONS = set('i you he she it we they');
const ASKING = set('why what how where when who');
const ADVERBS = set('already just never always also recently not really only still even probably');
