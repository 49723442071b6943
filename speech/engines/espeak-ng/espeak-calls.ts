import type { Static } from 'typebox';
import { schemaCheck } from '../../../runtime/schema-check.ts';

/** Calls to the child: `speak` returns chunks of samples and the starts of words. */

const ClauseSchema = {
  type: 'object',
  required: ['words', 'voice', 'speed', 'pitchSemitones', 'pitchRange'],
  properties: {
    words: {
      type: 'array',
      items: {
        type: 'object',
        required: ['spoken', 'phonemes'],
        properties: { spoken: { type: 'string' }, phonemes: { type: ['string', 'null'] } },
      },
    },
    voice: { type: 'string' },
    speed: { type: 'number' },
    pitchSemitones: { type: 'number' },
    pitchRange: { type: 'number' },
  },
} as const;

export type AskedClause = Static<typeof ClauseSchema>;
export const ClauseArgument = schemaCheck(ClauseSchema);

export const SpokenPartHead = schemaCheck({
  type: 'object',
  required: ['marks'],
  properties: {
    marks: {
      type: 'array',
      items: {
        type: 'object',
        required: ['word', 'atMs'],
        properties: { word: { type: 'integer', minimum: 0 }, atMs: { type: 'number', minimum: 0 } },
      },
    },
  },
});

/** eSpeak NG's rate for all voices. */
export const SAMPLE_RATE_HZ = 22_050;
