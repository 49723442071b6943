import type { Static } from 'typebox';
import { type SchemaCheck, schemaCheck } from '../../../runtime/schema-check.ts';

/** sherpa-onnx's names of model types. Those that begin with `streaming-` recognise during speech. */
export const MODEL_TYPES = [
  'streaming-transducer',
  'streaming-paraformer',
  'streaming-zipformer-ctc',
  'streaming-nemo-ctc',
  'streaming-t-one-ctc',
  'transducer',
  'nemo-transducer',
  'paraformer',
  'zipformer-ctc',
  'nemo-ctc',
  'wenet-ctc',
  'telespeech-ctc',
  'omnilingual-ctc',
  'dolphin',
  'tdnn',
  'sense-voice',
  'whisper',
  'moonshine',
  'moonshine-merged',
  'canary',
  'fire-red-asr',
] as const;

export type SherpaModelType = (typeof MODEL_TYPES)[number];

export const MANIFEST_NAME = 'tandem.json';

const FileName = { type: 'string', minLength: 1, maxLength: 255 } as const;

/** Parts of a model that may be files in its folder. */
const FilesSchema = {
  type: 'object',
  properties: {
    model: FileName,
    encoder: FileName,
    decoder: FileName,
    joiner: FileName,
    preprocessor: FileName,
    uncachedDecoder: FileName,
    cachedDecoder: FileName,
    mergedDecoder: FileName,
    tokens: FileName,
    bpeVocab: FileName,
  },
  additionalProperties: false,
} as const;

export type ModelFiles = Static<typeof FilesSchema>;
export type FileRole = keyof ModelFiles;

const ManifestSchema = {
  type: 'object',
  properties: {
    type: { enum: MODEL_TYPES },
    languages: { type: 'array', items: { type: 'string', pattern: '^[a-z]{2}$' }, minItems: 1, maxItems: 200 },
    files: FilesSchema,
    /** How keywords become tokens: by subwords, or one per Chinese character. */
    hotwords: { enum: ['bpe', 'cjkchar', 'cjkchar+bpe', false] },
    sampleRateHz: { enum: [8000, 16_000] },
  },
  additionalProperties: false,
} as const;

/** The operator's optional description of a model, in its `tandem.json`. */
export type ModelManifest = Static<typeof ManifestSchema>;

const Manifest = schemaCheck(ManifestSchema);

/** Parses a manifest, or returns why it is invalid. */
export function parseManifest(text: string): ParsedManifest<ModelManifest> {
  return parseManifestAs(Manifest, text);
}

export type ParsedManifest<T> = { manifest: T } | { problem: string };

/** Parses the manifest of any kind of model. */
export function parseManifestAs<T>(manifest: SchemaCheck<T>, text: string): ParsedManifest<T> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { problem: `${MANIFEST_NAME} is not valid JSON` };
  }
  if (manifest.matches(value)) return { manifest: value };
  return { problem: `${MANIFEST_NAME}: ${manifest.problemOf(value)}` };
}
