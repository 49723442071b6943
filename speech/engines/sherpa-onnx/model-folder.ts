import { toLanguageCode, WHISPER_LANGUAGES } from '../whisper-languages.ts';
import type { FileRole, ModelFiles, ModelManifest, SherpaModelType } from './model-manifest.ts';

/** Contents of a folder in `stt/` of the models. */
export interface ModelFolder {
  name: string;
  /** Names of the files directly in it. */
  files: readonly string[];
  manifest: ModelManifest | null;
  /** Metadata of an ONNX file, by file name. */
  metadataOf: (file: string) => Readonly<Record<string, string>>;
}

/** Everything needed to load a model. Sent to its process. */
export interface SherpaModel {
  name: string;
  type: SherpaModelType;
  files: ModelFiles;
  languages: string[];
  detectsLanguage: boolean;
  /** How keywords become tokens; null if the model does not support them. */
  hotwords: 'bpe' | 'cjkchar' | 'cjkchar+bpe' | null;
  sampleRateHz: number;
  /** For a streaming model: how many 10 ms frames it reads at once, which must also follow the last word. */
  chunkFrames: number;
  /** Input frames per output frame; sherpa-onnx assumes 4 for all streaming CTC models. */
  subsampling: number;
}

/** Identifies the model in a folder, or why it is invalid. */
export function describeModelFolder(folder: ModelFolder): SherpaModel | { problem: string } {
  const { manifest } = folder;
  const files: ModelFiles = { ...findFiles(folder.files), ...manifest?.files };
  const stray = Object.values(files).find((file) => !folder.files.includes(file));
  if (stray !== undefined) return { problem: `the file ${stray} is missing` };
  const main = files.encoder ?? files.preprocessor ?? files.model;
  if (main === undefined) return { problem: 'no model in it: expected encoder*.onnx or model*.onnx' };
  const metadata = folder.metadataOf(main);
  const type = manifest?.type ?? typeOf(files, metadata);
  if (type === null) {
    if (isOfSynthesis(folder.files, metadata))
      return { problem: 'it is a model for synthesis: move its folder to tts/' };
    return { problem: `cannot determine what ${main} is: set its "type" in tandem.json` };
  }
  const missing = ROLES_OF[type].find((role) => files[role] === undefined);
  if (missing !== undefined) return { problem: `a ${type} model needs a file for its ${missing}` };
  const languages = manifest?.languages ?? languagesOf(type, { name: folder.name, metadata });
  if (languages.length === 0) return { problem: 'cannot determine its languages: set its "languages" in tandem.json' };
  return {
    name: folder.name,
    type,
    files: Object.fromEntries(Object.entries(files).filter(([role]) => isRoleOf(type, role as FileRole))),
    languages,
    detectsLanguage: languages.length > 1 && DETECTING.has(type),
    hotwords: hotwordsOf(type, { manifest, files, languages, metadata }),
    sampleRateHz: manifest?.sampleRateHz ?? (type === 'streaming-t-one-ctc' ? 8000 : 16_000),
    chunkFrames: integerOf(metadata.T) ?? integerOf(metadata.window_size) ?? 100,
    subsampling: integerOf(metadata.subsampling_factor) ?? 4,
  };
}

function isOfSynthesis(
  files: readonly string[],
  { model_type: said = '', comment = '' }: Record<string, string>,
): boolean {
  return /vits|kokoro|kitten|matcha/i.test(said) || /piper|coqui/i.test(comment) || files.includes('voices.bin');
}

const SINGLE_FILE: readonly FileRole[] = ['model', 'tokens'];
const TRANSDUCER: readonly FileRole[] = ['encoder', 'decoder', 'joiner', 'tokens'];
const ENCODER_DECODER: readonly FileRole[] = ['encoder', 'decoder', 'tokens'];

const ROLES_OF: Record<SherpaModelType, readonly FileRole[]> = {
  'streaming-transducer': TRANSDUCER,
  'streaming-paraformer': ENCODER_DECODER,
  'streaming-zipformer-ctc': SINGLE_FILE,
  'streaming-nemo-ctc': SINGLE_FILE,
  'streaming-t-one-ctc': SINGLE_FILE,
  transducer: TRANSDUCER,
  'nemo-transducer': TRANSDUCER,
  paraformer: SINGLE_FILE,
  'zipformer-ctc': SINGLE_FILE,
  'nemo-ctc': SINGLE_FILE,
  'wenet-ctc': SINGLE_FILE,
  'telespeech-ctc': SINGLE_FILE,
  'omnilingual-ctc': SINGLE_FILE,
  dolphin: SINGLE_FILE,
  tdnn: SINGLE_FILE,
  'sense-voice': SINGLE_FILE,
  whisper: ENCODER_DECODER,
  moonshine: ['preprocessor', 'encoder', 'uncachedDecoder', 'cachedDecoder', 'tokens'],
  'moonshine-merged': ['encoder', 'mergedDecoder', 'tokens'],
  canary: ENCODER_DECODER,
  'fire-red-asr': ENCODER_DECODER,
};

/** Only these use beam search, which keywords and confidences need. */
const TAKES_HOTWORDS: ReadonlySet<SherpaModelType> = new Set(['streaming-transducer', 'transducer']);
const DETECTING: ReadonlySet<SherpaModelType> = new Set(['whisper', 'sense-voice']);

export function isStreaming({ type }: Pick<SherpaModel, 'type'>): boolean {
  return type.startsWith('streaming-');
}

/** Whether its words have a confidence. */
export function hasConfidence({ type }: Pick<SherpaModel, 'type'>): boolean {
  return TAKES_HOTWORDS.has(type);
}

function isRoleOf(type: SherpaModelType, role: FileRole): boolean {
  return ROLES_OF[type].includes(role) || (role === 'bpeVocab' && TAKES_HOTWORDS.has(type));
}

/** File names of published models; `.int8` is the smaller and faster of two. */
const FILE_PATTERNS: Record<FileRole, RegExp> = {
  model: /^model.*\.onnx$/,
  encoder: /^(?:.+-)?(?:encoder|encode|encoder_model)(?:[-.].*)?\.(?:onnx|ort)$/,
  decoder: /^(?:.+-)?decoder(?:[-.].*)?\.onnx$/,
  joiner: /^(?:.+-)?joiner(?:[-.].*)?\.onnx$/,
  preprocessor: /^preprocess(?:or)?(?:[-.].*)?\.onnx$/,
  uncachedDecoder: /^uncached_decode(?:[-.].*)?\.onnx$/,
  cachedDecoder: /^cached_decode(?:[-.].*)?\.onnx$/,
  mergedDecoder: /^decoder_model_merged.*\.(?:onnx|ort)$/,
  tokens: /^(?:.+-)?tokens\.txt$/,
  bpeVocab: /^bpe\.vocab$/,
};

function findFiles(names: readonly string[]): ModelFiles {
  const isTransducer = names.some((name) => FILE_PATTERNS.joiner.test(name));
  const found = Object.entries(FILE_PATTERNS).map(([role, pattern]) => {
    const matching = names.filter((name) => pattern.test(name)).sort((a, b) => a.length - b.length || (a < b ? -1 : 1));
    // A transducer's decoder is small, and int8 reduces its accuracy.
    const small = isTransducer && role === 'decoder' && matching.length > 1 ? isFullSize : isInt8;
    return [role, matching.find(small) ?? matching[0]] as const;
  });
  const files: ModelFiles = Object.fromEntries(found.filter(([, file]) => file !== undefined));
  const models = names.filter((name) => name.endsWith('.onnx'));
  const isPartOfSeveral = files.encoder !== undefined || files.preprocessor !== undefined;
  return files.model === undefined && !isPartOfSeveral && models.length === 1 ? { ...files, model: models[0]! } : files;
}

function isInt8(name: string): boolean {
  return name.includes('.int8.');
}

function isFullSize(name: string): boolean {
  return !/\.(?:int8|fp16)\./.test(name);
}

function typeOf(files: ModelFiles, metadata: Readonly<Record<string, string>>): SherpaModelType | null {
  if (files.preprocessor !== undefined) return 'moonshine';
  if (files.mergedDecoder !== undefined) return 'moonshine-merged';
  const said = metadata.model_type ?? '';
  const readsChunks = STREAMING_KEYS.some((key) => metadata[key] !== undefined);
  if (files.joiner !== undefined) {
    if (readsChunks) return 'streaming-transducer';
    return said.startsWith('EncDec') ? 'nemo-transducer' : 'transducer';
  }
  if (files.encoder !== undefined) {
    if (said.startsWith('whisper')) return 'whisper';
    return ENCODER_DECODER_TYPES[said] ?? null;
  }
  if (metadata.frame_length_ms !== undefined) return 'streaming-t-one-ctc';
  if (said.startsWith('EncDec')) return readsChunks ? 'streaming-nemo-ctc' : 'nemo-ctc';
  if (readsChunks && said.startsWith('zipformer2')) return 'streaming-zipformer-ctc';
  return SINGLE_FILE_TYPES[said] ?? null;
}

/** Only streaming models specify a chunk length. */
const STREAMING_KEYS = ['decode_chunk_len', 'window_size', 'chunk_shift'];

/** By the `model_type` in their metadata. */
const ENCODER_DECODER_TYPES: Readonly<Record<string, SherpaModelType>> = Object.assign(Object.create(null), {
  paraformer: 'streaming-paraformer',
  EncDecMultiTaskModel: 'canary',
  'fire-red-asr': 'fire-red-asr',
});
const SINGLE_FILE_TYPES: Readonly<Record<string, SherpaModelType>> = Object.assign(Object.create(null), {
  paraformer: 'paraformer',
  zipformer2_ctc: 'zipformer-ctc',
  wenet_ctc: 'wenet-ctc',
  telespeech_ctc: 'telespeech-ctc',
  sense_voice_ctc: 'sense-voice',
  dolphin: 'dolphin',
  tdnn: 'tdnn',
});

function languagesOf(
  type: SherpaModelType,
  { name, metadata }: { name: string; metadata: Readonly<Record<string, string>> },
): string[] {
  if (type === 'sense-voice') return ['zh', 'en', 'ja', 'ko'];
  if (type === 'whisper' && metadata.is_multilingual === '1') {
    const declared = (metadata.all_language_codes ?? '').split(',').flatMap((code) => toLanguageCode(code) ?? []);
    return declared.length > 0 ? [...new Set(declared)] : [...WHISPER_LANGUAGES];
  }
  if (type === 'whisper' && metadata.is_multilingual === '0') return ['en'];
  // Published models are named after their languages: sherpa-onnx-streaming-zipformer-bilingual-zh-en-2023-02-20.
  const named = name.split(/[-_.]/).filter((part) => part.length !== 2 || COMMON_IN_NAMES.has(part));
  return [...new Set(named.flatMap((part) => toLanguageCode(part) ?? []))];
}

/** Other two-letter syllables in names, such as `as` and `no`, are rarely languages. */
const COMMON_IN_NAMES: ReadonlySet<string> = new Set(
  'en zh de es ru ko fr ja pt tr pl nl ar sv it hi fi vi uk el cs ro da hu th bn fa ka be uz kk bg'.split(' '),
);

function hotwordsOf(
  type: SherpaModelType,
  known: {
    manifest: ModelManifest | null;
    files: ModelFiles;
    languages: readonly string[];
    metadata: Readonly<Record<string, string>>;
  },
): SherpaModel['hotwords'] {
  const { manifest, files, languages, metadata } = known;
  const isOfNemo = metadata.model_type?.startsWith('EncDec') ?? false;
  if (!TAKES_HOTWORDS.has(type) || isOfNemo || manifest?.hotwords === false) return null;
  if (manifest?.hotwords === 'cjkchar') return 'cjkchar';
  const hasChinese = languages.includes('zh');
  if (files.bpeVocab !== undefined) return manifest?.hotwords ?? (hasChinese ? 'cjkchar+bpe' : 'bpe');
  return hasChinese && languages.length === 1 && manifest?.hotwords === undefined ? 'cjkchar' : null;
}

function integerOf(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,6}$/.test(text) ? Number(text) : null;
}
