import { createRequire } from 'node:module';

/**
 * Tokens of a text as the models of OpenAI's GPT-4o family count them (o200k_base); close enough for those that count
 * otherwise: it bounds a context and stands in for a count that a server does not give.
 */
export type CountTokens = (text: string) => number;

/**
 * Counts in pieces of some 64 characters, cut at spaces where there are any, for as long as that takes a millisecond or
 * two: all of some 10,000 characters of prose, 300 of what no vocabulary knows. Of longer texts it counts pieces all over
 * the text and multiplies, which is right within some percent, and takes as long whatever the text is: the tokenizer by
 * itself takes a minute for 100,000 characters that are chosen well.
 */
export const countTokens: CountTokens = (text) => countWith(loadTokenizer(), text);

/**
 * Loads the vocabulary, once. That takes 75 MB and holds the thread up for 200 ms: servers with a language model do it at
 * the start, all others when the first text is counted, which for most of them is never.
 * @throws Error when the package cannot be loaded
 */
export function loadTokenizer(): CountTokens {
  if (encoding !== null) return encoding;
  const { countTokens: count } = createRequire(import.meta.url)(VOCABULARY) as typeof import('gpt-tokenizer');
  // Names of control tokens are text like any other.
  const encode: CountTokens = (text) => count(text, { disallowedSpecial: new Set() });
  // The first texts would take several times as long.
  for (let round = 0; round < WARM_UPS; round++) countWith(encode, warmUpText(round));
  encoding = encode;
  return encoding;
}

/** With any tokenizer; it is given a bounded number of characters, in short pieces. */
export function countWith(encode: CountTokens, text: string): number {
  const pieces = Math.ceil(text.length / PIECE_CHARACTERS);
  const stride = strideOf(pieces);
  let tokens = 0;
  let characters = 0;
  let work = 0;
  // In an order in which any number of the first pieces are spread over the text.
  for (let visited = 0; visited < pieces && work < MOST_WORK; visited++) {
    const at = (visited * stride) % pieces;
    const piece = text.slice(cutAt(text, at * PIECE_CHARACTERS), cutAt(text, (at + 1) * PIECE_CHARACTERS));
    const count = encode(piece);
    tokens += count;
    characters += piece.length;
    work += workOf(piece, count);
  }
  return characters === 0 ? 0 : Math.ceil((tokens * text.length) / characters);
}

const VOCABULARY = 'gpt-tokenizer/encoding/o200k_base';
let encoding: CountTokens | null = null;

const PIECE_CHARACTERS = 64;
/** A cut may be so far behind where it should be, to be at a space. */
const MOST_SHIFT = 24;
/** In microseconds, about. */
const MOST_WORK = 600;
const WARM_UPS = 24;
/** Where scripts begin: small letters, Han, emoji, accents. */
const SCRIPTS = [0x61, 0x4e00, 0x1f300, 0x300] as const;
const SPACE = 0x20;

/** Words of the vocabulary are looked up whole; everything else is merged byte by byte. */
function workOf(piece: string, tokens: number): number {
  let spaces = 0;
  for (let at = 0; at < piece.length; at++) if (piece.charCodeAt(at) === SPACE) spaces += 1;
  const isProse = spaces * 12 >= piece.length && spaces * 2 < piece.length && tokens <= piece.length * 0.35;
  return isProse ? tokens * 0.3 : 1 + tokens * 2.5;
}

function cutAt(text: string, position: number): number {
  if (position === 0 || position >= text.length) return Math.min(position, text.length);
  for (let at = position; at < position + MOST_SHIFT && at < text.length; at++) {
    if (text.charCodeAt(at) === SPACE) return at;
  }
  const isInsidePair = (text.charCodeAt(position) & 0xfc00) === 0xdc00;
  return isInsidePair ? position + 1 : position;
}

/** Near the golden section of the number, and without a common divisor, so that every piece has its turn. */
function strideOf(pieces: number): number {
  let stride = Math.max(1, Math.floor(pieces * 0.618));
  while (commonDivisor(stride, pieces) > 1) stride -= 1;
  return stride;
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b);
}

/** Words of letters that no two rounds share. */
function warmUpText(round: number): string {
  const first = SCRIPTS[round % SCRIPTS.length] ?? 0x61;
  const span = first === 0x4e00 ? 20_000 : 26;
  const character = (at: number) => first + ((at * at * 31 + at * 7_919 + round * 104_729) % span);
  return Array.from({ length: 3_000 }, (_, at) =>
    at % 7 === round % 7 ? ' ' : String.fromCodePoint(character(at)),
  ).join('');
}
