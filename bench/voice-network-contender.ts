import { createRequire } from 'node:module';
import { publishedModelFile, SileroNetworks } from '../media/listening/silero-network.ts';
import { WINDOW_SAMPLES } from '../media/listening/windows.ts';
import { spokenUtterances, withNoise } from '../test/speech/spoken.ts';

/** Runs one implementation of the network on the same human speech, in a process of its own. */

export type VoiceContender = 'tandem' | 'sherpa-onnx';

export interface VoiceContenderResult {
  speechSeconds: number;
  cpuMs: number;
  /** One character per window: `#` for speech. */
  verdicts: string;
  memoryMb: number;
}

const ROUNDS = 8;
const hears = process.argv[2] === 'sherpa-onnx' ? listenBySherpa() : await listenByTandem();
const samples = Float32Array.from(
  spokenUtterances().flatMap((utterance, index) => [...withNoise(utterance.samples, 5, index)]),
);
const windows = Array.from({ length: Math.floor(samples.length / WINDOW_SAMPLES) }, (_, index) =>
  samples.subarray(index * WINDOW_SAMPLES, (index + 1) * WINDOW_SAMPLES),
);
const verdicts = windows.map((window) => (hears(window) ? '#' : '.')).join('');
const before = process.cpuUsage();
for (let round = 0; round < ROUNDS; round++) for (const window of windows) hears(window);
const { user, system } = process.cpuUsage(before);
process.send?.({
  speechSeconds: (ROUNDS * windows.length * WINDOW_SAMPLES) / 16_000,
  cpuMs: (user + system) / 1000,
  verdicts,
  memoryMb: process.memoryUsage.rss() / 1e6,
} satisfies VoiceContenderResult);

async function listenByTandem(): Promise<(window: Float32Array) => boolean> {
  const network = (await SileroNetworks.load()).create();
  if (network === null) throw new Error('no voice network');
  return (window) => network.isSpeech(window);
}

/** Shortest durations, so that both decide by the thresholds alone. */
function listenBySherpa(): (window: Float32Array) => boolean {
  const { Vad } = createRequire(import.meta.url)('sherpa-onnx-node');
  const thresholds = { threshold: 0.5, minSpeechDuration: 0.001, minSilenceDuration: 0.001, maxSpeechDuration: 3600 };
  const sileroVad = { model: publishedModelFile(), windowSize: WINDOW_SAMPLES, ...thresholds };
  const vad = new Vad({ sileroVad, sampleRate: 16_000, numThreads: 1, debug: false }, 1);
  vad.acceptWaveform(new Float32Array(64));
  const scaled = new Float32Array(WINDOW_SAMPLES);
  return (window) => {
    for (let i = 0; i < WINDOW_SAMPLES; i++) scaled[i] = window[i]! / 32_768;
    vad.acceptWaveform(scaled);
    const isSpeech: boolean = vad.isDetected();
    if (isSpeech) {
      vad.flush();
      vad.clear();
    }
    return isSpeech;
  };
}
