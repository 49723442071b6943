import type { Static } from 'typebox';
import { schemaCheck } from '../../../runtime/schema-check.ts';
import { type ParsedManifest, parseManifestAs } from './model-manifest.ts';

/** sherpa-onnx's names of synthesis model types. Piper and MeloTTS are VITS. */
export const SYNTHESIS_TYPES = ['vits', 'kokoro', 'kitten', 'matcha', 'zipvoice', 'pocket'] as const;

export type SynthesisType = (typeof SYNTHESIS_TYPES)[number];

const FileName = { type: 'string', pattern: '^[^/\\\\]{1,255}$' } as const;

/** Parts of a model that may be files in its folder. */
const FilesSchema = {
  type: 'object',
  properties: {
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
  additionalProperties: false,
} as const;

export type SynthesisFiles = Static<typeof FilesSchema>;
export type SynthesisFileRole = keyof SynthesisFiles;

const LanguageTag = { type: 'string', pattern: '^[a-z]{2,3}(-[a-z0-9]{2,8}){0,3}$' } as const;

const ManifestSchema = {
  type: 'object',
  properties: {
    type: { enum: SYNTHESIS_TYPES },
    /** BCP 47 in lower case. */
    languages: { type: 'array', items: LanguageTag, minItems: 1, maxItems: 100 },
    files: FilesSchema,
    /** In the order of their numbers. */
    speakers: {
      type: 'array',
      items: {
        type: 'object',
        properties: { language: LanguageTag, gender: { enum: ['female', 'male'] } },
        additionalProperties: false,
      },
      maxItems: 10_000,
    },
  },
  additionalProperties: false,
} as const;

/** The operator's optional description of a model, in its `tandem.json`. */
export type SynthesisManifest = Static<typeof ManifestSchema>;

const Manifest = schemaCheck(ManifestSchema);

export function parseSynthesisManifest(text: string): ParsedManifest<SynthesisManifest> {
  return parseManifestAs(Manifest, text);
}
