import type { Static } from 'typebox';
import { schemaCheck } from '../../../runtime/schema-check.ts';

/** Messages between the engine and its child process. `speak` takes a clause and returns chunks of audio. */

/** `speed` is a factor, 1 is normal. `pitchRange` is a factor of the intonation. */
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

export type ClauseRequest = Static<typeof ClauseSchema>;
export const clauseRequestCheck = schemaCheck(ClauseSchema);

/** Checks the head of an audio chunk: the words that start in it, with times since the start of the clause. */
export const audioChunkCheck = schemaCheck({
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

/** Sample rate of all eSpeak NG voices. */
export const SAMPLE_RATE_HZ = 22_050;
