import { isSentenceStart } from './abbreviations.ts';
import { isShouted } from './letter-case.ts';
import { endsLine, indexAfter, wordAfter, wordBefore } from './neighbours.ts';
import { lookup, type Rule, TOKENS_PER_SLICE, type Token, word } from './token.ts';

/** Adds missing apostrophes: dont, Im, and by context its, lets, ill, id. Leaves a possessive "its" alone. */
export const addApostrophes: Rule = function* (tokens) {
  const isCurly = tokens.some(({ kind, text }) => kind === 'word' && text.includes('’'));
  const out: Token[] = [];
  for (let at = 0; at < tokens.length; at++) {
    if (at % TOKENS_PER_SLICE === 0) yield;
    const here = tokens[at]!;
    const full = written(tokens, at);
    out.push(full === null ? here : word(isCurly ? full.replace("'", '’') : full));
  }
  return out;
};

function written(tokens: readonly Token[], at: number): string | null {
  const { text } = tokens[at]!;
  const lower = lookup(tokens[at]);
  if (lower === '' || lower.length > 10) return null;
  // IM, ID and ILL are other words.
  if (isShouted(text) && !lower.endsWith('nt')) return null;
  const full = LACKING.get(lower) ?? (isByContext(tokens, at, lower) ? BY_CONTEXT.get(lower) : undefined);
  if (full === undefined) return null;
  if (isShouted(text)) return full.toUpperCase();
  return /^\p{Lu}/u.test(text) || full.startsWith("i'") ? full[0]!.toUpperCase() + full.slice(1) : full;
}

const NEGATED = 'do does did is are was were has have had would could should must need ai ca wo'.split(' ');
const LACKING: ReadonlyMap<string, string> = new Map(
  [
    ...NEGATED.map((verb) => `${verb}n't`),
    ...[
      "i'm",
      "i've",
      "you're",
      "you've",
      "you'll",
      "you'd",
      "they're",
      "they've",
      "they'll",
      "we've",
      "he's",
      "she's",
    ],
    ...["that's", "what's", "where's", "there's", "here's", "who's", "that'll", "it'll", "would've", "could've"],
    ...["should've", "might've", "y'all", "o'clock", "how's", "when's"],
  ].map((full) => [full.replace("'", ''), full] as const),
);

const BY_CONTEXT = new Map([
  ['its', "it's"],
  ['lets', "let's"],
  ['ill', "i'll"],
  ['id', "i'd"],
]);

function isByContext(tokens: readonly Token[], at: number, lower: string): boolean {
  const next = wordAfter(tokens, at);
  switch (lower) {
    case 'its':
      if (BEHIND_IT_IS.has(next)) return tokens[indexAfter(tokens, at) + 1]?.text !== '-';
      // "Its cold." cannot be possessive.
      return next !== '' && isSentenceStart(tokens, at) && endsSentence(tokens, indexAfter(tokens, at));
    case 'lets':
    case 'ill':
      return VERBS.has(next) && mayBegin(tokens, at);
    case 'id':
      return BEHIND_I_WOULD.has(next) && mayBegin(tokens, at);
    default:
      return false;
  }
}

function mayBegin(tokens: readonly Token[], at: number): boolean {
  const before = wordBefore(tokens, at);
  return (
    isSentenceStart(tokens, at) ||
    CONJUNCTIONS.has(before) ||
    (tokens[at - 1]?.kind === 'space' && tokens[at - 2]?.text === ',')
  );
}

function endsSentence(tokens: readonly Token[], at: number): boolean {
  return endsLine(tokens, at) || /^[.!?]/.test(tokens[at + 1]?.text ?? '');
}

const CONJUNCTIONS = new Set('and but so then or if because that think hope'.split(' '));
const BEHIND_IT_IS = new Set(
  'a an the its not been in on at about all called already too ok from because also still now here there what why how where okay going getting just really probably definitely raining too always never only'.split(
    ' ',
  ),
);
const BEHIND_I_WOULD = new Set('like love rather prefer say be go need want appreciate suggest recommend'.split(' '));
const VERBS = new Set(
  'be do go see call get let send come take check make try have ask tell give need talk wait meet bring help eat play start say discuss keep move look work use find think not just probably also never always hope begin focus'.split(
    ' ',
  ),
);
