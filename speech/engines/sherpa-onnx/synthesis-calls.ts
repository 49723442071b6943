import type { Static } from 'typebox';
import { schemaCheck } from '../../../runtime/schema-check.ts';

/** Calls to a process with a synthesis model, and their results. */

const SpeakSchema = {
  type: 'object',
  required: ['text', 'sid', 'speed', 'reference'],
  properties: {
    text: { type: 'string', minLength: 1 },
    sid: { type: 'integer', minimum: 0 },
    speed: { type: 'number', minimum: 0.1, maximum: 10 },
    reference: {
      anyOf: [
        {
          type: 'object',
          required: ['path', 'text'],
          properties: { path: { type: 'string' }, text: { type: 'string' } },
        },
        { type: 'null' },
      ],
    },
  },
} as const;

export type SpeakArgument = Static<typeof SpeakSchema>;
export const SpeakCall = schemaCheck(SpeakSchema);

/** Properties of the loaded model. */
export const LoadedAnswer = schemaCheck({
  type: 'object',
  required: ['sampleRateHz', 'speakers'],
  properties: {
    sampleRateHz: { type: 'integer', minimum: 8000, maximum: 48_000 },
    speakers: { type: 'integer', minimum: 0 },
  },
});
