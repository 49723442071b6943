import type { RecognisedWord } from '../../../machines/utterances.ts';
import { type DecodedSegment, FRAME_MS, LOG_BASE } from './decoder.ts';

/** Words of a path, in order and within the utterance, without silence and noise. */
export function wordsOf(
  segments: readonly DecodedSegment[],
  { durationMs, hasPosteriors }: { durationMs: number; hasPosteriors: boolean },
): RecognisedWord[] {
  const spoken = segments.filter(({ word }) => !FILLER.test(word));
  return spoken.map(({ word, startFrame, endFrame, logPosterior }) => {
    const startMs = Math.min(startFrame * FRAME_MS, durationMs);
    return {
      word: word.replace(ALTERNATIVE, ''),
      startMs,
      endMs: Math.max(startMs, Math.min((endFrame + 1) * FRAME_MS, durationMs)),
      confidence: hasPosteriors ? Math.min(1, LOG_BASE ** logPosterior) : null,
      speaker: null,
      original: null,
    };
  });
}

export function textOf(words: readonly RecognisedWord[]): string {
  return words.map(({ word }) => word).join(' ');
}

/** `<s>`, `<sil>`, `[NOISE]`, `++breath++`. */
const FILLER = /^(<.*>|\[.*\]|\+\+.*\+\+)$/;
const ALTERNATIVE = /\(\d+\)$/;
