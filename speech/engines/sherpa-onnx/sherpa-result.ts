import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import type { TimedTokens } from '../timed-words.ts';

const Numbers = Type.Array(Type.Number());

const ResultSchema = Type.Object({
  text: Type.String(),
  tokens: Type.Array(Type.String()),
  timestamps: Numbers,
  durations: Type.Optional(Numbers),
  /** Of streaming models. */
  ys_probs: Type.Optional(Numbers),
  /** Of the others. */
  ys_log_probs: Type.Optional(Numbers),
  lang: Type.Optional(Type.String()),
  /** Of Whisper, which times whole sentences. */
  segment_timestamps: Type.Optional(Numbers),
  segment_durations: Type.Optional(Numbers),
  segment_texts: Type.Optional(Type.Array(Type.String())),
});

const Result = Compile(ResultSchema);

/** What was understood of one piece of audio; times are seconds of it. */
export interface SherpaResult {
  text: string;
  said: TimedTokens;
  /** As sherpa-onnx writes it, or ''. */
  language: string;
  /** Parts of the text with their times; empty when the model has none. */
  segments: { text: string; startS: number; endS: number }[];
}

/** @throws TypeError when it is no result */
export function parseResult(answer: unknown, { timesScale }: { timesScale: number }): SherpaResult {
  if (!Result.Check(answer)) throw new TypeError('sherpa-onnx returned an invalid result');
  return {
    text: answer.text.trim(),
    said: {
      tokens: answer.tokens,
      timestamps: answer.timestamps.map((seconds) => seconds * timesScale),
      durations: answer.durations ?? [],
      logProbabilities: answer.ys_probs ?? answer.ys_log_probs ?? [],
    },
    language: answer.lang ?? '',
    segments: segmentsOf(answer),
  };
}

function segmentsOf({
  segment_texts,
  segment_timestamps,
  segment_durations,
}: Static<typeof ResultSchema>): SherpaResult['segments'] {
  if (segment_texts === undefined) return [];
  return segment_texts.flatMap((text, index) => {
    const startS = segment_timestamps?.[index];
    const durationS = segment_durations?.[index];
    return startS === undefined || durationS === undefined ? [] : [{ text, startS, endS: startS + durationS }];
  });
}
