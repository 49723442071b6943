import type { Clock } from '../runtime/clock.ts';
import { UNSPACED_SCRIPTS } from '../runtime/unspaced-scripts.ts';
import { LATE, within } from '../runtime/waiting.ts';
/**
 * Lets a language model correct a transcript with the client's context. The text is never lost: on any failure the
 * original stays.
 */
export type Refine = (request: RefineRequest) => Promise<string>;

export interface RefineRequest {
  text: string;
  /** ISO 639-1. */
  language: string;
  context: RefinementContext;
  /** Aborts when the answer would be too late. */
  signal: AbortSignal;
}

/** The client's description of the conversation. */
export interface RefinementContext {
  general: readonly { key: string; value: string }[];
  text: string | null;
  /** Likely words in their correct spelling. */
  terms: readonly string[];
}

export interface Refinement {
  /** The refined text if `llmApplied`, else the original. */
  text: string;
  llmApplied: boolean;
  llmReason: UnappliedReason | null;
  /** Null if no model was asked. */
  llmLatencyMs: number | null;
}

export type UnappliedReason =
  | 'llm_not_configured'
  | 'llm_timeout'
  | 'llm_unavailable'
  | 'llm_empty'
  | 'dropped_too_many_words'
  | 'added_words';

export interface RefineOptions {
  /** Null: no model is configured. */
  refine: Refine | null;
  context: RefinementContext;
  timeoutMs: number;
  clock: Clock;
  signal: AbortSignal;
}

/** Share of the original's words that the refined text must keep (platform specification, Transcription rule 3). */
const LEAST_WORDS_KEPT = 0.4;

/** Refines a transcript. Never rejects, and takes at most `timeoutMs`, whatever the model does. */
export async function refineTranscript(
  { text, language }: { text: string; language: string },
  { refine, context, timeoutMs, clock, signal }: RefineOptions,
): Promise<Refinement> {
  if (refine === null) return { text, llmApplied: false, llmReason: 'llm_not_configured', llmLatencyMs: null };
  const startedMs = clock.monotonicMs();
  const ended = new AbortController();
  try {
    const asked = refine({ text, language, context, signal: AbortSignal.any([signal, ended.signal]) });
    const answer = await within(asked, { ms: timeoutMs, clock });
    return unlessWorse(text, answer === LATE ? null : answer, clock.monotonicMs() - startedMs);
  } catch {
    return { text, llmApplied: false, llmReason: 'llm_unavailable', llmLatencyMs: clock.monotonicMs() - startedMs };
  } finally {
    ended.abort();
  }
}

function unlessWorse(original: string, answer: string | null, llmLatencyMs: number): Refinement {
  const refined = answer?.trim() ?? '';
  const keep = (llmReason: UnappliedReason) => ({ text: original, llmApplied: false, llmReason, llmLatencyMs });
  if (answer === null) return keep('llm_timeout');
  if (refined === '') return keep('llm_empty');
  if (shareOfWordsKept(original, refined) < LEAST_WORDS_KEPT) return keep('dropped_too_many_words');
  if (hasAddedWords(original, refined)) return keep('added_words');
  return { text: refined, llmApplied: true, llmReason: null, llmLatencyMs };
}

/** Share of the original's words that the refined text contains, each as often; 1 if there were none. */
export function shareOfWordsKept(original: string, refined: string): number {
  const words = wordsOf(original);
  return words.length === 0 ? 1 : 1 - countMissing(words, wordsOf(refined)) / words.length;
}

/** How many of the words the others lack, each as often. */
function countMissing(words: readonly string[], others: readonly string[]): number {
  const left = new Map<string, number>();
  for (const word of others) left.set(word, (left.get(word) ?? 0) + 1);
  let missing = 0;
  for (const word of words) {
    const count = left.get(word) ?? 0;
    if (count === 0) missing += 1;
    else left.set(word, count - 1);
  }
  return missing;
}

/** "Gonna" becomes two words; more words for one were invented. */
const MOST_WORDS_FOR_ONE = 2;
/** Longer texts are only compared by word counts. */
const MOST_COMPARED = 4_000_000;

/**
 * Whether the refined text has invented words: between two words common to both texts, it may have at most twice as
 * many as the original.
 */
export function hasAddedWords(original: string, refined: string): boolean {
  const [spoken, written] = [wordsOf(original), wordsOf(refined)];
  if (spoken.length * written.length > MOST_COMPARED)
    return countMissing(written, spoken) > countMissing(spoken, written) * MOST_WORDS_FOR_ONE;
  const lengths = commonLengths(spoken, written);
  let [from, to] = [0, 0];
  let [replaced, added] = [0, 0];
  while (from < spoken.length || to < written.length) {
    if (from < spoken.length && to < written.length && spoken[from] === written[to]) {
      if (added > replaced * MOST_WORDS_FOR_ONE) return true;
      [replaced, added] = [0, 0];
      from++;
      to++;
    } else if (to === written.length || (from < spoken.length && lengths[from + 1]![to]! >= lengths[from]![to + 1]!)) {
      replaced++;
      from++;
    } else {
      added++;
      to++;
    }
  }
  return added > replaced * MOST_WORDS_FOR_ONE;
}

/** At [i][j], the length of the longest common subsequence of the words from i and j. */
function commonLengths(one: readonly string[], other: readonly string[]): Uint16Array[] {
  const lengths = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      lengths[i]![j] =
        one[i] === other[j] ? lengths[i + 1]![j + 1]! + 1 : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!);
    }
  }
  return lengths;
}

/**
 * Ignores case, punctuation and the encoding of accents. In scripts without spaces each character counts as a word.
 */
function wordsOf(text: string): string[] {
  return text.normalize('NFC').toLowerCase().match(WORD) ?? [];
}

const LETTERS = `[[\\p{L}\\p{M}\\p{N}]--[${UNSPACED_SCRIPTS}]]+`;
const WORD = new RegExp(`[${UNSPACED_SCRIPTS}]\\p{M}*|${LETTERS}(?:['’]${LETTERS})*`, 'gv');
