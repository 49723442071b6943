import { isSentenceStart } from './abbreviations.ts';
import { endsLine } from './neighbours.ts';
import { isWordLike, lookup, mark, type Rule, TOKENS_PER_SLICE, type Token } from './token.ts';

export type MailLine = 'header' | 'greeting' | 'closing' | 'signature';

/** Returns the kind of mail line that contains a token; null for the mail's text. */
export type FindMailLine = (at: number) => MailLine | null;

export const noMail: FindMailLine = () => null;

/**
 * Finds "Subject: ...", a greeting alone on the first line, and near the end a closing with a name or two below it.
 * Anything else is text, including a greeting within a line.
 */
export function* mailLinesOf(tokens: readonly Token[]): Generator<void, FindMailLine> {
  const lines = yield* nonEmptyLines(tokens);
  const kinds = new Map<number, MailLine>();
  let next = 0;
  while (next < lines.length && next < 10 && isHeader(lines[next]!)) kinds.set(lines[next++]!.from, 'header');
  const greeting = lines[next];
  if (greeting !== undefined && isGreeting(greeting)) kinds.set(greeting.from, 'greeting');
  for (let index = Math.max(next + 1, lines.length - 4); index < lines.length - 1; index++) {
    const below = lines.slice(index + 1);
    if (!CLOSINGS.has(lines[index]!.words.join(' ')) || !below.every(({ words }) => words.length <= 4)) continue;
    kinds.set(lines[index]!.from, 'closing');
    for (const { from } of below) kinds.set(from, 'signature');
    break;
  }
  const last = lines.at(-1);
  // Without a name below it.
  if (last !== undefined && lines.length > 1 && LAST_CLOSINGS.test(last.words.join(' ')))
    kinds.set(last.from, 'header');
  const starts = lines.map(({ from }) => from);
  return (at) => kinds.get(startOf(starts, at)) ?? null;
}

/** Adds a comma after greeting and closing. */
export const commasOfMail: Rule = function* (tokens) {
  const find = yield* mailLinesOf(tokens);
  const out: Token[] = [];
  for (const [at, here] of tokens.entries()) {
    if (at % TOKENS_PER_SLICE === 0) yield;
    out.push(here);
    if (!isWordLike(here) || !endsLine(tokens, at)) continue;
    const line = find(at);
    if (line === 'greeting' || line === 'closing') out.push(mark(','));
  }
  return out;
};

interface Line {
  /** Index of its first token. */
  from: number;
  words: string[];
  text: string;
}

function* nonEmptyLines(tokens: readonly Token[]): Generator<void, Line[]> {
  const lines: Line[] = [];
  let line: Line = { from: 0, words: [], text: '' };
  const end = (next: number) => {
    if (line.text.trim() !== '') lines.push(line);
    line = { from: next, words: [], text: '' };
  };
  for (let at = 0; at < tokens.length; at++) {
    if (at % TOKENS_PER_SLICE === 0) yield;
    const here = tokens[at]!;
    if (here.kind === 'break') end(at + 1);
    else {
      if (line.text.length < 100) line.text += here.text;
      if (isWordLike(here) && line.words.length < 10) line.words.push(lookup(here) || here.text);
    }
  }
  end(tokens.length);
  return lines;
}

function isHeader({ text }: Line): boolean {
  return /^(?:subject|to|from|cc|bcc|date|reply-to|re|fwd?) ?:/i.test(text);
}

function isGreeting({ words, text }: Line): boolean {
  const [first = '', second = ''] = words;
  const greets = GREETINGS.has(first) || (first === 'good' && DAYTIMES.has(second));
  return (
    greets &&
    words.length <= 6 &&
    !/[.?](?! ?[\p{L}])|[,:;!](?=.*\p{L})/u.test(text) &&
    !words.some((word) => VERBS.has(word))
  );
}

/** The greatest start at or before a token. */
function startOf(starts: readonly number[], at: number): number {
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle]! <= at) low = middle + 1;
    else high = middle;
  }
  return starts[low - 1] ?? -1;
}

/** Whether a word in a greeting or below a closing is a lower-case name. */
export function isName(tokens: readonly Token[], at: number, line: MailLine | null): boolean {
  const word = lookup(tokens[at]);
  if (line === 'signature') return word.length > 1 && !NO_NAMES.has(word);
  return line === 'greeting' && !NO_NAMES.has(word) && !isSentenceStart(tokens, at);
}

const set = (text: string): ReadonlySet<string> => new Set(text.split(' '));
const GREETINGS = set('hi hello hey dear greetings');
const DAYTIMES = set('morning afternoon evening day');
const NO_NAMES = set(
  'or and all team everyone everybody folks there both morning afternoon evening day the of my at to from',
);
const VERBS = set('is are was were have has can could will would please thanks i we you do does did how what');
const LAST_CLOSINGS = /^(?:(?:best|kind|warm) )?regards$|^best wishes$|^yours \w+$|^sincerely$/;
const CLOSINGS: ReadonlySet<string> = new Set([
  ...[
    'regards',
    'best regards',
    'kind regards',
    'warm regards',
    'with kind regards',
    'with best regards',
    'best',
    'best wishes',
    'thanks in advance',
    'thank you in advance',
  ],
  ...[
    'all the best',
    'thanks',
    'many thanks',
    'thank you',
    'thanks and regards',
    'sincerely',
    'yours sincerely',
    'cheers',
  ],
  ...['yours faithfully', 'yours truly', 'sincerely yours', 'respectfully', 'cordially', 'yours', 'love', 'take care'],
]);
