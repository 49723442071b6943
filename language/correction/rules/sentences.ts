import { ENDING_ABBREVIATIONS, NEVER_ENDING } from './abbreviation-words.ts';
import { type FindMailLine, noMail } from './mail-lines.ts';
import { endsLine, wordBefore } from './neighbours.ts';
import { isWordLike, lookup, TOKENS_PER_SLICE, type Token } from './token.ts';

/** A range of tokens, [from, to). Includes closing marks and quotes. */
export interface Sentence {
  from: number;
  to: number;
  /** Index of the first and last word-like token. */
  first: number;
  last: number;
  /** Ends with a final mark, which may belong to an abbreviation. */
  isEnded: boolean;
  opens: 'line' | 'item' | 'heading' | 'inside';
}

/**
 * Finds sentences. Abbreviations, initials, decimals and three dots before a small letter do not end one. A line break
 * does, unless the line was wrapped: it is long, has no final mark, and the next line starts with a small letter.
 */
export function* sentencesOf(
  tokens: readonly Token[],
  /** Lines of a mail are never wrapped. */
  mailLineAt: FindMailLine = noMail,
): Generator<void, Sentence[]> {
  const sentences: Sentence[] = [];
  let from = 0;
  let opens: Sentence['opens'] = 'line';
  let lineLength = 0;
  for (let at = 0; at < tokens.length; at++) {
    if (at % TOKENS_PER_SLICE === 0) yield;
    const here = tokens[at]!;
    lineLength += here.text.length;
    switch (here.kind) {
      case 'lead':
        opens = here.text.trim() === '' ? opens : here.text.trimStart().startsWith('#') ? 'heading' : 'item';
        break;
      case 'break':
        if (
          !(isWrapped(tokens, at, lineLength) && mailLineAt(at + 1) === null) &&
          !(opens === 'item' && isContinued(tokens, at))
        ) {
          close(at, false);
          from = at + 1;
          opens = 'line';
        }
        lineLength = 0;
        break;
      default:
        if (isEnd(tokens, at)) {
          at = endOfClosers(tokens, at);
          close(at + 1, true);
          from = at + 1;
          opens = 'inside';
        }
    }
  }
  close(tokens.length, false);
  return sentences;

  function close(to: number, isEnded: boolean): void {
    let first = from;
    while (first < to && !isWordLike(tokens[first])) first++;
    if (first === to) return;
    let last = to - 1;
    while (!isWordLike(tokens[last])) last--;
    const text = tokens[last]!;
    const isLast = tokens.slice(last + 1, to).every(({ kind }) => kind === 'space');
    const isAbbreviated = isLast && text.kind === 'word' && text.text.endsWith('.');
    sentences.push({ from, to, first, last, isEnded: isEnded || isAbbreviated, opens });
  }
}

/** A shorter line was broken on purpose. */
const WRAPPED_LENGTH = 50;

function isWrapped(tokens: readonly Token[], at: number, lineLength: number): boolean {
  const before = tokens[at - 1]?.kind === 'space' ? tokens[at - 2] : tokens[at - 1];
  const next = tokens[at + 1];
  return lineLength >= WRAPPED_LENGTH && isWordLike(before) && next?.kind === 'word' && /^\p{Ll}/u.test(next.text);
}

/** An indented line below an item continues it. */
function isContinued(tokens: readonly Token[], at: number): boolean {
  const next = tokens[at + 1];
  const word = tokens[at + 2];
  return next?.kind === 'lead' && next.text.trim() === '' && word?.kind === 'word' && /^\p{Ll}/u.test(word.text);
}

export const FINAL_MARK = /^(?:[.!?]+|…|[।॥۔؟。！？])$/u;
const CLOSER = /^(?:["'”’»›)\]}*_~]+|\*+|\]\(.*\))$/u;

function isEnd(tokens: readonly Token[], at: number): boolean {
  const { kind, text } = tokens[at]!;
  if (kind === 'word')
    return text.endsWith('.') && ENDING_ABBREVIATIONS.has(text.toLowerCase()) && isBeforeCapital(tokens, at);
  if (kind !== 'mark' || !FINAL_MARK.test(text)) return false;
  if (/[。！？।॥۔؟]/u.test(text)) return true;
  const closer = endOfClosers(tokens, at);
  const next = tokens[closer + 1];
  if (next !== undefined && next.kind !== 'space' && next.kind !== 'break' && next.kind !== 'picture') return false;
  if (/^\.{2,}$|…/.test(text)) return isBeforeCapital(tokens, closer) || endsLine(tokens, closer);
  if (text !== '.') {
    // "Are you sure?" she asked.
    return closer === at || !isBeforeSmall(tokens, closer);
  }
  const before = tokens[at - 1];
  if (before?.kind !== 'word') return true;
  const word = lookup(before);
  const isEtAl = word === 'al' && wordBefore(tokens, at - 1) === 'et';
  if (isEtAl || NEVER_ENDING.has(word)) return endsLine(tokens, closer);
  if (ENDING_ABBREVIATIONS.has(`${word}.`)) return !isBeforeSmall(tokens, closer);
  // J. K. Rowling
  return !/^\p{Lu}$/u.test(before.text) || before.text === 'I' || endsLine(tokens, closer);
}

function endOfClosers(tokens: readonly Token[], at: number): number {
  let end = at;
  while (tokens[end + 1]?.kind === 'mark' && CLOSER.test(tokens[end + 1]!.text)) end++;
  return end;
}

function isBeforeCapital(tokens: readonly Token[], at: number): boolean {
  return startOfNext(tokens, at, /^\p{Lu}/u);
}

function isBeforeSmall(tokens: readonly Token[], at: number): boolean {
  return startOfNext(tokens, at, /^\p{Ll}/u);
}

function startOfNext(tokens: readonly Token[], at: number, pattern: RegExp): boolean {
  let next = tokens[at + 1]?.kind === 'space' ? at + 2 : at + 1;
  while (tokens[next]?.kind === 'mark' && /^["'“‘([]$/.test(tokens[next]!.text)) next++;
  return tokens[next]?.kind === 'word' && pattern.test(tokens[next]!.text);
}
