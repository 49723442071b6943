import { type ModelSpeaker, speakersOf } from './model-speakers.ts';
import type { SynthesisFileRole, SynthesisFiles, SynthesisManifest, SynthesisType } from './synthesis-manifest.ts';

/** Contents of a folder in `tts/` of the models. */
export interface SynthesisFolder {
  name: string;
  /** Names of the files directly in it, with sizes in bytes. */
  files: ReadonlyMap<string, number>;
  /** Whether it contains `espeak-ng-data/` with the files that eSpeak NG requires. */
  hasEspeakData: boolean;
  manifest: SynthesisManifest | null;
  /** Metadata of an ONNX file, by file name. */
  metadataOf: (file: string) => Metadata;
}

/** Everything needed to load a model. */
export interface SynthesisModel {
  name: string;
  type: SynthesisType;
  files: SynthesisFiles;
  /** In look-up order. */
  lexicons: readonly string[];
  /** Grammars that write out numbers and dates. */
  ruleFsts: readonly string[];
  ruleFars: readonly string[];
  hasEspeakData: boolean;
  sampleRateHz: number;
  /** In the order of their numbers; at least one. */
  speakers: readonly ModelSpeaker[];
  /** Whether it clones a reference recording. */
  clones: boolean;
}

export type Metadata = Readonly<Record<string, string>>;

/** Identifies the model in a folder, or why it is invalid. */
export function describeSynthesisFolder(folder: SynthesisFolder): SynthesisModel | { problem: string } {
  const { name, manifest, hasEspeakData } = folder;
  const names = [...folder.files.keys()].sort();
  const files: SynthesisFiles = { ...findFiles(names), ...manifest?.files };
  const stray = Object.values(files).find((file) => !folder.files.has(file));
  if (stray !== undefined) return { problem: `the file ${stray} is missing` };
  const main = files.lmMain ?? files.decoder ?? files.model;
  if (main === undefined) return { problem: 'no model in it: expected model.onnx or another .onnx file' };
  const metadata = folder.metadataOf(main);
  const type = manifest?.type ?? typeOf(files, metadata);
  if (type === null) return { problem: whyUnknown(main, { names, metadata }) };
  const missing = ROLES_OF[type].find((role) => files[role] === undefined);
  if (missing !== undefined) return { problem: missingPart(type, missing) };
  const lexicons = names.filter((file) => /^lexicon.*\.txt$/.test(file));
  if (needsEspeakData(type, { metadata, lexicons }) && !hasEspeakData) {
    return { problem: 'the folder espeak-ng-data is missing, or something in it' };
  }
  const sampleRateHz = integerOf(metadata.sample_rate) ?? USUAL_RATE_HZ[type];
  if (sampleRateHz === undefined) return { problem: `${main} does not say its sample rate` };
  if (sampleRateHz < 8000 || sampleRateHz > 48_000)
    return { problem: `${main} has a sample rate of ${sampleRateHz} Hz` };
  const count = integerOf(metadata.n_speakers) ?? 1;
  if (count > MOST_SPEAKERS) return { problem: `${main} has ${count} speakers` };
  const damage = voicesDamage(folder, { files, metadata, speakers: Math.max(1, count) });
  if (damage !== null) return { problem: damage };
  const speakers = speakersOf({ name, type, metadata, manifest, count: Math.max(1, count) });
  if (speakers === null) return { problem: 'cannot determine its languages: set its "languages" in tandem.json' };
  return {
    ...{ name, type, lexicons, hasEspeakData, sampleRateHz, speakers },
    files: Object.fromEntries(ROLES_OF[type].map((role) => [role, files[role]!])),
    ruleFsts: names.filter((file) => file.endsWith('.fst')),
    ruleFars: names.filter((file) => file.endsWith('.far')),
    clones: CLONING.has(type),
  };
}

function whyUnknown(main: string, { names, metadata }: { names: readonly string[]; metadata: Metadata }): string {
  if (names.includes(`${main}.json`)) {
    return `${main} is a voice as Piper publishes it, without the metadata that sherpa-onnx needs. Install its converted form, whose name begins with vits-piper-`;
  }
  const said = metadata.model_type ?? '';
  const isOfRecognition = /whisper|zipformer|paraformer|EncDec|wenet|sense_voice|telespeech|dolphin/.test(said);
  if (isOfRecognition || names.some((name) => name.includes('joiner'))) {
    return 'it is a model for recognition: move its folder to stt/';
  }
  return `cannot determine what ${main} is: set its "type" in tandem.json`;
}

const ROLES_OF: Record<SynthesisType, readonly SynthesisFileRole[]> = {
  vits: ['model', 'tokens'],
  kokoro: ['model', 'voices', 'tokens'],
  kitten: ['model', 'voices', 'tokens'],
  matcha: ['model', 'vocoder', 'tokens'],
  zipvoice: ['encoder', 'decoder', 'vocoder', 'tokens'],
  pocket: ['lmMain', 'lmFlow', 'encoder', 'decoder', 'textConditioner', 'vocabJson', 'tokenScoresJson'],
};

const CLONING: ReadonlySet<SynthesisType> = new Set(['zipvoice', 'pocket']);
/** Fixed rates of types whose metadata may lack it. */
const USUAL_RATE_HZ: Partial<Record<SynthesisType, number>> = { zipvoice: 24_000, pocket: 24_000 };
const MOST_SPEAKERS = 10_000;

const FILE_PATTERNS: Record<SynthesisFileRole, RegExp> = {
  model: /^model.*\.onnx$/,
  tokens: /^tokens\.txt$/,
  voices: /^voices\.bin$/,
  vocoder: /^(?:.*voco(?:s|der).*|hifigan.*)\.onnx$/,
  encoder: /^(?:text_)?encoder(?:[-.].*)?\.onnx$/,
  decoder: /^(?:fm_)?decoder(?:[-.].*)?\.onnx$/,
  lmMain: /^lm_main.*\.onnx$/,
  lmFlow: /^lm_flow.*\.onnx$/,
  textConditioner: /^text_conditioner.*\.onnx$/,
  vocabJson: /^vocab\.json$/,
  tokenScoresJson: /^token_scores\.json$/,
};

function findFiles(names: readonly string[]): SynthesisFiles {
  const found = Object.entries(FILE_PATTERNS).map(([role, pattern]) => {
    const matching = names.filter((name) => pattern.test(name));
    // Prefers the smaller and faster one.
    return [role, matching.find((name) => name.includes('.int8.')) ?? matching[0]] as const;
  });
  const files: SynthesisFiles = Object.fromEntries(found.filter(([, file]) => file !== undefined));
  // Piper names model files after voices, MeloTTS and others after their makers.
  const others = names.filter((name) => name.endsWith('.onnx') && name !== files.vocoder);
  const isPartOfSeveral = files.encoder !== undefined || files.lmMain !== undefined;
  return files.model === undefined && !isPartOfSeveral && others.length === 1 ? { ...files, model: others[0]! } : files;
}

function typeOf(files: SynthesisFiles, metadata: Metadata): SynthesisType | null {
  if (files.lmMain !== undefined) return 'pocket';
  if (files.encoder !== undefined) return 'zipvoice';
  const said = (metadata.model_type ?? '').toLowerCase();
  if (files.voices !== undefined) return said.startsWith('kitten') ? 'kitten' : 'kokoro';
  if (said.startsWith('matcha') || files.vocoder !== undefined) return 'matcha';
  return said.includes('vits') || (metadata.comment !== undefined && metadata.n_speakers !== undefined) ? 'vits' : null;
}

function missingPart(type: SynthesisType, role: SynthesisFileRole): string {
  const hint = role === 'vocoder' ? ', such as vocos-22khz-univ.onnx, which is published apart from it' : '';
  return `a ${type} model needs a file for its ${role}${hint}`;
}

/** sherpa-onnx exits its process without a way to read text. */
function needsEspeakData(
  type: SynthesisType,
  { metadata, lexicons }: { metadata: Metadata; lexicons: readonly string[] },
): boolean {
  if (type === 'kokoro' || type === 'kitten' || type === 'zipvoice') return true;
  if (type === 'matcha') return metadata.has_espeak === '1';
  return type === 'vits' && metadata.frontend !== 'characters' && lexicons.length === 0;
}

/** Checks the file of speaker styles, which must contain as many as the model declares. */
function voicesDamage(
  { files: sizes }: SynthesisFolder,
  { files, metadata, speakers }: { files: SynthesisFiles; metadata: Metadata; speakers: number },
): string | null {
  if (files.voices === undefined || metadata.style_dim === undefined) return null;
  const dimensions = metadata.style_dim.split(',').map((text) => integerOf(text.trim()) ?? Number.NaN);
  const bytes = dimensions.reduce((product, size) => product * size, Float32Array.BYTES_PER_ELEMENT * speakers);
  const actual = sizes.get(files.voices);
  return actual === bytes ? null : `${files.voices} is damaged: it has ${actual} bytes, not ${bytes}`;
}

function integerOf(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null;
}
