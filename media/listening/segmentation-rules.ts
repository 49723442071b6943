import { LONGEST_LIVE_UTTERANCE_MS } from '../../machines/utterances.ts';

/** When an utterance ends. */
export interface SegmentationRules {
  /** A pause of this length ends an utterance, */
  pauseMs: number;
  /** unless it is shorter than this, its pause included. */
  shortestMs: number;
  /** An utterance this long is cut, */
  longestMs: number;
  /** but not before this much of it. */
  earliestCutMs: number;
}

/** A pause that would outlast the longest utterance is as good as none. */
export function liveRules(utteranceEndMs: number): SegmentationRules {
  const longestMs = LONGEST_LIVE_UTTERANCE_MS;
  return { pauseMs: Math.min(utteranceEndMs, longestMs), shortestMs: 0, longestMs, earliestCutMs: longestMs - 2000 };
}

/** Chunks of less than a second hold no sentence, and those of ten minutes do not belong into memory. */
export function chunkRules(minSplitMs: number): SegmentationRules {
  const shortestMs = Math.max(1000, Math.min(minSplitMs, 600_000));
  return { pauseMs: 400, shortestMs, longestMs: 2 * shortestMs, earliestCutMs: shortestMs };
}
