import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeOnnx, type OnnxModel, type OnnxTensor } from './tiny-onnx.ts';

/**
 * Models of a few kilobytes for a whistled language: each token is a tone in the centre of one of the 80 mel bands of
 * sherpa-onnx; silence is blank. They exercise the real library deterministically.
 */
export interface WhistledToken {
  /** As in `tokens.txt`: `▁` begins a word. */
  token: string;
  band: number;
  /** Added to its score, to rank two tokens of the same band. */
  favour?: number;
}

/** The words "go forward ten meters"; `tan` wins over `ten` without a hotword. */
export const WHISTLED_TOKENS: readonly WhistledToken[] = [
  { token: '▁go', band: 12 },
  { token: '▁for', band: 20 },
  { token: 'ward', band: 28 },
  { token: '▁ten', band: 36 },
  { token: '▁tan', band: 36, favour: 0.5 },
  { token: '▁me', band: 44 },
  { token: 'ters', band: 52 },
];

const TOKEN_MS = 200;
const GAP_MS = 100;

/** Renders tokens of 200 ms, each with 100 ms of silence before and after. */
export function whistle(tokens: readonly string[]): Int16Array<ArrayBuffer> {
  const token = (TOKEN_MS * RATE_HZ) / 1000;
  const gap = (GAP_MS * RATE_HZ) / 1000;
  const samples = new Int16Array(gap + tokens.length * (token + gap));
  for (const [index, name] of tokens.entries()) {
    const { band } = WHISTLED_TOKENS.find((whistled) => whistled.token === name)!;
    const step = (2 * Math.PI * bandCentreHz(band)) / RATE_HZ;
    const start = gap + index * (token + gap);
    for (let at = 0; at < token; at++) {
      // Fades avoid clicks, which would excite all bands.
      const fade = Math.sin((Math.PI * at) / token) ** 0.5;
      samples[start + at] = Math.round(16_000 * fade * Math.sin(step * at));
    }
  }
  return samples;
}

export function whistledAtMs(index: number): number {
  return GAP_MS + index * (TOKEN_MS + GAP_MS);
}

/** Writes a streaming CTC model as exported from NeMo. */
export async function writeStreamingCtc(folder: string, { subsampling = SUBSAMPLING } = {}): Promise<void> {
  const scores = scoresAt(subsampling);
  const caches = ['cache_last_channel', 'cache_last_time'];
  await writeModel(folder, {
    'model.onnx': {
      inputs: [
        { name: 'audio_signal', type: 'float', shape: ['N', BANDS, 'T'] },
        { name: 'length', type: 'int64', shape: ['N'] },
        ...caches.map((name) => ({ name, type: 'float' as const, shape: ['N', 1, 1, 1] })),
        { name: 'cache_last_channel_len', type: 'int64', shape: ['N'] },
      ],
      outputs: [
        { name: 'logprobs', type: 'float', shape: ['N', 'T2', 'V'] },
        { name: 'encoded_lengths', type: 'int64', shape: ['N'] },
        ...caches.map((name) => ({ name: `${name}_next`, type: 'float' as const, shape: ['N', 1, 1, 1] })),
        { name: 'cache_last_channel_len_next', type: 'int64', shape: ['N'] },
      ],
      nodes: [
        { operator: 'Transpose', inputs: ['audio_signal'], outputs: ['features'], attributes: { perm: [0, 2, 1] } },
        ...scores.nodes,
        { operator: 'LogSoftmax', inputs: ['scores'], outputs: ['logprobs'], attributes: { axis: -1 } },
        { operator: 'Identity', inputs: ['length'], outputs: ['encoded_lengths'] },
        ...[...caches, 'cache_last_channel_len'].map((name) => ({
          operator: 'Identity',
          inputs: [name],
          outputs: [`${name}_next`],
        })),
      ],
      weights: scores.weights,
      metadata: {
        model_type: 'EncDecHybridRNNTCTCBPEModel',
        window_size: CHUNK_FRAMES,
        chunk_shift: CHUNK_FRAMES,
        subsampling_factor: subsampling,
        vocab_size: WHISTLED_TOKENS.length,
        cache_last_channel_dim1: 1,
        cache_last_channel_dim2: 1,
        cache_last_channel_dim3: 1,
        cache_last_time_dim1: 1,
        cache_last_time_dim2: 1,
        cache_last_time_dim3: 1,
      },
    },
  });
}

/** Writes an offline CTC model as exported from icefall. */
export async function writeOfflineCtc(folder: string): Promise<void> {
  await writeModel(folder, {
    'model.onnx': {
      inputs: [
        { name: 'x', type: 'float', shape: ['N', 'T', BANDS] },
        { name: 'x_lens', type: 'int64', shape: ['N'] },
      ],
      outputs: [
        { name: 'log_probs', type: 'float', shape: ['N', 'T2', TOKEN_COUNT] },
        { name: 'log_probs_len', type: 'int64', shape: ['N'] },
      ],
      nodes: [
        { operator: 'Identity', inputs: ['x'], outputs: ['features'] },
        ...SCORES.nodes,
        { operator: 'LogSoftmax', inputs: ['scores'], outputs: ['log_probs'], attributes: { axis: -1 } },
        ...lengthNodes('log_probs_len'),
      ],
      weights: [...SCORES.weights, ...LENGTH_WEIGHTS],
      metadata: { model_type: 'zipformer2_ctc' },
    },
  });
}

/** Writes a streaming transducer as exported from icefall, with confidences and hotwords. */
export async function writeStreamingTransducer(folder: string): Promise<void> {
  const states = ['h', 'c'];
  const state = (name: string) => ({ name, type: 'float' as const, shape: [1, 'N', 1] });
  await writeTransducer(folder, {
    inputs: [{ name: 'x', type: 'float', shape: ['N', 'T', BANDS] }, ...states.map(state)],
    outputs: [
      { name: 'encoder_out', type: 'float', shape: ['N', 'T2', TOKEN_COUNT] },
      ...states.map((name) => state(`next_${name}`)),
    ],
    nodes: [
      { operator: 'Identity', inputs: ['x'], outputs: ['features'] },
      ...SCORES.nodes,
      { operator: 'Identity', inputs: ['scores'], outputs: ['encoder_out'] },
      ...states.map((name) => ({ operator: 'Identity', inputs: [name], outputs: [`next_${name}`] })),
    ],
    weights: SCORES.weights,
    metadata: {
      model_type: 'lstm',
      num_encoder_layers: 1,
      T: CHUNK_FRAMES,
      decode_chunk_len: CHUNK_FRAMES,
      rnn_hidden_size: 1,
      d_model: 1,
    },
  });
}

export async function writeOfflineTransducer(folder: string): Promise<void> {
  await writeTransducer(folder, {
    inputs: [
      { name: 'x', type: 'float', shape: ['N', 'T', BANDS] },
      { name: 'x_lens', type: 'int64', shape: ['N'] },
    ],
    outputs: [
      { name: 'encoder_out', type: 'float', shape: ['N', 'T2', TOKEN_COUNT] },
      { name: 'encoder_out_lens', type: 'int64', shape: ['N'] },
    ],
    nodes: [
      { operator: 'Identity', inputs: ['x'], outputs: ['features'] },
      ...SCORES.nodes,
      { operator: 'Identity', inputs: ['scores'], outputs: ['encoder_out'] },
      ...lengthNodes('encoder_out_lens'),
    ],
    weights: [...SCORES.weights, ...LENGTH_WEIGHTS],
    metadata: { model_type: 'zipformer2' },
  });
}

async function writeTransducer(folder: string, encoder: OnnxModel): Promise<void> {
  await writeModel(folder, {
    'encoder.onnx': encoder,
    'decoder.onnx': {
      inputs: [{ name: 'y', type: 'int64', shape: ['N', CONTEXT_TOKENS] }],
      outputs: [{ name: 'decoder_out', type: 'float', shape: ['N', TOKEN_COUNT] }],
      nodes: [
        { operator: 'Gather', inputs: ['y', 'last'], outputs: ['last_token'], attributes: { axis: 1 } },
        { operator: 'Gather', inputs: ['said', 'last_token'], outputs: ['decoder_out'], attributes: { axis: 0 } },
      ],
      weights: [
        { name: 'last', shape: [], integers: [CONTEXT_TOKENS - 1] },
        { name: 'said', shape: [TOKEN_COUNT, TOKEN_COUNT], floats: alreadySaid() },
      ],
      metadata: { vocab_size: TOKEN_COUNT, context_size: CONTEXT_TOKENS },
    },
    'joiner.onnx': {
      inputs: [
        { name: 'encoder_out', type: 'float', shape: ['N', TOKEN_COUNT] },
        { name: 'decoder_out', type: 'float', shape: ['N', TOKEN_COUNT] },
      ],
      outputs: [{ name: 'logit', type: 'float', shape: ['N', TOKEN_COUNT] }],
      nodes: [{ operator: 'Add', inputs: ['encoder_out', 'decoder_out'], outputs: ['logit'] }],
      weights: [],
      metadata: { joiner_dim: TOKEN_COUNT },
    },
  });
  // SentencePiece vocabulary with scores, needed for hotwords.
  const pieces = WHISTLED_TOKENS.map(({ token }) => `${token}\t-1`);
  await writeFile(join(folder, 'bpe.vocab'), `<blk>\t0\n${pieces.join('\n')}\n`);
}

/** Writes a punctuation model: full stop after `meters`, comma after `go`. */
export async function writePunctuation(folder: string): Promise<void> {
  const tokens = ['<unk>', 'go', 'meters'];
  const marks = ['<unk>', '_', '，', '。', '？', '、'];
  const markOf = ['_', '，', '。'];
  await mkdir(folder, { recursive: true });
  const model: OnnxModel = {
    inputs: [
      { name: 'inputs', type: 'int32', shape: [1, 'T'] },
      { name: 'text_lengths', type: 'int32', shape: [1] },
    ],
    outputs: [{ name: 'logits', type: 'float', shape: [1, 'T', marks.length] }],
    nodes: [{ operator: 'Gather', inputs: ['marks', 'inputs'], outputs: ['logits'], attributes: { axis: 0 } }],
    weights: [
      {
        name: 'marks',
        shape: [tokens.length, marks.length],
        floats: markOf.flatMap((wanted) => marks.map((mark) => Number(mark === wanted))),
      },
    ],
    metadata: {
      tokens: tokens.join('|'),
      vocab_size: tokens.length,
      punctuations: marks.join('|'),
      unk_symbol: '<unk>',
    },
  };
  await writeFile(join(folder, 'model.onnx'), encodeOnnx(model));
}

const RATE_HZ = 16_000;
const BANDS = 80;
const SUBSAMPLING = 4;
const CHUNK_FRAMES = 16;
const CONTEXT_TOKENS = 2;
const TOKEN_COUNT = WHISTLED_TOKENS.length + 1;
const QUIET_LOG_ENERGY = 1;

/** Maps `features` [N, T, 80] to `scores` [N, T/n, tokens]: band energy against silence. */
const scoresAt = (subsampling: number) =>
  ({
    nodes: [
      { operator: 'Slice', inputs: ['features', 'first', 'end', 'time', 'step'], outputs: ['sampled'] },
      { operator: 'MatMul', inputs: ['sampled', 'bands'], outputs: ['energies'] },
      { operator: 'Add', inputs: ['energies', 'favours'], outputs: ['scores'] },
    ],
    weights: [
      { name: 'first', shape: [1], integers: [0] },
      { name: 'end', shape: [1], integers: [1_000_000] },
      { name: 'time', shape: [1], integers: [1] },
      { name: 'step', shape: [1], integers: [subsampling] },
      { name: 'bands', shape: [BANDS, TOKEN_COUNT], floats: bandWeights() },
      {
        name: 'favours',
        shape: [TOKEN_COUNT],
        floats: [0, ...WHISTLED_TOKENS.map(({ favour = 0 }) => favour - QUIET_LOG_ENERGY)],
      },
    ],
  }) satisfies { nodes: OnnxModel['nodes']; weights: OnnxTensor[] };

const SCORES = scoresAt(SUBSAMPLING);

/** Maps `x_lens` to the number of output frames, rounded up. */
function lengthNodes(output: string): OnnxModel['nodes'] {
  return [
    { operator: 'Add', inputs: ['x_lens', 'round_up'], outputs: ['rounded'] },
    { operator: 'Div', inputs: ['rounded', 'subsampling'], outputs: [output] },
  ];
}

const LENGTH_WEIGHTS: OnnxTensor[] = [
  { name: 'round_up', shape: [1], integers: [SUBSAMPLING - 1] },
  { name: 'subsampling', shape: [1], integers: [SUBSAMPLING] },
];

function bandWeights(): number[] {
  const weights = new Array<number>(BANDS * TOKEN_COUNT).fill(0);
  for (const [index, { band }] of WHISTLED_TOKENS.entries()) weights[band * TOKEN_COUNT + index + 1] = 1;
  return weights;
}

/** Prevents a transducer from emitting a token twice for one sound: a token never follows itself or one of its band. */
function alreadySaid(): number[] {
  const weights = new Array<number>(TOKEN_COUNT * TOKEN_COUNT).fill(0);
  for (const [said, { band }] of WHISTLED_TOKENS.entries()) {
    for (const [next, other] of WHISTLED_TOKENS.entries()) {
      if (band === other.band) weights[(said + 1) * TOKEN_COUNT + next + 1] = -1000;
    }
  }
  return weights;
}

/** Kaldi mel filter bank: 80 bands from 20 to 7,600 Hz. */
function bandCentreHz(band: number): number {
  const mel = (hertz: number) => 1127 * Math.log(1 + hertz / 700);
  const low = mel(20);
  const centre = low + ((band + 1) * (mel(7600) - low)) / (BANDS + 1);
  return 700 * (Math.exp(centre / 1127) - 1);
}

async function writeModel(folder: string, files: Record<string, OnnxModel>): Promise<void> {
  await mkdir(folder, { recursive: true });
  const tokens = ['<blk>', ...WHISTLED_TOKENS.map(({ token }) => token)];
  await writeFile(join(folder, 'tokens.txt'), `${tokens.map((token, id) => `${token} ${id}`).join('\n')}\n`);
  for (const [name, model] of Object.entries(files)) await writeFile(join(folder, name), encodeOnnx(model));
}
