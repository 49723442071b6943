import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { type ParsedManifest, parseManifestAs } from './model-manifest.ts';

/** How sherpa-onnx calls what a synthesis model is. Piper's and MeloTTS's are VITS. */
export const SYNTHESIS_TYPES = ['vits', 'kokoro', 'kitten', 'matcha', 'zipvoice', 'pocket'] as const;

export type SynthesisType = (typeof SYNTHESIS_TYPES)[number];

const FileName = Type.Optional(Type.String({ pattern: '^[^/\\\\]{1,255}$' }));

/** The parts of a model that may be files of its folder. */
const FilesSchema = Type.Object(
  {
    model: FileName,
    tokens: FileName,
    voices: FileName,
    vocoder: FileName,
    encoder: FileName,
    decoder: FileName,
    lmMain: FileName,
    lmFlow: FileName,
    textConditioner: FileName,
    vocabJson: FileName,
    tokenScoresJson: FileName,
  },
  { additionalProperties: false },
);

export type SynthesisFiles = Static<typeof FilesSchema>;
export type SynthesisFileRole = keyof SynthesisFiles;

const LanguageTag = Type.String({ pattern: '^[a-z]{2,3}(-[a-z0-9]{2,8}){0,3}$' });

const ManifestSchema = Type.Object(
  {
    type: Type.Optional(Type.Union(SYNTHESIS_TYPES.map((type) => Type.Literal(type)))),
    /** BCP 47 in lower case. */
    languages: Type.Optional(Type.Array(LanguageTag, { minItems: 1, maxItems: 100 })),
    files: Type.Optional(FilesSchema),
    /** In the order of their numbers. */
    speakers: Type.Optional(
      Type.Array(
        Type.Object(
          {
            language: Type.Optional(LanguageTag),
            gender: Type.Optional(Type.Union([Type.Literal('female'), Type.Literal('male')])),
          },
          { additionalProperties: false },
        ),
        { maxItems: 10_000 },
      ),
    ),
  },
  { additionalProperties: false },
);

/** What an operator may say about a model in its `tandem.json`. All of it is optional. */
export type SynthesisManifest = Static<typeof ManifestSchema>;

const Manifest = Compile(ManifestSchema);

/** The manifest that a text is, or why it is none. */
export function parseSynthesisManifest(text: string): ParsedManifest<SynthesisManifest> {
  return parseManifestAs(Manifest, text);
}
