import { LONGEST_LIVE_UTTERANCE_MS } from '../../machines/utterances.ts';

export interface SegmentationRules {
  /** Pauses to post within an utterance; null: none. */
  pauses: PauseRules | null;
  /** Pause that ends an utterance. */
  pauseMs: number;
  /** Shorter utterances continue over a pause. The pause counts towards the length. */
  shortestMs: number;
  /** Utterances of this length are split. */
  longestMs: number;
  /** The split is not earlier than this. */
  earliestCutMs: number;
}

export interface PauseRules {
  /** A pause of this length probably ends the utterance. */
  likelyEndMs: number;
  /** After a phrase of this length, a pause of `breathMs` is posted too. */
  longPhraseMs: number;
  breathMs: number;
}

/**
 * The recogniser finishes the text before a pause while the pause lasts, in a tenth of that time. Later pauses delay the
 * final; earlier ones split more sentences.
 */
const LIVE_PAUSES: PauseRules = { likelyEndMs: 350, longPhraseMs: 6_000, breathMs: 200 };

/** A pause cannot be longer than the longest utterance. */
export function liveRules(utteranceEndMs: number): SegmentationRules {
  const longestMs = LONGEST_LIVE_UTTERANCE_MS;
  return {
    pauses: LIVE_PAUSES,
    pauseMs: Math.min(utteranceEndMs, longestMs),
    shortestMs: 0,
    longestMs,
    earliestCutMs: longestMs - 2000,
  };
}

/** Less than a second rarely holds a sentence, and ten minutes is a lot of memory. */
export function chunkRules(minSplitMs: number): SegmentationRules {
  const shortestMs = Math.max(1000, Math.min(minSplitMs, 600_000));
  return { pauses: null, pauseMs: 400, shortestMs, longestMs: 2 * shortestMs, earliestCutMs: shortestMs };
}
