import type { Static } from 'typebox';
import { schemaCheck } from '../../../runtime/schema-check.ts';
import type { TimedTokens } from '../timed-words.ts';

const Numbers = { type: 'array', items: { type: 'number' } } as const;

const ResultSchema = {
  type: 'object',
  required: ['text', 'tokens', 'timestamps'],
  properties: {
    text: { type: 'string' },
    tokens: { type: 'array', items: { type: 'string' } },
    timestamps: Numbers,
    durations: Numbers,
    /** Of streaming models. */
    ys_probs: Numbers,
    /** Of streaming models with hotwords: how much these helped each token. */
    context_scores: Numbers,
    /** Of the others. */
    ys_log_probs: Numbers,
    lang: { type: 'string' },
    /** Of Whisper, which times whole sentences. */
    segment_timestamps: Numbers,
    segment_durations: Numbers,
    segment_texts: { type: 'array', items: { type: 'string' } },
  },
} as const;

const Result = schemaCheck(ResultSchema);

/** What was understood of one piece of audio; times are seconds of it. */
export interface SherpaResult {
  text: string;
  said: TimedTokens;
  /** How much hotwords helped each token; empty where the model does not say. */
  helped: readonly number[];
  /** As sherpa-onnx writes it, or ''. */
  language: string;
  /** Parts of the text with their times; empty when the model has none. */
  segments: { text: string; startS: number; endS: number }[];
}

/** @throws TypeError when it is no result */
export function parseResult(answer: unknown, { timesScale }: { timesScale: number }): SherpaResult {
  if (!Result.matches(answer)) throw new TypeError('sherpa-onnx returned an invalid result');
  return {
    text: answer.text.trim(),
    said: {
      tokens: answer.tokens,
      timestamps: answer.timestamps.map((seconds) => seconds * timesScale),
      durations: answer.durations ?? [],
      logProbabilities: answer.ys_probs ?? answer.ys_log_probs ?? [],
    },
    helped: answer.context_scores ?? [],
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
