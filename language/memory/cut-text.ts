import type { CountTokens } from '../tokens.ts';
import type { TextBlock } from './text-blocks.ts';

export interface CutOptions {
  countTokens: CountTokens;
  mostTokens: number;
  /** How much a piece of running text repeats of the one before. */
  overlapTokens: number;
}

/**
 * Cuts a block that is too long: at lines where they carry meaning, else at sentences, then words, then letters. A
 * piece of running text starts with the end of the one before; a piece of a table with the head, of a turn with the
 * speaker. Undefined marks a point where the caller may let other work run.
 */
export function* cutBlock(block: TextBlock, options: CutOptions): Generator<string | undefined, void> {
  const { countTokens, mostTokens, overlapTokens } = options;
  const repeated = repeatedOf(block);
  const prefix = repeated !== '' && tokensIn(repeated, countTokens) <= mostTokens / 4 ? repeated : '';
  const room = mostTokens - (prefix === '' ? 0 : tokensIn(prefix, countTokens) + 1);
  const overlap = block.kind === 'paragraph' || block.kind === 'turn' ? overlapTokens : 0;
  let piece: Atom[] = [];
  let tokens = 0;
  let isFirst = true;
  let fresh = 0;

  for (const atom of atomsOf(block, { countTokens, mostTokens: room })) {
    if (atom === undefined) {
      yield undefined;
      continue;
    }
    if (fresh > 0 && tokens + atom.tokens > room) {
      yield written();
      piece = endOf(piece, Math.min(overlap, room - atom.tokens));
      tokens = piece.reduce((sum, each) => sum + each.tokens, 0);
      fresh = 0;
    }
    piece.push(atom);
    tokens += atom.tokens;
    fresh += 1;
  }
  if (fresh > 0) yield written();

  function written(): string {
    const text = piece
      .map((each) => each.text)
      .join('')
      .replace(/^\n+/, '')
      .trimEnd();
    const whole = isFirst || prefix === '' ? text : `${prefix}${text.trimStart()}`;
    isFirst = false;
    return whole;
  }
}

/** Counts the tokens of a text in pieces, because a very long word takes long to count. An upper bound. */
export function tokensIn(text: string, countTokens: CountTokens): number {
  if (text.length <= COUNTED_AT_ONCE) return countTokens(text);
  let tokens = 0;
  for (const run of runsOf(text, COUNTED_AT_ONCE)) tokens += countTokens(run);
  return tokens;
}

const COUNTED_AT_ONCE = 400;
const ATOMS_BETWEEN_PAUSES = 16;
/** Letters per piece when words are counted. */
const WORDS_LENGTH = 160;

/** The smallest unit, with the white space after it. */
interface Atom {
  text: string;
  tokens: number;
}

function* atomsOf(
  { kind, text }: TextBlock,
  { countTokens, mostTokens }: Omit<CutOptions, 'overlapTokens'>,
): Generator<Atom | undefined, void> {
  const byLines = kind === 'list' || kind === 'table' || kind === 'code';
  let sincePause = 0;
  for (const part of byLines ? linesWithEnds(text) : sentencesOf(text)) {
    for (const atom of divided(part)) {
      yield atom;
      if (++sincePause === ATOMS_BETWEEN_PAUSES) {
        sincePause = 0;
        yield undefined;
      }
    }
  }

  function* divided(part: string): Generator<Atom | undefined, void> {
    // Clearly too long, so its tokens are not counted.
    const tokens = part.length > mostTokens * 40 ? Number.POSITIVE_INFINITY : tokensIn(part, countTokens);
    if (tokens <= mostTokens) {
      yield { text: part, tokens };
      return;
    }
    for (const run of runsOf(part, WORDS_LENGTH)) yield* fitting(run);
  }

  function* fitting(run: string): Generator<Atom | undefined, void> {
    const tokens = countTokens(run);
    if (tokens <= mostTokens || run.length <= 2) {
      yield { text: run, tokens };
      return;
    }
    const middle = beforeSurrogate(run, run.length >> 1);
    yield* fitting(run.slice(0, middle));
    yield* fitting(run.slice(middle));
  }
}

/** The last atoms that fit the limit. */
function endOf(atoms: readonly Atom[], mostTokens: number): Atom[] {
  let tokens = 0;
  let from = atoms.length;
  while (from > 1 && tokens + atoms[from - 1]!.tokens <= mostTokens) tokens += atoms[--from]!.tokens;
  return atoms.slice(from);
}

/** The text that precedes every piece but the first. */
function repeatedOf({ kind, label, text }: TextBlock): string {
  if (kind === 'turn') return `${label} `;
  if (kind !== 'table') return '';
  const head = text.split('\n', 2);
  return head.length === 2 && /^[\s|:-]+$/.test(head[1]!.slice(0, 400)) ? `${head.join('\n')}\n` : '';
}

/** Yields runs of whole words up to that length, with their white space. Divides longer words. */
function* runsOf(text: string, length: number): Generator<string, void> {
  let start = 0;
  while (start < text.length) {
    let end = Math.min(text.length, start + length);
    if (end < text.length) {
      let space = end;
      while (space > start && !isSpace(text.charCodeAt(space - 1))) space -= 1;
      end = space > start ? space : beforeSurrogate(text, end);
    }
    yield text.slice(start, end);
    start = end;
  }
}

/** A sentence ends with a full stop or the like before white space, or with the mark of a language without spaces. */
function* sentencesOf(text: string): Generator<string, void> {
  let start = 0;
  let isOver = false;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    const isBreak = isSpace(code);
    const next = i + 1 < text.length ? text.charCodeAt(i + 1) : -1;
    if ((isBreak && (isOver || code === 0x0a) && !isSpace(next)) || WIDE_STOPS.has(code)) {
      yield text.slice(start, i + 1);
      start = i + 1;
      isOver = false;
    } else if (STOPS.has(code)) isOver = true;
    else if (!isBreak && !CLOSERS.has(code)) isOver = false;
  }
  if (start < text.length) yield text.slice(start);
}

function* linesWithEnds(text: string): Generator<string, void> {
  let start = 0;
  while (start < text.length) {
    const end = text.indexOf('\n', start);
    yield text.slice(start, end === -1 ? text.length : end + 1);
    if (end === -1) return;
    start = end + 1;
  }
}

/** Never splits a surrogate pair. */
function beforeSurrogate(text: string, at: number): number {
  const code = text.charCodeAt(at);
  const isInside = code >= 0xdc00 && code <= 0xdfff && at > 1;
  return isInside ? at - 1 : at;
}

function isSpace(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d) || code === 0xa0 || code === 0x3000 || code === 0x2028;
}

const codesOf = (letters: string) => new Set([...letters].map((letter) => letter.charCodeAt(0)));
const STOPS = codesOf('.!?…।॥');
const WIDE_STOPS = codesOf('。！？');
const CLOSERS = codesOf('"\')]}’”»');
