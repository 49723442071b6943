import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';

/** What a process with a synthesis model is asked and answers. */

const SpeakSchema = Type.Object({
  text: Type.String({ minLength: 1 }),
  sid: Type.Integer({ minimum: 0 }),
  speed: Type.Number({ minimum: 0.1, maximum: 10 }),
  reference: Type.Union([Type.Object({ path: Type.String(), text: Type.String() }), Type.Null()]),
});

export type SpeakArgument = Static<typeof SpeakSchema>;
export const SpeakCall = Compile(SpeakSchema);

/** What the model turned out to be. */
export const LoadedAnswer = Compile(
  Type.Object({
    sampleRateHz: Type.Integer({ minimum: 8000, maximum: 48_000 }),
    speakers: Type.Integer({ minimum: 0 }),
  }),
);
