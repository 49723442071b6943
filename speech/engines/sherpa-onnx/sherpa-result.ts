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
    /** From streaming models. */
    ys_probs: Numbers,
    /** From streaming models with hotwords: the boost of each token. */
    context_scores: Numbers,
    /** From other models. */
    ys_log_probs: Numbers,
    lang: { type: 'string' },
    /** From Whisper, which times whole sentences. */
    segment_timestamps: Numbers,
    segment_durations: Numbers,
    segment_texts: { type: 'array', items: { type: 'string' } },
  },
} as const;

const Result = schemaCheck(ResultSchema);

/** The result for one piece of audio; times are in seconds from its start. */
export interface SherpaResult {
  text: string;
  said: TimedTokens;
  /** Hotword boost of each token; empty if the model does not report it. */
  helped: readonly number[];
  /** In sherpa-onnx's notation, or ''. */
  language: string;
  /** Parts of the text with their times; empty if the model has none. */
  segments: { text: string; startS: number; endS: number }[];
}

/** @throws TypeError if it is not a valid result */
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
