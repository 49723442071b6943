import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createSpeakerEmbedder, findSpeakerModel } from '../../../speech/engines/sherpa-onnx/speaker-embedder.ts';
import { encodeOnnx } from '../tiny-onnx.ts';

const RATE_HZ = 16_000;
const MEL_BANDS = 80;

let modelsDir: string;

beforeAll(async () => {
  modelsDir = await mkdtemp(join(tmpdir(), 'tandem-speaker-'));
});

afterAll(() => rm(modelsDir, { recursive: true, force: true }));

/** A model whose embedding is the mean spectrum. */
function meanSpectrumModel(): Buffer {
  return encodeOnnx({
    inputs: [{ name: 'feats', type: 'float', shape: ['n', 'time', MEL_BANDS] }],
    outputs: [{ name: 'embs', type: 'float', shape: ['n', MEL_BANDS] }],
    nodes: [{ operator: 'ReduceMean', inputs: ['feats'], outputs: ['embs'], attributes: { axes: [1], keepdims: 0 } }],
    weights: [],
    metadata: {
      framework: 'wespeaker',
      language: 'English',
      sample_rate: RATE_HZ,
      output_dim: MEL_BANDS,
      normalize_samples: 1,
      feature_normalize_type: '',
    },
  });
}

function tone(frequencyHz: number): Int16Array<ArrayBuffer> {
  return Int16Array.from({ length: RATE_HZ }, (_, at) => 8000 * Math.sin((2 * Math.PI * frequencyHz * at) / RATE_HZ));
}

function loudestBand(embedding: Float32Array | null): number {
  return embedding === null ? -1 : embedding.indexOf(Math.max(...embedding));
}

it('finds no model in an empty folder', async () => {
  expect(await findSpeakerModel(join(modelsDir, 'nowhere'))).toBeNull();
});

it('embeds voices with a sherpa-onnx speaker model, and returns null for very short audio', async () => {
  await mkdir(join(modelsDir, 'speaker', 'mean'), { recursive: true });
  await writeFile(join(modelsDir, 'speaker', 'mean', 'model.onnx'), meanSpectrumModel());
  const model = await findSpeakerModel(modelsDir);
  expect(model).toBe(join(modelsDir, 'speaker', 'mean', 'model.onnx'));
  const embedder = createSpeakerEmbedder(model!);
  const [low, high] = [await embedder.embed(tone(300)), await embedder.embed(tone(3000))];
  expect(low).toHaveLength(MEL_BANDS);
  expect(loudestBand(low)).toBeLessThan(loudestBand(high));
  expect(await embedder.embed(tone(300))).toEqual(low);
  expect(await embedder.embed(new Int16Array(10))).toBeNull();
});

it('fails with a damaged model and leaves the process alive', async () => {
  const damaged = join(modelsDir, 'damaged.onnx');
  await writeFile(damaged, 'no model');
  await expect(createSpeakerEmbedder(damaged).embed(tone(300))).rejects.toThrow(/process/);
});
