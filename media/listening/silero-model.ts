import { RealFft } from '../dsp/fft.ts';
import { type DenseLayer, DenseMemory } from './dense-layer.ts';
import type { SileroWeights } from './silero-weights.ts';
import { WINDOW_SAMPLES } from './windows.ts';

/**
 * The Silero voice detector (v5) at 16 kHz: four overlapping spectra of a window, four convolutions, one LSTM step and
 * a weighted sum. The weights come from the published file. It is our own code because existing runtimes are partly GPL
 * (sherpa-onnx), need an install-time download (onnxruntime-node) or take five times the CPU (onnxruntime-web); see
 * `bench/voice-network.ts`.
 */

/** Each window is evaluated with this number of samples before it. */
export const CONTEXT_SAMPLES = 64;
const INPUT_SAMPLES = CONTEXT_SAMPLES + WINDOW_SAMPLES;
const FFT_SIZE = 256;
const HOP = 128;
const SPECTRA = 4;
const BINS = FFT_SIZE / 2 + 1;
/** Padded to a multiple of four. */
const PADDED_BINS = 132;
const TAPS = 3;
const MEMORY = 128;

/** Recurrent state of a channel; initially zero. */
export class SileroMemory {
  readonly hidden = new Float32Array(MEMORY);
  readonly cell = new Float32Array(MEMORY);

  clear(): void {
    this.hidden.fill(0);
    this.cell.fill(0);
  }
}

export class SileroModel {
  readonly #fft = new RealFft(FFT_SIZE);
  readonly #padded = new Float32Array(INPUT_SAMPLES + FFT_SIZE / 4);
  readonly #windowed = new Float32Array(FFT_SIZE);
  readonly #powers = new Float32Array(BINS);
  readonly #spectra: readonly Float32Array[];
  /** The four convolutions, one step for each of their frames. */
  readonly #convolutions: readonly (() => void)[];
  readonly #lstm: DenseLayer;
  readonly #lstmInput: Float32Array;
  readonly #gates: Float32Array;
  readonly #outputWeights: Float32Array;
  readonly #outputBias: number;

  /** @throws RangeError if weights are missing */
  constructor(weights: SileroWeights) {
    const memory = new DenseMemory();
    // Consecutive frames, with a frame of zeros before them (and after the spectra). Three in a row are a convolution's
    // patch.
    const spectra = memory.floats((SPECTRA + 2) * PADDED_BINS);
    const first = memory.floats((SPECTRA + 1) * 128);
    const second = memory.floats(3 * 64);
    const third = memory.floats(64);
    this.#lstmInput = memory.floats(2 * MEMORY);
    this.#gates = memory.floats(4 * MEMORY);
    this.#spectra = framesOf(spectra, PADDED_BINS).slice(1, -1);

    const convolution = (index: number, shape: ConvolutionShape) =>
      memory.layer({ ...convolutionWeights(weights, index, shape), least: 0 });
    const firstLayer = convolution(0, { outputs: 128, channels: BINS, paddedChannels: PADDED_BINS, taps: [0, 1, 2] });
    const secondLayer = convolution(1, { outputs: 64, channels: 128, taps: [0, 1, 2] });
    // In the last two, only these taps reach a frame that is not padding.
    const thirdLayer = convolution(2, { outputs: 64, channels: 64, taps: [1, 2] });
    const fourthLayer = convolution(3, { outputs: 128, channels: 64, taps: [1] });
    const [, ...firstFrames] = framesOf(first, 128);
    const [, ...secondFrames] = framesOf(second, 64);
    this.#convolutions = [
      ...firstFrames.map((frame, index) => firstLayer.bind(null, spectra.subarray(index * PADDED_BINS), frame)),
      ...secondFrames.map((frame, index) => secondLayer.bind(null, first.subarray(index * 2 * 128), frame)),
      thirdLayer.bind(null, second.subarray(64), third),
      fourthLayer.bind(null, third, this.#lstmInput),
    ];

    const ofInput = weights.take('decoder.rnn.weight_ih', 4 * MEMORY * MEMORY);
    const ofHidden = weights.take('decoder.rnn.weight_hh', 4 * MEMORY * MEMORY);
    const [inputBias, hiddenBias] = ['ih', 'hh'].map((part) => weights.take(`decoder.rnn.bias_${part}`, 4 * MEMORY));
    this.#lstm = memory.layer({
      rows: Array.from({ length: 4 * MEMORY }, (_, gate) => {
        const row = new Float32Array(2 * MEMORY);
        row.set(ofInput.subarray(gate * MEMORY, (gate + 1) * MEMORY));
        row.set(ofHidden.subarray(gate * MEMORY, (gate + 1) * MEMORY), MEMORY);
        return row;
      }),
      biases: inputBias!.map((bias, gate) => bias + hiddenBias![gate]!),
      least: Number.NEGATIVE_INFINITY,
    });
    this.#outputWeights = weights.take('decoder.decoder.2.weight', MEMORY);
    this.#outputBias = weights.take('decoder.decoder.2.bias', 1)[0]!;
  }

  /** Speech probability of a window, 0 to 1. Takes 64 + 512 samples from -1 to 1. Allocates nothing. */
  probability(samples: Float32Array, memory: SileroMemory): number {
    this.#takeSpectra(samples);
    for (const convolve of this.#convolutions) convolve();
    this.#lstmInput.set(memory.hidden, MEMORY);
    this.#lstm(this.#lstmInput, this.#gates);
    return this.#remember(memory);
  }

  #takeSpectra(samples: Float32Array): void {
    const padded = this.#padded;
    padded.set(samples);
    // Mirrors the end, as in training.
    for (let i = INPUT_SAMPLES; i < padded.length; i++) padded[i] = samples[2 * INPUT_SAMPLES - 2 - i]!;
    for (let frame = 0; frame < SPECTRA; frame++) {
      for (let i = 0; i < FFT_SIZE; i++) this.#windowed[i] = padded[frame * HOP + i]! * HANN[i]!;
      this.#fft.powers(this.#windowed, this.#powers);
      const spectrum = this.#spectra[frame]!;
      for (let bin = 0; bin < BINS; bin++) spectrum[bin] = Math.sqrt(this.#powers[bin]!);
    }
  }

  /** LSTM gates in PyTorch's order: input, forget, cell, output. */
  #remember({ hidden, cell }: SileroMemory): number {
    const gates = this.#gates;
    let sum = this.#outputBias;
    for (let i = 0; i < MEMORY; i++) {
      const kept = sigmoid(gates[MEMORY + i]!) * cell[i]!;
      const added = sigmoid(gates[i]!) * Math.tanh(gates[2 * MEMORY + i]!);
      cell[i] = kept + added;
      hidden[i] = sigmoid(gates[3 * MEMORY + i]!) * Math.tanh(cell[i]!);
      sum += Math.max(0, hidden[i]!) * this.#outputWeights[i]!;
    }
    return sigmoid(sum);
  }
}

interface ConvolutionShape {
  outputs: number;
  channels: number;
  /** Default `channels`. */
  paddedChannels?: number;
  /** The computed ones of the three. */
  taps: readonly number[];
}

/** Rearranges the weights `[output][channel][tap]`: one row per output, by tap. */
function convolutionWeights(weights: SileroWeights, index: number, shape: ConvolutionShape) {
  const { outputs, channels, paddedChannels = channels, taps } = shape;
  const name = `encoder.${index}.reparam_conv`;
  const all = weights.take(`${name}.weight`, outputs * channels * TAPS);
  const rows = Array.from({ length: outputs }, (_, output) => {
    const row = new Float32Array(taps.length * paddedChannels);
    for (const [place, tap] of taps.entries()) {
      for (let channel = 0; channel < channels; channel++) {
        row[place * paddedChannels + channel] = all[(output * channels + channel) * TAPS + tap]!;
      }
    }
    return row;
  });
  return { rows, biases: weights.take(`${name}.bias`, outputs) };
}

function framesOf(floats: Float32Array, length: number): Float32Array[] {
  return Array.from({ length: floats.length / length }, (_, i) => floats.subarray(i * length, (i + 1) * length));
}

function sigmoid(value: number): number {
  return 1 / (1 + Math.exp(-value));
}

const HANN = Float32Array.from({ length: FFT_SIZE }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / FFT_SIZE));
