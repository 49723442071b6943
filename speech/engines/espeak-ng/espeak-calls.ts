import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';

/** What the child is asked: `speak` answers with parts of the samples and where words begin. */

const ClauseSchema = Type.Object({
  words: Type.Array(Type.Object({ spoken: Type.String(), phonemes: Type.Union([Type.String(), Type.Null()]) })),
  voice: Type.String(),
  speed: Type.Number(),
  pitchSemitones: Type.Number(),
  pitchRange: Type.Number(),
});

export type AskedClause = Static<typeof ClauseSchema>;
export const ClauseArgument = Compile(ClauseSchema);

export const SpokenPartHead = Compile(
  Type.Object({
    marks: Type.Array(Type.Object({ word: Type.Integer({ minimum: 0 }), atMs: Type.Number({ minimum: 0 }) })),
  }),
);

/** What eSpeak NG makes, whatever the voice. */
export const SAMPLE_RATE_HZ = 22_050;
