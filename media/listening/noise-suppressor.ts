import type { Rnnoise } from '@echogarden/rnnoise-wasm';
import { RECOGNITION_RATE_HZ } from '../../machines/utterances.ts';
import { Resampler } from '../dsp/resample.ts';

/** RNNoise processes frames of 10 ms at 48 kHz, with a delay of one frame. */
const RATE_HZ = 48_000;
const FRAME_SAMPLES = 480;
/** At 16 kHz. */
const BLOCK_SAMPLES = 512;

/** Creates noise suppressors. If RNNoise cannot be loaded, none are available and `problem` has the reason. */
export class NoiseSuppressors {
  /** Null if available. */
  readonly problem: string | null;
  readonly #rnnoise: Rnnoise | null;

  private constructor(rnnoise: Rnnoise | null, problem: string | null) {
    this.#rnnoise = rnnoise;
    this.problem = problem;
  }

  static async load(): Promise<NoiseSuppressors> {
    try {
      const { default: init } = await import('@echogarden/rnnoise-wasm');
      return new NoiseSuppressors(await init(), null);
    } catch (error) {
      return new NoiseSuppressors(null, error instanceof Error ? error.message : String(error));
    }
  }

  open(): NoiseSuppressor | null {
    return this.#rnnoise === null ? null : new NoiseSuppressor(this.#rnnoise);
  }
}

/** Removes noise from one stream at 16 kHz. Emits each sample, with a delay, in its original and its denoised form. */
export class NoiseSuppressor {
  readonly #rnnoise: Rnnoise;
  readonly #state: number;
  /** In the memory of RNNoise: an input frame, followed by an output frame. */
  readonly #frame: number;
  readonly #up = new Resampler(RECOGNITION_RATE_HZ, RATE_HZ);
  readonly #down = new Resampler(RATE_HZ, RECOGNITION_RATE_HZ);
  readonly #wide = new Float32Array(this.#up.outputBound(BLOCK_SAMPLES));
  readonly #frameOut = new Float32Array(FRAME_SAMPLES);
  readonly #narrow = new Float32Array(this.#down.outputBound(FRAME_SAMPLES));
  readonly #waiting: SampleQueue = new SampleQueue();
  #frameFilled = 0;
  #isFirstFrame = true;

  constructor(rnnoise: Rnnoise) {
    this.#rnnoise = rnnoise;
    this.#state = rnnoise._rnnoise_create(0);
    this.#frame = rnnoise._malloc(2 * 4 * FRAME_SAMPLES);
  }

  /** Calls `emit` for every finished sample, in order. */
  push(samples: Float32Array, count: number, emit: (sample: number, quiet: number) => void): void {
    this.#waiting.push(samples, count);
    for (let at = 0; at < count; at += BLOCK_SAMPLES) {
      const length = Math.min(BLOCK_SAMPLES, count - at);
      const widened = this.#up.process(samples.subarray(at, at + length), length, this.#wide);
      for (let taken = 0; taken < widened; ) {
        const missing = Math.min(FRAME_SAMPLES - this.#frameFilled, widened - taken);
        this.#fillFrame(taken, missing);
        taken += missing;
        if (this.#frameFilled === FRAME_SAMPLES) this.#takeFrame(emit);
      }
    }
  }

  /** Emits the remaining samples and frees the memory of RNNoise. Ends the stream. */
  finish(emit: (sample: number, quiet: number) => void): void {
    const expected = this.#waiting.length;
    let given = 0;
    const count = (sample: number, quiet: number): void => {
      if (given++ < expected) emit(sample, quiet);
    };
    const silence = new Float32Array(BLOCK_SAMPLES);
    while (given < expected) this.push(silence, BLOCK_SAMPLES, count);
    this.close();
  }

  close(): void {
    this.#rnnoise._rnnoise_destroy(this.#state);
    this.#rnnoise._free(this.#frame);
  }

  #fillFrame(from: number, count: number): void {
    // Read the view each time: opening another stream may move the memory.
    this.#rnnoise.HEAPF32.set(this.#wide.subarray(from, from + count), this.#frame / 4 + this.#frameFilled);
    this.#frameFilled += count;
  }

  #takeFrame(emit: (sample: number, quiet: number) => void): void {
    this.#frameFilled = 0;
    const memory = this.#rnnoise.HEAPF32;
    const output = this.#frame / 4 + FRAME_SAMPLES;
    this.#rnnoise._rnnoise_process_frame(this.#state, 4 * output, this.#frame);
    const isFirst = this.#isFirstFrame;
    this.#isFirstFrame = false;
    if (isFirst) return;
    this.#frameOut.set(memory.subarray(output, output + FRAME_SAMPLES));
    const narrowed = this.#down.process(this.#frameOut, FRAME_SAMPLES, this.#narrow);
    for (let i = 0; i < narrowed; i++) emit(this.#waiting.shift(), this.#narrow[i]!);
  }
}

class SampleQueue {
  #samples = new Float32Array(4 * BLOCK_SAMPLES);
  #start = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(samples: Float32Array, count: number): void {
    if (this.#length + count > this.#samples.length) this.#grow(this.#length + count);
    const size = this.#samples.length;
    for (let i = 0; i < count; i++) this.#samples[(this.#start + this.#length + i) % size] = samples[i]!;
    this.#length += count;
  }

  shift(): number {
    const sample = this.#samples[this.#start]!;
    this.#start = (this.#start + 1) % this.#samples.length;
    this.#length -= 1;
    return sample;
  }

  #grow(least: number): void {
    const larger = new Float32Array(2 * least);
    for (let i = 0; i < this.#length; i++) larger[i] = this.#samples[(this.#start + i) % this.#samples.length]!;
    this.#samples = larger;
    this.#start = 0;
  }
}
