/**
 * A language model of a few hundred kB as a GGUF file: one llama layer with zero attention and feed-forward weights, so
 * that the next token depends on the last one only. Its vocabulary is all bytes, ASCII characters and the given pieces.
 */
export interface TinyModel {
  /** Pieces of each assistant turn, one token each and therefore distinct. The turn ends after the last. */
  says?: readonly string[];
  /** Continues with this piece after the last one, endlessly. */
  thenAgainFrom?: string;
  /** Makes all tokens equally likely, so that seed and temperature decide. */
  babbles?: boolean;
  chatTemplate?: string | null;
  /** Context length, prompt and answer together. Default 512. */
  contextTokens?: number;
  metadata?: Readonly<Record<string, string>>;
}

const CHATML_TEMPLATE = [
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}",
  "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
].join('');

export const THINKING_TEMPLATE = [
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' }}{% endfor %}",
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}",
  "{% if not enable_thinking %}{{ '<think></think>' }}{% endif %}{% endif %}",
].join('');

export function tinyModel({
  says = [],
  thenAgainFrom,
  babbles = false,
  chatTemplate = CHATML_TEMPLATE,
  contextTokens = 512,
  metadata = {},
}: TinyModel): Buffer {
  const vocabulary = vocabularyOf(says);
  const idOf = new Map(vocabulary.map(({ text }, id) => [text, id]));
  const followers = new Map<number, number>();
  let last = required(idOf, '\n');
  for (const piece of says) {
    followers.set(last, required(idOf, piece));
    last = required(idOf, piece);
  }
  followers.set(last, required(idOf, thenAgainFrom ?? END_OF_TURN));
  const random = randomSigns();
  const embeddings = vocabulary.map(() =>
    Array.from({ length: DIMENSIONS }, (_, index) => (index === 0 ? 1 : random())),
  );
  const output = babbles ? indifferentOutput(vocabulary.length) : outputOf(embeddings, followers, idOf);
  const ones = new Float32Array(DIMENSIONS).fill(1);
  const square = new Float32Array(DIMENSIONS * DIMENSIONS);
  const feedForward = new Float32Array(DIMENSIONS * FEED_FORWARD);
  return gguf(
    [
      ['general.architecture', { string: 'llama' }],
      ['general.name', { string: 'Tiny' }],
      ['llama.context_length', { uint32: contextTokens }],
      ['llama.embedding_length', { uint32: DIMENSIONS }],
      ['llama.block_count', { uint32: 1 }],
      ['llama.feed_forward_length', { uint32: FEED_FORWARD }],
      ['llama.attention.head_count', { uint32: 2 }],
      ['llama.attention.head_count_kv', { uint32: 2 }],
      ['llama.attention.layer_norm_rms_epsilon', { float32: 1e-6 }],
      ['llama.rope.dimension_count', { uint32: DIMENSIONS / 2 }],
      ['llama.vocab_size', { uint32: vocabulary.length }],
      ['tokenizer.ggml.model', { string: 'llama' }],
      ['tokenizer.ggml.tokens', { strings: vocabulary.map(spelt) }],
      ['tokenizer.ggml.scores', { float32s: vocabulary.map(() => 0) }],
      ['tokenizer.ggml.token_type', { int32s: vocabulary.map(({ type }) => type) }],
      ['tokenizer.ggml.unknown_token_id', { uint32: 0 }],
      ['tokenizer.ggml.bos_token_id', { uint32: 1 }],
      ['tokenizer.ggml.eos_token_id', { uint32: required(idOf, END_OF_TURN) }],
      ['tokenizer.ggml.add_bos_token', { bool: false }],
      ['tokenizer.ggml.add_space_prefix', { bool: false }],
      ...(chatTemplate === null ? [] : [['tokenizer.chat_template', { string: chatTemplate }] as const]),
      ...Object.entries(metadata).map(([key, string]) => [key, { string }] as const),
    ],
    [
      tensor('token_embd.weight', [DIMENSIONS, vocabulary.length], Float32Array.from(embeddings.flat())),
      tensor('blk.0.attn_norm.weight', [DIMENSIONS], ones),
      tensor('blk.0.attn_q.weight', [DIMENSIONS, DIMENSIONS], square),
      tensor('blk.0.attn_k.weight', [DIMENSIONS, DIMENSIONS], square),
      tensor('blk.0.attn_v.weight', [DIMENSIONS, DIMENSIONS], square),
      tensor('blk.0.attn_output.weight', [DIMENSIONS, DIMENSIONS], square),
      tensor('blk.0.ffn_norm.weight', [DIMENSIONS], ones),
      tensor('blk.0.ffn_gate.weight', [DIMENSIONS, FEED_FORWARD], feedForward),
      tensor('blk.0.ffn_up.weight', [DIMENSIONS, FEED_FORWARD], feedForward),
      tensor('blk.0.ffn_down.weight', [FEED_FORWARD, DIMENSIONS], feedForward),
      tensor('output_norm.weight', [DIMENSIONS], ones),
      tensor('output.weight', [DIMENSIONS, vocabulary.length], output),
    ],
  );
}

const DIMENSIONS = 128;
const FEED_FORWARD = 64;
const END_OF_TURN = '<|im_end|>';
const CONTROLS = ['<|im_start|>', END_OF_TURN];

/** `tokenizer.ggml.token_type`. */
const TYPE = { normal: 1, unknown: 2, control: 3, userDefined: 4, byte: 6 };

interface Token {
  text: string;
  type: number;
}

/** Spaces are encoded as U+2581 in normal tokens. */
function spelt({ text, type }: Token): string {
  return type === TYPE.normal ? text.replaceAll(' ', '\u2581') : text;
}

function vocabularyOf(pieces: readonly string[]): Token[] {
  const characters = ['\n', ...Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index))];
  const known = new Set([...characters, ...CONTROLS]);
  return [
    { text: '<unk>', type: TYPE.unknown },
    { text: '<s>', type: TYPE.control },
    ...Array.from({ length: 256 }, (_, byte) => ({
      text: `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
      type: TYPE.byte,
    })),
    ...characters.map((text) => ({ text, type: TYPE.normal })),
    ...CONTROLS.map((text) => ({ text, type: TYPE.control })),
    ...pieces.filter((piece) => !known.has(piece)).map((text) => ({ text, type: TYPE.userDefined })),
  ];
}

/** Logits: a token with a follower makes it certain; any other ends the turn. Tokens that close JSON are likelier. */
function outputOf(
  embeddings: readonly (readonly number[])[],
  followers: ReadonlyMap<number, number>,
  idOf: ReadonlyMap<string, number>,
): Float32Array {
  const output = new Float32Array(embeddings.length * DIMENSIONS);
  for (const [token, follower] of followers) {
    const embedding = embeddings[token] ?? [];
    for (const [index, value] of embedding.entries()) {
      if (index > 0)
        output[follower * DIMENSIONS + index] =
          (output[follower * DIMENSIONS + index] ?? 0) + (60 * value) / DIMENSIONS;
    }
  }
  for (const [text, logit] of [
    [END_OF_TURN, 25],
    ['}', 18],
    [']', 17],
    ['"', 20],
    ['\n', 14],
  ] as const) {
    output[required(idOf, text) * DIMENSIONS] = logit;
  }
  return output;
}

function indifferentOutput(tokens: number): Float32Array {
  const random = randomSigns(7);
  return Float32Array.from({ length: tokens * DIMENSIONS }, () => random() / 40);
}

function required(idOf: ReadonlyMap<string, number>, text: string): number {
  const id = idOf.get(text);
  if (id === undefined) throw new Error(`no token is ${JSON.stringify(text)}`);
  return id;
}

/** Deterministic signs, 1 or -1. */
function randomSigns(seed = 1): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state & 0x10000 ? 1 : -1;
  };
}

type Value =
  | { string: string }
  | { strings: readonly string[] }
  | { uint32: number }
  | { float32: number }
  | { float32s: readonly number[] }
  | { int32s: readonly number[] }
  | { bool: boolean };

interface Tensor {
  name: string;
  dimensions: readonly number[];
  values: Float32Array;
}

const ALIGNMENT = 32;

/** https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, version 3. */
function gguf(metadata: readonly (readonly [string, Value])[], tensors: readonly Tensor[]): Buffer {
  let offset = 0;
  const infos = tensors.map(({ name, dimensions, values }) => {
    const info = [text(name), uint32(dimensions.length), ...dimensions.map(uint64), uint32(0), uint64(offset)];
    offset += aligned(values.byteLength);
    return info;
  });
  const head = Buffer.concat([
    Buffer.from('GGUF'),
    uint32(3),
    uint64(tensors.length),
    uint64(metadata.length),
    ...metadata.flatMap(([key, value]) => [text(key), ...encoded(value)]),
    ...infos.flat(),
  ]);
  return Buffer.concat([
    padded(head),
    ...tensors.map(({ values }) => padded(Buffer.from(values.buffer, values.byteOffset, values.byteLength))),
  ]);
}

function tensor(name: string, dimensions: readonly number[], values: Float32Array): Tensor {
  return { name, dimensions, values };
}

function encoded(value: Value): Buffer[] {
  if ('string' in value) return [uint32(8), text(value.string)];
  if ('strings' in value) return [...arrayOf(8, value.strings), ...value.strings.map(text)];
  if ('uint32' in value) return [uint32(4), uint32(value.uint32)];
  if ('float32' in value) return [uint32(6), float32(value.float32)];
  if ('float32s' in value) return [...arrayOf(6, value.float32s), ...value.float32s.map(float32)];
  if ('int32s' in value) return [...arrayOf(5, value.int32s), ...value.int32s.map(uint32)];
  return [uint32(7), Buffer.of(value.bool ? 1 : 0)];
}

function arrayOf(type: number, { length }: readonly unknown[]): Buffer[] {
  return [uint32(9), uint32(type), uint64(length)];
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint64(bytes.byteLength), bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function float32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes], aligned(bytes.byteLength));
}
