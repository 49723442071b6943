import type { RecognisedWord, Recognition } from '../../../machines/utterances.ts';
import { schemaCheck } from '../../../runtime/schema-check.ts';
import { RecognizerError } from '../../recognizer.ts';
import { meanConfidence, timeWords } from '../timed-words.ts';
import { toLanguageCode } from '../whisper-languages.ts';

/** `json` has the text, `verbose_json` the rest. Servers omit what they do not know. */
const Answer = schemaCheck({
  type: 'object',
  required: ['text'],
  properties: {
    text: { type: 'string' },
    language: { type: ['string', 'null'] },
    words: {
      anyOf: [
        {
          type: 'array',
          items: {
            type: 'object',
            required: ['word', 'start', 'end'],
            properties: {
              word: { type: 'string' },
              start: { type: 'number' },
              end: { type: 'number' },
              /** From faster-whisper and its servers. */
              probability: { type: ['number', 'null'] },
            },
          },
        },
        { type: 'null' },
      ],
    },
    segments: {
      anyOf: [
        {
          type: 'array',
          items: {
            type: 'object',
            required: ['text', 'start', 'end'],
            properties: {
              text: { type: 'string' },
              start: { type: 'number' },
              end: { type: 'number' },
              avg_logprob: { type: ['number', 'null'] },
            },
          },
        },
        { type: 'null' },
      ],
    },
  },
});

export interface TranscriptionContext {
  model: string;
  /** The requested language; null if the server should detect it. */
  language: string | null;
  /** Assumed if the server reports none. */
  fallbackLanguage: string;
  durationMs: number;
}

interface Segment {
  text: string;
  startMs: number;
  endMs: number;
  confidence: number | null;
}

/** @throws RecognizerError `unavailable` if the response is invalid */
export function toRecognition(answer: unknown, context: TranscriptionContext): Recognition {
  if (!Answer.matches(answer)) {
    throw new RecognizerError('unavailable', 'the transcription server returned an invalid transcription', {
      retryable: true,
    });
  }
  const { durationMs } = context;
  const clamp = (seconds: number) => Math.round(Math.min(Math.max(0, seconds * 1000), durationMs));
  const segments: Segment[] = (answer.segments ?? []).map(({ text, start, end, avg_logprob }) => ({
    text,
    startMs: clamp(start),
    endMs: clamp(Math.max(start, end)),
    confidence: typeof avg_logprob === 'number' ? probability(Math.exp(avg_logprob)) : null,
  }));
  const reported = (answer.words ?? []).flatMap(({ word, start, end, probability: own }) => {
    const [startMs, endMs] = [clamp(start), clamp(Math.max(start, end))];
    const confidence = typeof own === 'number' ? probability(own) : segmentAt(segments, startMs)?.confidence;
    // Splits what a server reports as one word but clients would read as several.
    return wordsIn(word, { startMs, endMs, confidence: confidence ?? null });
  });
  const text = answer.text.trim();
  const words = reported.length > 0 || text === '' ? reported : wordsOfSegments(text, { segments, durationMs });
  return {
    text,
    words,
    language: toLanguageCode(answer.language ?? '') ?? context.language ?? context.fallbackLanguage,
    languageProbability: null,
    confidence: meanConfidence(words),
    model: context.model,
  };
}

/** Distributed by letters over the segments, or over the utterance if there are none. */
function wordsOfSegments(
  text: string,
  { segments, durationMs }: { segments: readonly Segment[]; durationMs: number },
): RecognisedWord[] {
  const parts = segments.length > 0 ? segments : [{ text, startMs: 0, endMs: durationMs, confidence: null }];
  return parts.flatMap(({ text: part, ...span }) => wordsIn(part, span));
}

function wordsIn(text: string, { confidence, ...span }: Omit<Segment, 'text'>): RecognisedWord[] {
  return timeWords(text, UNTIMED, span).map((word) => ({ ...word, confidence }));
}

const UNTIMED = { tokens: [], timestamps: [], durations: [], logProbabilities: [] };

function segmentAt(segments: readonly Segment[], atMs: number): Segment | undefined {
  return segments.findLast(({ startMs }) => startMs <= atMs);
}

function probability(value: number): number | null {
  return Number.isFinite(value) ? Math.min(1, Math.max(0, value)) : null;
}
