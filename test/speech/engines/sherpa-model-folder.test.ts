import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { describeModelFolder, type ModelFolder } from '../../../speech/engines/sherpa-onnx/model-folder.ts';
import { parseManifest } from '../../../speech/engines/sherpa-onnx/model-manifest.ts';
import { OnnxFormatError, readOnnxMetadata } from '../../../speech/engines/sherpa-onnx/onnx-metadata.ts';
import { encodeOnnx } from '../tiny-onnx.ts';

function folder(
  name: string,
  files: readonly string[],
  { metadata = {}, manifest = null }: { metadata?: Record<string, string>; manifest?: ModelFolder['manifest'] } = {},
): ModelFolder {
  return { name, files, manifest, metadataOf: () => metadata };
}

interface PublishedFolder {
  name: string;
  files: string[];
  metadata: Record<string, string>;
  is: object;
}

describe('published model folder', () => {
  const cases: PublishedFolder[] = [
    {
      name: 'sherpa-onnx-streaming-zipformer-en-2023-06-26',
      files: [
        'README.md',
        'bpe.vocab',
        'decoder-epoch-99-avg-1-chunk-16-left-64.int8.onnx',
        'decoder-epoch-99-avg-1-chunk-16-left-64.onnx',
        'encoder-epoch-99-avg-1-chunk-16-left-64.int8.onnx',
        'encoder-epoch-99-avg-1-chunk-16-left-64.onnx',
        'joiner-epoch-99-avg-1-chunk-16-left-64.int8.onnx',
        'joiner-epoch-99-avg-1-chunk-16-left-64.onnx',
        'tokens.txt',
      ],
      metadata: { model_type: 'zipformer2', decode_chunk_len: '32', T: '45' },
      is: {
        type: 'streaming-transducer',
        languages: ['en'],
        hotwords: 'bpe',
        chunkFrames: 45,
        files: {
          encoder: 'encoder-epoch-99-avg-1-chunk-16-left-64.int8.onnx',
          decoder: 'decoder-epoch-99-avg-1-chunk-16-left-64.onnx',
          joiner: 'joiner-epoch-99-avg-1-chunk-16-left-64.int8.onnx',
          tokens: 'tokens.txt',
          bpeVocab: 'bpe.vocab',
        },
      },
    },
    {
      name: 'sherpa-onnx-conformer-zh-stateless2-2023-05-23',
      files: ['decoder-epoch-99-avg-1.onnx', 'encoder-epoch-99-avg-1.onnx', 'joiner-epoch-99-avg-1.onnx', 'tokens.txt'],
      metadata: { model_type: 'conformer' },
      is: { type: 'transducer', languages: ['zh'], hotwords: 'cjkchar' },
    },
    {
      name: 'sherpa-onnx-nemo-parakeet-tdt-0.6b-v2-int8-en',
      files: ['decoder.int8.onnx', 'encoder.int8.onnx', 'joiner.int8.onnx', 'tokens.txt', 'bpe.vocab'],
      metadata: { model_type: 'EncDecRNNTBPEModel' },
      is: { type: 'nemo-transducer', languages: ['en'], hotwords: null },
    },
    {
      name: 'sherpa-onnx-whisper-small',
      files: [
        'small-decoder.int8.onnx',
        'small-decoder.onnx',
        'small-encoder.int8.onnx',
        'small-encoder.onnx',
        'small-tokens.txt',
      ],
      metadata: { model_type: 'whisper-small', is_multilingual: '1', all_language_codes: 'en,zh,jw,xx' },
      is: {
        type: 'whisper',
        languages: ['en', 'zh', 'jv'],
        detectsLanguage: true,
        files: {
          encoder: 'small-encoder.int8.onnx',
          decoder: 'small-decoder.int8.onnx',
          tokens: 'small-tokens.txt',
        },
      },
    },
    {
      name: 'sherpa-onnx-whisper-tiny.en',
      files: ['tiny.en-decoder.onnx', 'tiny.en-encoder.onnx', 'tiny.en-tokens.txt'],
      metadata: { model_type: 'whisper-tiny.en', is_multilingual: '0' },
      is: { type: 'whisper', languages: ['en'], detectsLanguage: false },
    },
    {
      name: 'sherpa-onnx-moonshine-tiny-en-int8',
      files: [
        'cached_decode.int8.onnx',
        'encode.int8.onnx',
        'preprocess.onnx',
        'tokens.txt',
        'uncached_decode.int8.onnx',
      ],
      metadata: {},
      is: { type: 'moonshine', languages: ['en'] },
    },
    {
      name: 'sherpa-onnx-sense-voice-zh-en-ja-ko-yue-2024-07-17',
      files: ['model.int8.onnx', 'model.onnx', 'tokens.txt'],
      metadata: { model_type: 'sense_voice_ctc' },
      is: { type: 'sense-voice', languages: ['zh', 'en', 'ja', 'ko'], detectsLanguage: true },
    },
    {
      name: 'sherpa-onnx-paraformer-zh-2023-03-28',
      files: ['model.int8.onnx', 'model.onnx', 'tokens.txt'],
      metadata: { model_type: 'paraformer' },
      is: { type: 'paraformer', languages: ['zh'], files: { model: 'model.int8.onnx', tokens: 'tokens.txt' } },
    },
    {
      name: 'sherpa-onnx-streaming-paraformer-bilingual-zh-en',
      files: ['decoder.int8.onnx', 'encoder.int8.onnx', 'tokens.txt'],
      metadata: { model_type: 'paraformer' },
      is: { type: 'streaming-paraformer', languages: ['zh', 'en'], detectsLanguage: false },
    },
    {
      name: 'sherpa-onnx-nemo-streaming-fast-conformer-ctc-en-480ms',
      files: ['model.onnx', 'tokens.txt'],
      metadata: {
        model_type: 'EncDecHybridRNNTCTCBPEModel',
        window_size: '57',
        chunk_shift: '48',
        subsampling_factor: '8',
      },
      is: { type: 'streaming-nemo-ctc', subsampling: 8, chunkFrames: 57 },
    },
    {
      name: 'sherpa-onnx-nemo-canary-180m-flash-en-es-de-fr',
      files: ['decoder.onnx', 'encoder.onnx', 'tokens.txt'],
      metadata: { model_type: 'EncDecMultiTaskModel' },
      is: { type: 'canary', languages: ['en', 'es', 'de', 'fr'] },
    },
    {
      name: 'sherpa-onnx-wenetspeech-wenet-u2pp-zh',
      files: ['model.onnx', 'tokens.txt'],
      metadata: { model_type: 'wenet_ctc' },
      is: { type: 'wenet-ctc', languages: ['zh'] },
    },
  ];

  it.each(cases)('recognises $name', ({ name, files, metadata, is }) => {
    expect(describeModelFolder(folder(name, files, { metadata }))).toMatchObject({ name, sampleRateHz: 16_000, ...is });
  });
});

describe('invalid model folder', () => {
  const cases = [
    { name: 'is empty', described: folder('x-en', []), says: 'no model in it' },
    {
      name: 'has no tokens',
      described: folder('x-en', ['model.onnx'], { metadata: { model_type: 'tdnn' } }),
      says: 'tokens',
    },
    {
      name: 'has half a transducer',
      described: folder('x-en', ['encoder.onnx', 'joiner.onnx', 'tokens.txt'], {
        metadata: { model_type: 'conformer' },
      }),
      says: 'decoder',
    },
    { name: 'has an unknown type', described: folder('x-en', ['model.onnx', 'tokens.txt']), says: '"type"' },
    {
      name: 'contains a voice',
      described: folder('vits-piper-en', ['en.onnx', 'tokens.txt'], { metadata: { model_type: 'vits' } }),
      says: 'it is a model for synthesis: move its folder to tts/',
    },
    {
      name: 'names no language',
      described: folder('my-model', ['model.onnx', 'tokens.txt'], { metadata: { model_type: 'wenet_ctc' } }),
      says: '"languages"',
    },
    {
      name: 'refers to a missing file',
      described: folder('x-en', ['model.onnx', 'tokens.txt'], {
        metadata: { model_type: 'wenet_ctc' },
        manifest: { files: { tokens: '../../secret.txt' } },
      }),
      says: '../../secret.txt is missing',
    },
  ];

  it.each(cases)('reports the reason if it $name', ({ described, says }) => {
    expect(describeModelFolder(described)).toEqual({ problem: expect.stringContaining(says) });
  });
});

describe('tandem.json', () => {
  it('overrides what the files do not state', () => {
    const manifest: NonNullable<ModelFolder['manifest']> = {
      type: 'zipformer-ctc',
      languages: ['hi', 'en'],
      files: { model: 'hindi.onnx', tokens: 'hindi.txt' },
      sampleRateHz: 8000,
    };
    const parsed = parseManifest(JSON.stringify(manifest));
    expect(parsed).toEqual({ manifest });
    const described = describeModelFolder(folder('mine', ['hindi.onnx', 'hindi.txt'], { manifest }));
    expect(described).toMatchObject({ ...manifest, hotwords: null });
  });

  it('disables hotwords', () => {
    const files = ['encoder.onnx', 'decoder.onnx', 'joiner.onnx', 'tokens.txt', 'bpe.vocab'];
    const metadata = { model_type: 'zipformer2' };
    expect(describeModelFolder(folder('x-en', files, { metadata }))).toMatchObject({ hotwords: 'bpe' });
    const withoutVocabulary = [...files.slice(0, -1), 'bpe.model'];
    expect(describeModelFolder(folder('x-en', withoutVocabulary, { metadata }))).toMatchObject({ hotwords: null });
    const manifest = { hotwords: false } as const;
    expect(describeModelFolder(folder('x-en', files, { metadata, manifest }))).toMatchObject({ hotwords: null });
  });

  it.each(['', '{', '[]', '{"type":"magic"}', '{"languages":["English"]}', '{"files":{"soul":"x"}}', '{"typ":"tdnn"}'])(
    'rejects %j',
    (text) => {
      expect(parseManifest(text)).toEqual({ problem: expect.stringContaining('tandem.json') });
    },
  );
});

describe('ONNX metadata', () => {
  const model = encodeOnnx({
    inputs: [],
    outputs: [],
    nodes: [],
    weights: [{ name: 'w', shape: [5000], floats: new Array(5000).fill(1) }],
    metadata: { model_type: 'zipformer2', long: 'x'.repeat(20_000), vocab_size: 500 },
  });

  async function metadataOf(bytes: Uint8Array) {
    const home = await mkdtemp(join(tmpdir(), 'tandem-onnx-'));
    try {
      await writeFile(join(home, 'model.onnx'), bytes);
      return await readOnnxMetadata(join(home, 'model.onnx'));
    } finally {
      await rm(home, { recursive: true });
    }
  }

  it('follows a large graph', async () => {
    expect({ ...(await metadataOf(model)) }).toEqual({ model_type: 'zipformer2', vocab_size: '500' });
  });

  it.each([
    { what: 'an empty file', bytes: Buffer.alloc(0) },
    { what: 'half a file', bytes: model.subarray(0, 10_000) },
    { what: 'a file without its last byte', bytes: model.subarray(0, -1) },
    { what: 'a web page', bytes: Buffer.from('<!doctype html><html></html>') },
    { what: 'a Git LFS pointer', bytes: Buffer.from('version https://git-lfs.github.com/spec/v1\noid sha256:0\n') },
    { what: 'zeros', bytes: Buffer.alloc(64) },
    { what: 'an endless length', bytes: Buffer.alloc(64, 0xff) },
  ])('cannot be read from $what', async ({ bytes }) => {
    await expect(metadataOf(bytes)).rejects.toThrow(OnnxFormatError);
  });
});
