import { schemaCheck } from '../../runtime/schema-check.ts';

/** What a recognizer in a child process is asked and answers: the calls are the methods of `Recognizer`. */

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

export const UtteranceOptionsArgument = schemaCheck({
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
});
