import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import openWabt from 'wabt';
import { DENSE_LAYER_WASM, DenseMemory } from '../../../media/listening/dense-layer.ts';
import { SileroMemory, SileroModel } from '../../../media/listening/silero-model.ts';
import { publishedModelFile, type SileroNetwork, SileroNetworks } from '../../../media/listening/silero-network.ts';
import { SileroWeights } from '../../../media/listening/silero-weights.ts';
import { seededRandom } from '../../../runtime/seeded-random.ts';
import { spokenUtterances, withNoise } from '../../speech/spoken.ts';

/**
 * Reference results for `spokenUtterances()`: probabilities of onnxruntime-web 1.30.0, and verdicts of sherpa-onnx-node
 * 1.13.8 with white noise as loud as the speech (same thresholds, shortest durations).
 */
const REFERENCE: Record<string, { probabilities: number[]; noisyVerdicts: string }> = JSON.parse(
  await readFile(new URL('./silero-reference.json', import.meta.url), 'utf8'),
);
const WINDOW = 512;
const CONTEXT = 64;
const spoken = spokenUtterances();
const command = spoken.find(({ name }) => name === 'goforward')!.samples;
const networks = await SileroNetworks.load();

describe('voice network', () => {
  it('matches ONNX Runtime on human speech within 0.0001', async () => {
    const model = new SileroModel(new SileroWeights(await readFile(publishedModelFile())));
    for (const { name, samples } of spoken) {
      const { probabilities } = REFERENCE[name]!;
      const memory = new SileroMemory();
      const input = new Float32Array(CONTEXT + WINDOW);
      const differences = probabilities.map((expected, index) => {
        input.copyWithin(0, WINDOW);
        input.set(Float32Array.from(windowOf(samples, index), toUnit), CONTEXT);
        return Math.abs(model.probability(input, memory) - expected);
      });
      expect(differences.length, name).toBe(Math.floor(samples.length / WINDOW));
      expect(Math.max(...differences), name).toBeLessThan(0.0001);
    }
  });

  it('matches sherpa-onnx in the start and end of noisy speech', () => {
    for (const [index, { name, samples }] of spoken.entries()) {
      expect(verdicts(networks.create()!, withNoise(samples, 0, index)), name).toBe(REFERENCE[name]!.noisyVerdicts);
    }
  });

  it('detects the command in its recording, and nothing before and after', () => {
    expect(verdicts(networks.create()!, command)).toMatch(/^\.{14,20}#{48,60}\.{14,20}$/);
  });

  it('forgets its state after a reset', () => {
    const network = networks.create()!;
    const first = verdicts(network, command);
    // Ends within speech, where the state matters.
    verdicts(network, command.subarray(0, 40 * WINDOW));
    network.reset();
    expect(verdicts(network, command)).toBe(first);
  });

  it('keeps channels with shared weights independent', () => {
    const other = spoken[0]!.samples.subarray(0, command.length);
    const [one, two] = [networks.create()!, networks.create()!];
    let [verdictsOfOne, verdictsOfTwo] = ['', ''];
    for (let at = 0; at < command.length; at += WINDOW) {
      verdictsOfOne += verdicts(one, command.subarray(at, at + WINDOW));
      verdictsOfTwo += verdicts(two, other.subarray(at, at + WINDOW));
    }
    expect(verdictsOfOne).toBe(verdicts(networks.create()!, command));
    expect(verdictsOfTwo).toBe(verdicts(networks.create()!, other));
    expect(verdictsOfOne).not.toBe(verdictsOfTwo);
  });

  it('reports a missing or damaged model file', async () => {
    const missing = await SileroNetworks.load('/nowhere/silero.onnx');
    expect(missing.problem).toContain('ENOENT');
    expect(missing.create()).toBeNull();
    const damaged = await SileroNetworks.load(import.meta.filename);
    expect(damaged.problem).toEqual(expect.any(String));
    expect(damaged.create()).toBeNull();
  });

  it('rejects a truncated model file', async () => {
    const whole = await readFile(publishedModelFile());
    expect(() => new SileroModel(new SileroWeights(whole.subarray(0, whole.length / 2)))).toThrow(RangeError);
  });
});

describe('dense layer', () => {
  it('matches its assembled source', async () => {
    const source = await readFile(new URL('../../../media/listening/dense-layer.wat', import.meta.url), 'utf8');
    const assembled = (await openWabt()).parseWat('dense-layer.wat', source, { simd: true }).toBinary({}).buffer;
    expect(Buffer.from(assembled).toString('base64')).toBe(DENSE_LAYER_WASM);
  });

  it.each([
    [4, 4],
    [8, 12],
    [64, 396],
  ])('computes %i outputs from %i inputs with a minimum', (outputs, inputs) => {
    const random = seededRandom(outputs);
    const floats = (length: number) => Float32Array.from({ length }, () => 2 * random() - 1);
    const rows = Array.from({ length: outputs }, () => floats(inputs));
    const biases = floats(outputs);
    const memory = new DenseMemory();
    const [input, output] = [memory.floats(inputs), memory.floats(outputs)];
    const [relu, linear] = [0, Number.NEGATIVE_INFINITY].map((least) => memory.layer({ rows, biases, least }));
    input.set(floats(inputs));
    const expected = rows.map((row, index) => row.reduce((sum, weight, i) => sum + weight * input[i]!, biases[index]!));
    linear!(input, output);
    for (const [index, value] of expected.entries()) expect(output[index]).toBeCloseTo(value, 4);
    relu!(input, output);
    for (const [index, value] of expected.entries()) expect(output[index]).toBeCloseTo(Math.max(0, value), 4);
  });

  it('rejects sizes beyond its memory', () => {
    expect(() => new DenseMemory().floats(2 ** 18 + 1)).toThrow(RangeError);
  });
});

/** One character per window: `#` for speech. */
function verdicts(network: SileroNetwork, samples: Int16Array): string {
  return Array.from({ length: Math.floor(samples.length / WINDOW) }, (_, index) =>
    network.isSpeech(Float32Array.from(windowOf(samples, index))) ? '#' : '.',
  ).join('');
}

function windowOf(samples: Int16Array, index: number): Int16Array {
  return samples.subarray(index * WINDOW, (index + 1) * WINDOW);
}

function toUnit(sample: number): number {
  return sample / 32_768;
}
