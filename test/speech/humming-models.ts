import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import load from '@echogarden/espeak-ng-emscripten';
import { encodeOnnx, float, integers, type OnnxModel, type OnnxNode, type OnnxTensor } from './tiny-onnx.ts';

/**
 * Models of a few kilobytes that hum: each token is a tone, its length follows the speed, and each speaker has a
 * different pitch. They exercise the real sherpa-onnx code deterministically.
 */

export const HUMMING_RATE_HZ = 16_000;
export const HUMMED_TOKEN_SAMPLES = 800;

export interface HummingOptions {
  speakers?: number;
  metadata?: Readonly<Record<string, string | number>>;
}

/** Frequency of a token, counted from 1, for speaker `sid`. */
export function hummedHz(token: number, sid = 0): number {
  return (LOWEST_HZ + STEP_HZ * token) * (1 + sid / 2);
}

/** Writes a VITS model with letters as tokens, such as those of Coqui. */
export async function writeHummingVits(folder: string, { speakers = 1, metadata = {} }: HummingOptions = {}) {
  const scales = ['noise_scale', 'length_scale', 'noise_scale_w'].map((name) => float(name, [1]));
  await writeFiles(folder, {
    'model.onnx': encodeOnnx({
      inputs: [TOKENS, integers('x_length', ['N']), ...scales, integers('sid', [1])],
      outputs: [float('y', ['N', 1, 'S'])],
      nodes: [...SPEAKER_OF_SID, ...hum('length_scale'), reshaped('hummed', 'asAudio', 'y')],
      weights: WEIGHTS,
      metadata: {
        ...{ model_type: 'vits', comment: 'hummed', language: 'English', frontend: 'characters' },
        ...{ add_blank: 0, use_eos_bos: 0, n_speakers: speakers, sample_rate: HUMMING_RATE_HZ },
        ...metadata,
      },
    }),
    'tokens.txt': tokenLines([' ', ...LETTERS, ...PUNCTUATION]),
  });
}

/** Writes a Piper VITS model with eSpeak NG phonemes. */
export async function writeHummingPiper(folder: string, { speakers = 1, metadata = {} }: HummingOptions = {}) {
  await writeFiles(folder, {
    'en_US-hum-low.onnx': encodeOnnx({
      inputs: [TOKENS, integers('x_length', ['N']), float('scales', [3]), integers('sid', [1])],
      outputs: [float('y', ['N', 1, 'S'])],
      nodes: [
        { operator: 'Gather', inputs: ['scales', 'one'], outputs: ['length_scale'], attributes: { axis: 0 } },
        ...[...SPEAKER_OF_SID, ...hum('length_scale'), reshaped('hummed', 'asAudio', 'y')],
      ],
      weights: WEIGHTS,
      metadata: {
        ...{ model_type: 'vits', comment: 'piper', language: 'English', voice: 'en-us', has_espeak: 1 },
        ...{ n_speakers: speakers, sample_rate: HUMMING_RATE_HZ, ...metadata },
      },
    }),
    'tokens.txt': tokenLines(['_', '^', '$', ' ', ...PHONEMES]),
  });
  await writeEspeakData(folder);
}

/** Writes a Kokoro model, with a style per speaker and text length. */
export async function writeHummingKokoro(folder: string, { speakers = 1, metadata = {} }: HummingOptions = {}) {
  const styles = Array.from({ length: speakers }, (_, sid) => new Float32Array(MOST_TOKENS * STYLE_SIZE).fill(sid));
  await writeFiles(folder, {
    'model.onnx': encodeOnnx(
      styledModel({
        ...{ style_dim: `${MOST_TOKENS},1,${STYLE_SIZE}`, n_speakers: speakers, sample_rate: HUMMING_RATE_HZ },
        ...{ model_type: 'kokoro', version: 1, has_espeak: 1, voice: 'en-us' },
        ...{ speaker_names: ['af_hum', 'bm_hum', 'zf_hum'].slice(0, speakers).join(','), ...metadata },
      }),
    ),
    'voices.bin': Buffer.concat(styles.map(({ buffer }) => Buffer.from(buffer))),
    'tokens.txt': tokenLines(['$', ' ', ...PHONEMES]),
  });
  await writeEspeakData(folder);
}

/** Writes a Kitten model: as Kokoro, with one style per speaker. */
export async function writeHummingKitten(folder: string, { speakers = 1, metadata = {} }: HummingOptions = {}) {
  const styles = Array.from({ length: speakers }, (_, sid) => new Float32Array(STYLE_SIZE).fill(sid));
  await writeFiles(folder, {
    'model.fp16.onnx': encodeOnnx(
      styledModel({
        ...{ style_dim: `1,${STYLE_SIZE}`, n_speakers: speakers, sample_rate: HUMMING_RATE_HZ },
        ...{ model_type: 'kitten-tts', version: 1, has_espeak: 1, voice: 'en-us' },
        ...{ speaker_names: ['expr-voice-2-m', 'expr-voice-2-f'].slice(0, speakers).join(','), ...metadata },
      }),
    ),
    'voices.bin': Buffer.concat(styles.map(({ buffer }) => Buffer.from(buffer))),
    'tokens.txt': tokenLines(['$', ' ', ...PHONEMES]),
  });
  await writeEspeakData(folder);
}

/** Writes a Matcha acoustic model whose spectrogram is the waveform, with a vocoder that passes it through. */
export async function writeHummingMatcha(folder: string, { metadata = {} }: HummingOptions = {}) {
  await writeFiles(folder, {
    'model-steps-3.onnx': encodeOnnx({
      inputs: [TOKENS, integers('x_length', ['N']), float('noise_scale', [1]), float('length_scale', [1])],
      outputs: [float('mel', ['N', BANDS, 'T'])],
      nodes: [
        ...hum('length_scale', { speaker: 'zero' }),
        { operator: 'Shape', inputs: ['hummed'], outputs: ['length'] },
        { operator: 'Div', inputs: ['length', 'bands'], outputs: ['frames'] },
        { operator: 'Mul', inputs: ['frames', 'bands'], outputs: ['end'] },
        { operator: 'Slice', inputs: ['hummed', 'start', 'end'], outputs: ['whole'] },
        reshaped('whole', 'asFrames', 'framed'),
        { operator: 'Transpose', inputs: ['framed'], outputs: ['mel'], attributes: { perm: [0, 2, 1] } },
      ],
      weights: [
        ...WEIGHTS,
        { name: 'bands', shape: [1], integers: [BANDS] },
        { name: 'start', shape: [1], integers: [0] },
        { name: 'asFrames', shape: [3], integers: [1, -1, BANDS] },
      ],
      metadata: {
        ...{ model_type: 'matcha-tts', language: 'English', voice: 'en-us', has_espeak: 1, jieba: 0 },
        ...{
          n_speakers: 1,
          sample_rate: HUMMING_RATE_HZ,
          num_ode_steps: 3,
          version: 1,
          pad_id: 0,
          use_eos_bos: 1,
          ...metadata,
        },
      },
    }),
    'hifigan_v2.onnx': encodeOnnx({
      inputs: [float('mel', ['N', BANDS, 'T'])],
      outputs: [float('audio', ['N', 1, 'S'])],
      nodes: [
        { operator: 'Transpose', inputs: ['mel'], outputs: ['framed'], attributes: { perm: [0, 2, 1] } },
        reshaped('framed', 'asAudio', 'audio'),
      ],
      weights: [{ name: 'asAudio', shape: [3], integers: [1, 1, -1] }],
      metadata: { model_type: 'hifigan' },
    }),
    'tokens.txt': tokenLines(['_', '^', '$', ' ', ...PHONEMES]),
  });
  await writeEspeakData(folder);
}

const LOWEST_HZ = 100;
const STEP_HZ = 10;
const MOST_TOKENS = 510;
const STYLE_SIZE = 4;
const BANDS = 80;
const TOKEN_COUNT = 256;
const LETTERS = [...'abcdefghijklmnopqrstuvwxyz'];
const PUNCTUATION = [...'.,!?'];
const PHONEMES = [...new Set([...LETTERS, ...PUNCTUATION, ...'ːˈˌɐɑɒæɔəɚɛɜɡɪŋɹɾʃʊʌʒθðᵻʔ;:'])];

const TOKENS = integers('x', ['N', 'T']);

const SPEAKER_OF_SID: OnnxNode[] = [{ operator: 'Cast', inputs: ['sid'], outputs: ['speaker'], attributes: { to: 1 } }];

/** Maps `x` [1, T] to `hummed` [S] for `speaker`. */
function hum(lengthScale: string, { speaker = 'speaker' } = {}): OnnxNode[] {
  return [
    { operator: 'Shape', inputs: ['x'], outputs: ['shape'] },
    { operator: 'Gather', inputs: ['shape', 'one'], outputs: ['count'], attributes: { axis: 0 } },
    { operator: 'Cast', inputs: ['count'], outputs: ['tokenCount'], attributes: { to: 1 } },
    { operator: 'Reshape', inputs: [lengthScale, 'asNumber'], outputs: ['scale'] },
    { operator: 'Mul', inputs: ['scale', 'usualSamples'], outputs: ['tokenSamples'] },
    { operator: 'Mul', inputs: ['tokenCount', 'tokenSamples'], outputs: ['exactSamples'] },
    { operator: 'Floor', inputs: ['exactSamples'], outputs: ['samples'] },
    { operator: 'Range', inputs: ['zero', 'samples', 'step'], outputs: ['time'] },
    { operator: 'Div', inputs: ['time', 'tokenSamples'], outputs: ['exactIndex'] },
    { operator: 'Floor', inputs: ['exactIndex'], outputs: ['index'] },
    { operator: 'Cast', inputs: ['index'], outputs: ['tokenIndex'], attributes: { to: 7 } },
    { operator: 'Reshape', inputs: ['x', 'flat'], outputs: ['flatTokens'] },
    { operator: 'Gather', inputs: ['flatTokens', 'tokenIndex'], outputs: ['token'], attributes: { axis: 0 } },
    { operator: 'Gather', inputs: ['radians', 'token'], outputs: ['tone'], attributes: { axis: 0 } },
    { operator: 'Mul', inputs: [speaker, 'half'], outputs: ['raise'] },
    { operator: 'Add', inputs: ['raise', 'step'], outputs: ['pitch'] },
    { operator: 'Mul', inputs: ['tone', 'pitch'], outputs: ['frequency'] },
    { operator: 'Mul', inputs: ['frequency', 'time'], outputs: ['phase'] },
    { operator: 'Sin', inputs: ['phase'], outputs: ['wave'] },
    { operator: 'Mul', inputs: ['wave', 'half'], outputs: ['quieter'] },
    reshaped('quieter', 'flat', 'hummed'),
  ];
}

const WEIGHTS: OnnxTensor[] = [
  { name: 'one', shape: [], integers: [1] },
  { name: 'usualSamples', shape: [], floats: [HUMMED_TOKEN_SAMPLES] },
  { name: 'zero', shape: [], floats: [0] },
  { name: 'step', shape: [], floats: [1] },
  { name: 'half', shape: [], floats: [0.5] },
  { name: 'asNumber', shape: [0], integers: [] },
  { name: 'flat', shape: [1], integers: [-1] },
  { name: 'asAudio', shape: [3], integers: [1, 1, -1] },
  {
    name: 'radians',
    shape: [TOKEN_COUNT],
    floats: Array.from({ length: TOKEN_COUNT }, (_, token) => (2 * Math.PI * hummedHz(token)) / HUMMING_RATE_HZ),
  },
];

/** The style encodes the speaker number. */
function styledModel(metadata: OnnxModel['metadata']): OnnxModel {
  return {
    inputs: [TOKENS, float('style', ['N', STYLE_SIZE]), float('speed', [1])],
    outputs: [float('audio', ['S'])],
    nodes: [
      { operator: 'Slice', inputs: ['style', 'first', 'second', 'axis'], outputs: ['number'] },
      reshaped('number', 'flat', 'speaker'),
      { operator: 'Reciprocal', inputs: ['speed'], outputs: ['length_scale'] },
      ...hum('length_scale'),
      { operator: 'Identity', inputs: ['hummed'], outputs: ['audio'] },
    ],
    weights: [
      ...WEIGHTS,
      { name: 'first', shape: [1], integers: [0] },
      { name: 'second', shape: [1], integers: [1] },
      { name: 'axis', shape: [1], integers: [1] },
    ],
    metadata,
  };
}

function reshaped(input: string, shape: string, output: string): OnnxNode {
  return { operator: 'Reshape', inputs: [input, shape], outputs: [output] };
}

function tokenLines(tokens: readonly string[]): string {
  return tokens.map((token, number) => `${token} ${number}\n`).join('');
}

async function writeFiles(folder: string, files: Readonly<Record<string, string | Buffer>>): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
}

const ESPEAK_HOME = '/usr/share/espeak-ng-data';
const ESPEAK_FILES = ['phontab', 'phonindex', 'phondata', 'intonations', 'en_dict', 'lang/gmw/en', 'lang/gmw/en-US'];

/** The eSpeak NG data that sherpa-onnx needs for English, from the eSpeak NG package. */
export async function writeEspeakData(folder: string): Promise<void> {
  espeakData ??= readEspeakData();
  for (const [name, content] of await espeakData) {
    const path = join(folder, 'espeak-ng-data', name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
  }
}

let espeakData: Promise<[name: string, content: Uint8Array][]> | null = null;

/** Unpacking all languages takes time. */
async function readEspeakData(): Promise<[name: string, content: Uint8Array][]> {
  const { FS } = await load();
  return ESPEAK_FILES.map((name) => [name, FS.readFile(join(ESPEAK_HOME, name))]);
}
