import { Resampler } from './resampler.ts';

/** Missing in TypeScript's library. */
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare const sampleRate: number;
declare function registerProcessor(
  name: string,
  processor: new (options: CaptureOptions) => AudioWorkletProcessor,
): void;

interface CaptureOptions {
  processorOptions: { sampleRateHz: number; frameMs: number };
}

/** Posts microphone audio as frames of 16-bit samples at the recognizer's rate. */
class Capture extends AudioWorkletProcessor {
  readonly #resampler: Resampler;
  readonly #frameSamples: number;
  #frame: Int16Array<ArrayBuffer>;
  #filled = 0;

  constructor({ processorOptions: { sampleRateHz, frameMs } }: CaptureOptions) {
    super();
    this.#resampler = new Resampler(sampleRate, sampleRateHz);
    this.#frameSamples = (sampleRateHz * frameMs) / 1_000;
    this.#frame = new Int16Array(this.#frameSamples);
  }

  process([channels]: Float32Array[][]): boolean {
    const [mono] = channels ?? [];
    if (mono === undefined) return true;
    for (const sample of this.#resampler.process(mono)) {
      this.#frame[this.#filled++] = Math.max(-1, Math.min(1, sample)) * 0x7fff;
      if (this.#filled === this.#frameSamples) this.#send();
    }
    return true;
  }

  #send(): void {
    this.port.postMessage(this.#frame, [this.#frame.buffer]);
    this.#frame = new Int16Array(this.#frameSamples);
    this.#filled = 0;
  }
}

registerProcessor('capture', Capture);
