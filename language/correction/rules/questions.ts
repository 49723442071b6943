import type { Sentence } from './sentences.ts';
import { lookup, type Token } from './token.ts';

/**
 * Whether an English sentence is a question, by its beginning: "is it", "what do you", "who"; or its end: ", isn't it".
 */
export function isQuestion(tokens: readonly Token[], { first, last }: Sentence): boolean {
  const words: string[] = [];
  let commaBefore = -1;
  for (let at = first; at <= last && words.length <= MOST_WORDS; at++) {
    const { kind, text } = tokens[at]!;
    if (kind === 'mark' && text === ',') commaBefore = words.length;
    // A sentence that quotes a question is a statement.
    if (kind === 'mark' && /^["”]$/.test(text)) return false;
    if (kind === 'mark' && text === ':') words.length = 0;
    if (kind === 'word' || kind === 'number' || kind === 'kept')
      words.push(LETTERS.get(text) ?? (lookup(tokens[at]) || '-'));
  }
  if (words.length > MOST_WORDS) return false;
  if (commaBefore > 0 && isTag(words.slice(commaBefore))) return true;
  // "It's late, isn't it", in any spelling.
  if (words.length > 3 && words.at(-2)!.endsWith("n't") && isTag(words.slice(-2))) return true;
  if (words.length === 1 && ALONE.has(words[0]!)) return true;
  let start = words.slice(0, 3).join(' ') === 'by the way' ? 3 : 0;
  while (start < words.length - 1 && OPENERS.has(words[start]!)) start++;
  return asks(words.slice(start));
}

const MOST_WORDS = 30;
/** In messages. */
const LETTERS = new Map([
  ['u', 'you'],
  ['r', 'are'],
]);

function asks([first = '', second = '', third = '', ...rest]: readonly string[]): boolean {
  // "What is more, ..." is a statement.
  if (second === 'more' || (second === 'is' && third === 'more')) return false;
  if (WHOSE.has(first)) return second !== '' && !(rest.length > 6);
  if (ASKING.has(first)) return asksWith(first, [second, third, ...rest]);
  if (CONTRACTED_ASKING.has(first)) return second !== '';
  return (
    SUBJECTS_OF.get(first.replace("n't", ''))?.has(second) === true &&
    !(first.endsWith("n't") && !PERSONS.has(second) && !POINTED_AT.has(second))
  );
}

function asksWith(first: string, after: readonly string[]): boolean {
  const [second = '', third = ''] = after;
  // "What happened was this" is a statement.
  if (second === 'happened' && (third === 'was' || third === 'is')) return false;
  if (first === 'which' && ((second === 'of' && third !== 'course') || second === 'one')) return after.length > 2;
  if (first === 'how' && COUNTED.has(second)) return asksHowMany(after);
  if (PHRASES.has(`${first} ${second}`)) return third !== '' || second === 'else' || second === 'happened';
  if (second === 'is' || second === 'are' || second === 'was' || second === 'were') {
    // "What is important is rest", "which is nice" and "when is" alone are not questions.
    return third !== '' && first !== 'which' && !after.slice(2).some((word) => word === 'is' || word === 'are');
  }
  if (AUXILIARIES.has(second)) return SUBJECTS.has(third) || (third !== '' && first !== 'when');
  if (first !== 'what' && first !== 'how' && first !== 'which') return false;
  // Such as: "What time is it", "how many people are there", "which of these do you want"
  for (let at = 1; at <= 3 && at < after.length; at++) {
    if (SUBJECTS.has(after[at - 1]!) && !OF_THINGS.has(after[at - 1]!)) return false;
    if (AUXILIARIES.has(after[at]!)) return SUBJECTS.has(after[at + 1] ?? '');
  }
  return false;
}

/** "How many people are coming", "how long will it"; not "how long it will". */
function asksHowMany(after: readonly string[]): boolean {
  const verb = after.findIndex((word, index) => index > 0 && AUXILIARIES.has(word));
  const between = after.slice(1, Math.max(1, verb));
  return (
    verb > 0 &&
    verb <= 5 &&
    !between.some((word, index) => SUBJECTS.has(word) && word !== 'people' && between[index - 1] !== 'of')
  );
}

function isTag(words: readonly string[]): boolean {
  const [first = '', second = '', third] = words;
  if (words.length === 1) return first === 'right' || first === 'okay' || first === 'correct';
  return third === undefined && PERSONS.has(second) && (first.endsWith("n't") || AUXILIARIES.has(first));
}

const set = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));
const OPENERS = set('btw so and but well hey hi hello ok okay please sorry there thanks yes no then also oh');
const ASKING = set('what how which where when why');
const ALONE = set('what why who where when how');
const COUNTED = set('many much long often far old soon');
const POINTED_AT = set('that this these those there');
const WHOSE = set('who whose whom');
const CONTRACTED_ASKING = set("what's where's who's how's when's");
const AUXILIARIES = set(
  `is are was were do does did can could will would should has have had may might must am
  isn't aren't wasn't weren't don't doesn't didn't can't couldn't won't wouldn't shouldn't hasn't haven't`,
);
const PERSONS = set('i you he she it we they');
const OF_THINGS = set('these those this that the my your our their');
const SUBJECTS = set(
  `i you he she it we they this that these those there the a an my your our his her their its
  anyone anybody everyone everybody someone somebody people`,
);
const PHRASES = new Set(['what about', 'how about', 'how come', 'what if', 'why not', 'what happened', 'what else']);
/**
 * Words that make a question of each verb: "do the dishes", "have a nice day" and "should you need" are not questions.
 */
const SUBJECTS_OF: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ...['is', 'was', 'are', 'does', 'did', 'can', 'could', 'will', 'would', 'ca', 'wo'].map(
    (verb) => [verb, SUBJECTS] as const,
  ),
  ['were', set('you they we the there these those')],
  ['am', set('i')],
  ['do', set('you we they i these those people')],
  ['have', set('you we they i')],
  ['has', set('he she it anyone anybody everyone someone the this that my your our')],
  ['should', set('i we it he she they')],
  ['shall', set('i we')],
  ['may', set('i we')],
  ['must', set('i we you')],
]);
