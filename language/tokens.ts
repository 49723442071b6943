import { createRequire } from 'node:module';

/**
 * Counts tokens as OpenAI's GPT-4o models do (o200k_base). Close enough for other models: it bounds a context, and
 * replaces a count that a server omits.
 */
export type CountTokens = (text: string) => number;

/**
 * Counts in pieces of about 64 characters, cut at spaces where possible, for at most one or two milliseconds. That
 * covers about 10,000 characters of prose, or 300 of text outside the vocabulary. Longer texts are extrapolated from
 * pieces sampled all over the text, accurate to a few percent. The tokenizer alone takes a minute for 100,000
 * adversarial characters.
 */
export const countTokens: CountTokens = (text) => countWith(loadTokenizer(), text);

/**
 * Loads the vocabulary, once: 75 MB, and it blocks the thread for 200 ms. Servers with a language model load it at the
 * start, others on first use, which may never come.
 * @throws Error if the package cannot be loaded
 */
export function loadTokenizer(): CountTokens {
  if (encoding !== null) return encoding;
  const { countTokens: count } = createRequire(import.meta.url)(VOCABULARY) as typeof import('gpt-tokenizer');
  // Names of control tokens are ordinary text here.
  const encode: CountTokens = (text) => count(text, { disallowedSpecial: new Set() });
  // Without a warm-up, the first texts take several times as long.
  for (let round = 0; round < WARM_UPS; round++) countWith(encode, warmUpText(round));
  encoding = encode;
  return encoding;
}

/** Works with any tokenizer. It receives a bounded number of characters, in short pieces. */
export function countWith(encode: CountTokens, text: string): number {
  const pieces = Math.ceil(text.length / PIECE_CHARACTERS);
  const stride = strideOf(pieces);
  let tokens = 0;
  let characters = 0;
  let work = 0;
  // The stride spreads any number of first pieces over the text.
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
/** How far a cut may move back to reach a space. */
const MOST_SHIFT = 24;
/** About a microsecond each. */
const MOST_WORK = 600;
const WARM_UPS = 24;
/** First letters of scripts: Latin, Han, emoji, accents. */
const SCRIPTS = [0x61, 0x4e00, 0x1f300, 0x300] as const;
const SPACE = 0x20;

/** The tokenizer looks up known words whole, and merges everything else byte by byte. */
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

/** Near the golden section of the number of pieces, and coprime to it, so that every piece is visited. */
function strideOf(pieces: number): number {
  let stride = Math.max(1, Math.floor(pieces * 0.618));
  while (commonDivisor(stride, pieces) > 1) stride -= 1;
  return stride;
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b);
}

/** Words whose letters differ in each round. */
function warmUpText(round: number): string {
  const first = SCRIPTS[round % SCRIPTS.length] ?? 0x61;
  const span = first === 0x4e00 ? 20_000 : 26;
  const character = (at: number) => first + ((at * at * 31 + at * 7_919 + round * 104_729) % span);
  return Array.from({ length: 3_000 }, (_, at) =>
    at % 7 === round % 7 ? ' ' : String.fromCodePoint(character(at)),
  ).join('');
}
