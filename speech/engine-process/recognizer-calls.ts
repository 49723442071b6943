import Type from 'typebox';
import { Compile } from 'typebox/compile';

/** What a recognizer in a child process is asked and answers: the calls are the methods of `Recognizer`. */

const Milliseconds = Type.Number({ minimum: 0 });
const Probability = Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.Null()]);

const RecognisedWordSchema = Type.Object({
  word: Type.String({ minLength: 1 }),
  startMs: Milliseconds,
  endMs: Milliseconds,
  confidence: Probability,
  speaker: Type.Union([Type.String(), Type.Null()]),
  original: Type.Union([Type.String(), Type.Null()]),
});

const HypothesisSchema = Type.Object({ text: Type.String(), words: Type.Array(RecognisedWordSchema) });

export const HypothesisAnswer = Compile(Type.Union([HypothesisSchema, Type.Null()]));

export const RecognitionAnswer = Compile(
  Type.Object({
    text: Type.String(),
    words: Type.Array(RecognisedWordSchema),
    language: Type.String({ minLength: 1 }),
    languageProbability: Probability,
    confidence: Probability,
    model: Type.String({ minLength: 1 }),
  }),
);

export const UtteranceOptionsArgument = Compile(
  Type.Object({
    language: Type.Union([Type.String(), Type.Null()]),
    keywords: Type.Array(Type.Object({ term: Type.String(), weight: Type.Number() })),
    wantsHypotheses: Type.Boolean(),
  }),
);
