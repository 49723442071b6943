import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { SPEECH_ENCODINGS } from '../../synthesizer.ts';

/** What the child is asked and answers: `speak` gives the first bytes, `more` those that did not fit. */

const ClauseSchema = Type.Object({
  text: Type.String(),
  voice: Type.String(),
  wordsPerMinute: Type.Number(),
  format: Type.Object({
    encoding: Type.Union(SPEECH_ENCODINGS.map((encoding) => Type.Literal(encoding))),
    sampleRateHz: Type.Integer({ minimum: 1 }),
  }),
});

export type Asked = Static<typeof ClauseSchema>;
export const ClauseArgument = Compile(ClauseSchema);

const Milliseconds = Type.Number({ minimum: 0 });

export const SpokenAnswer = Compile(
  Type.Object({
    durationMs: Milliseconds,
    /** Of the audio in all. */
    bytes: Type.Integer({ minimum: 0 }),
    words: Type.Array(Type.Object({ word: Type.String(), startMs: Milliseconds, endMs: Milliseconds })),
  }),
);
