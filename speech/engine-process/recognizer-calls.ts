import { schemaCheck } from '../../runtime/schema-check.ts';

/**
 * Calls to recognizers in a child process, and their answers: the methods of `Recognizer`. Each call contains the place
 * of its recognizer; the first use of a place creates it with `beside`.
 */

const Milliseconds = { type: 'number', minimum: 0 } as const;
const Probability = { type: ['number', 'null'], minimum: 0, maximum: 1 } as const;

const RecognisedWordSchema = {
  type: 'object',
  required: ['word', 'startMs', 'endMs', 'confidence', 'speaker', 'original'],
  properties: {
    word: { type: 'string', minLength: 1 },
    startMs: Milliseconds,
    endMs: Milliseconds,
    confidence: Probability,
    speaker: { type: ['string', 'null'] },
    original: { type: ['string', 'null'] },
  },
} as const;

const HypothesisSchema = {
  type: 'object',
  required: ['text', 'words'],
  properties: { text: { type: 'string' }, words: { type: 'array', items: RecognisedWordSchema } },
} as const;

export const HypothesisAnswer = schemaCheck({ anyOf: [HypothesisSchema, { type: 'null' }] });

export const RecognitionAnswer = schemaCheck({
  type: 'object',
  required: ['text', 'words', 'language', 'languageProbability', 'confidence', 'model'],
  properties: {
    text: { type: 'string' },
    words: { type: 'array', items: RecognisedWordSchema },
    language: { type: 'string', minLength: 1 },
    languageProbability: Probability,
    confidence: Probability,
    model: { type: 'string', minLength: 1 },
  },
});

const UtteranceOptionsSchema = {
  type: 'object',
  required: ['language', 'keywords', 'isLive'],
  properties: {
    language: { type: ['string', 'null'] },
    keywords: {
      type: 'array',
      items: {
        type: 'object',
        required: ['term', 'weight'],
        properties: { term: { type: 'string' }, weight: { type: 'number' } },
      },
    },
    isLive: { type: 'boolean' },
  },
} as const;

export const BeginArgument = schemaCheck({
  type: 'object',
  required: ['place', 'options'],
  properties: { place: { type: 'integer', minimum: 0 }, options: UtteranceOptionsSchema },
});
