import type { RecognisedWord } from '../../machines/utterances.ts';

/** Tokens of a model. Times are in seconds, probabilities as logarithms. */
export interface TimedTokens {
  tokens: readonly string[];
  /** Start of each token; empty if the model does not report it. */
  timestamps: readonly number[];
  /** Empty for most models. */
  durations: readonly number[];
  logProbabilities: readonly number[];
}

/** A time range in the utterance. */
export interface Span {
  startMs: number;
  endMs: number;
}

/**
 * Computes the times of a text's words. Capitals, punctuation and numerals may have changed since the tokens were
 * joined: letters are matched, or their share of the text where they differ. Without token times, words divide the span
 * by letters.
 */
export function timeWords(text: string, said: TimedTokens, { startMs, endMs }: Span): RecognisedWord[] {
  const words = splitWords(text);
  const tokenOfLetter = lettersOfTokens(said.tokens);
  const letterCounts = words.map((word) => Math.max(1, countLetters(word)));
  const letters = letterCounts.reduce((sum, count) => sum + count, 0);
  const hasTimes = said.timestamps.length > 0 && said.timestamps.length === said.tokens.length;
  const clamp = (ms: number) => Math.round(Math.min(Math.max(ms, startMs), endMs));
  let before = 0;
  return words.map((word, index) => {
    const after = before + letterCounts[index]!;
    const share = (at: number) => startMs + ((endMs - startMs) * at) / letters;
    const tokens = tokensBetween(tokenOfLetter, { from: before / letters, to: after / letters });
    const [startAt, endAt] =
      hasTimes && tokens !== null
        ? [startMs + said.timestamps[tokens.first]! * 1000, startMs + tokenEnd(said, tokens.last) * 1000]
        : [share(before), share(after)];
    const confidence = tokens === null ? null : confidenceOf(said, tokens);
    before = after;
    return {
      word,
      startMs: clamp(startAt),
      endMs: clamp(Math.max(startAt, endAt)),
      confidence,
      speaker: null,
      original: null,
    };
  });
}

/** Mean of the known values; null if there are none. */
export function meanConfidence(words: readonly RecognisedWord[]): number | null {
  const known = words.flatMap(({ confidence }) => confidence ?? []);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}

/** Chinese and Japanese have no spaces: each character is a word, with the punctuation after it. */
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}][^\p{L}\p{N}\s]*|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]+/gu;

export function splitWords(text: string): string[] {
  return text.match(WORD) ?? [];
}

const LETTER = /[\p{L}\p{N}\p{M}]/gu;

function countLetters(text: string): number {
  return text.match(LETTER)?.length ?? 0;
}

/** The token of each letter in the joined tokens. */
function lettersOfTokens(tokens: readonly string[]): number[] {
  const owners: number[] = [];
  for (let index = 0; index < tokens.length; index++) {
    const byte = byteOf(tokens[index]!);
    // The first byte of a character spelt in bytes stands for all: the others continue it.
    const letters = byte === null ? countLetters(tokens[index]!) : Number((byte & 0xc0) !== 0x80);
    for (let letter = 0; letter < letters; letter++) owners.push(index);
  }
  return owners;
}

/** `<0xE4>`: one byte of a character that has no token of its own. */
function byteOf(token: string): number | null {
  const match = /^<0x([0-9A-F]{2})>$/.exec(token);
  return match === null ? null : Number.parseInt(match[1]!, 16);
}

/** Tokens that contain a range of letters, given as shares of all letters. */
function tokensBetween(
  owners: readonly number[],
  { from, to }: { from: number; to: number },
): { first: number; last: number } | null {
  if (owners.length === 0) return null;
  const first = Math.min(owners.length - 1, Math.round(from * owners.length));
  const end = Math.max(first + 1, Math.round(to * owners.length));
  return { first: owners[first]!, last: owners[Math.min(owners.length, end) - 1]! };
}

/** Models report only the start of a token. It lasts until the next, but no longer than a syllable. */
const LONGEST_TOKEN_S = 0.3;

function tokenEnd({ timestamps, durations }: TimedTokens, token: number): number {
  const start = timestamps[token]!;
  const duration = durations[token];
  if (duration !== undefined && duration > 0) return start + duration;
  return Math.min(timestamps[token + 1] ?? Number.POSITIVE_INFINITY, start + LONGEST_TOKEN_S);
}

function confidenceOf(
  { logProbabilities, tokens }: TimedTokens,
  range: { first: number; last: number },
): number | null {
  if (logProbabilities.length !== tokens.length) return null;
  const logs = logProbabilities.slice(range.first, range.last + 1);
  const mean = Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length);
  return Number.isFinite(mean) ? Math.min(1, Math.max(0, mean)) : null;
}
