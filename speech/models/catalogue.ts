import type { SherpaModelType } from '../engines/sherpa-onnx/model-manifest.ts';

/** Purposes of models, which are also subfolders of the models folder. */
export const MODEL_KINDS = ['stt', 'punctuation', 'language-id', 'tts'] as const;
export type ModelKind = (typeof MODEL_KINDS)[number];

export interface CatalogueModel {
  /** Name of its folder, as in its archive. */
  name: string;
  kind: ModelKind;
  /** Set for recognition models. */
  type: SherpaModelType | null;
  /** ISO 639-1; empty for all languages of Whisper. For voices, BCP 47. */
  languages: readonly string[];
  /** Size of the archive in millions of bytes; null if unknown. */
  downloadMb: number | null;
  url: string;
  /** Checksum of the archive. Null if no trusted one is published: the first download is then trusted. */
  sha256: string | null;
}

/** Well-known models, as the sherpa-onnx project publishes them. Others can be fetched by URL. */
export const CATALOGUE: readonly CatalogueModel[] = [
  stt('sherpa-onnx-streaming-zipformer-en-20M-2023-02-17', 'streaming-transducer', ['en'], 127),
  stt('sherpa-onnx-streaming-zipformer-en-2023-06-26', 'streaming-transducer', ['en'], 310),
  stt('sherpa-onnx-streaming-zipformer-en-kroko-2025-08-06', 'streaming-transducer', ['en'], 57),
  stt('sherpa-onnx-nemo-streaming-fast-conformer-transducer-en-80ms-int8', 'streaming-transducer', ['en'], 103),
  stt('sherpa-onnx-streaming-zipformer-bilingual-zh-en-2023-02-20', 'streaming-transducer', ['zh', 'en'], null),
  stt('sherpa-onnx-streaming-zipformer-fr-2023-04-14', 'streaming-transducer', ['fr'], null),
  stt('sherpa-onnx-streaming-zipformer-korean-2024-06-16', 'streaming-transducer', ['ko'], null),
  stt('sherpa-onnx-streaming-paraformer-bilingual-zh-en', 'streaming-paraformer', ['zh', 'en'], null),
  stt('sherpa-onnx-nemo-parakeet-tdt-0.6b-v2-int8', 'nemo-transducer', ['en'], 482),
  stt('sherpa-onnx-nemo-parakeet-tdt-0.6b-v3-int8', 'nemo-transducer', europeanLanguages(), 487),
  stt('sherpa-onnx-moonshine-tiny-en-int8', 'moonshine', ['en'], 108),
  stt('sherpa-onnx-moonshine-base-en-int8', 'moonshine', ['en'], 251),
  stt('sherpa-onnx-sense-voice-zh-en-ja-ko-yue-2024-07-17', 'sense-voice', ['zh', 'en', 'ja', 'ko'], null),
  stt('sherpa-onnx-zipformer-vi-2025-04-20', 'transducer', ['vi'], null),
  stt('sherpa-onnx-whisper-tiny.en', 'whisper', ['en'], 118),
  stt('sherpa-onnx-whisper-base', 'whisper', [], null),
  stt('sherpa-onnx-whisper-small', 'whisper', [], null),
  stt('sherpa-onnx-whisper-medium', 'whisper', [], null),
  stt('sherpa-onnx-whisper-turbo', 'whisper', [], 564),
  {
    ...stt('sherpa-onnx-whisper-tiny', 'whisper', [], 116),
    kind: 'language-id',
  },
  punctuation('sherpa-onnx-online-punct-en-2024-08-06', ['en']),
  punctuation('sherpa-onnx-punct-ct-transformer-zh-en-vocab272727-2024-04-12', ['zh', 'en']),
  tts('vits-piper-en_US-amy-low', ['en-us']),
  tts('vits-piper-en_US-lessac-medium', ['en-us']),
  tts('vits-piper-en_US-libritts_r-medium', ['en-us']),
  tts('vits-piper-en_GB-alan-medium', ['en-gb']),
  tts('vits-piper-de_DE-thorsten-medium', ['de-de']),
  tts('vits-piper-es_ES-davefx-medium', ['es-es']),
  tts('vits-piper-fr_FR-siwis-medium', ['fr-fr']),
  tts('kokoro-en-v0_19', ['en-us', 'en-gb']),
  tts('kokoro-multi-lang-v1_0', ['en-us', 'en-gb', 'es', 'fr-fr', 'hi', 'it', 'ja', 'pt-br', 'zh']),
  tts('kitten-nano-en-v0_1-fp16', ['en-us']),
  tts('sherpa-onnx-pocket-tts-int8-2026-01-26', ['en']),
];

export function findInCatalogue(name: string): CatalogueModel | null {
  return CATALOGUE.find((model) => model.name === name) ?? null;
}

function stt(
  name: string,
  type: SherpaModelType,
  languages: readonly string[],
  downloadMb: number | null,
): CatalogueModel {
  return { name, kind: 'stt', type, languages, downloadMb, url: release('asr-models', name), sha256: null };
}

function punctuation(name: string, languages: readonly string[]): CatalogueModel {
  const url = release('punctuation-models', name);
  return { name, kind: 'punctuation', type: null, languages, downloadMb: null, url, sha256: null };
}

/** Their folders contain all other metadata. */
function tts(name: string, languages: readonly string[]): CatalogueModel {
  return { name, kind: 'tts', type: null, languages, downloadMb: null, url: release('tts-models', name), sha256: null };
}

function release(tag: string, name: string): string {
  return `https://github.com/k2-fsa/sherpa-onnx/releases/download/${tag}/${name}.tar.bz2`;
}

/** The 25 languages of Parakeet v3. */
function europeanLanguages(): string[] {
  return 'en bg hr cs da nl et fi fr de el hu it lv lt mt pl pt ro sk sl es sv ru uk'.split(' ');
}
