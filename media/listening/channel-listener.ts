import type { UtteranceMessage } from '../../machines/utterances.ts';
import { powerToDbov, SILENCE_DBOV } from '../dsp/level.ts';
import type { AudioEnhancement } from '../listening-plane.ts';
import type { NoiseSuppressors } from './noise-suppressor.ts';
import type { SegmentationRules } from './segmentation-rules.ts';
import type { SileroNetwork } from './silero-network.ts';
import { SpeechFront } from './speech-front.ts';
import { UtteranceSegmenter } from './utterance-segmenter.ts';
import { VoiceDetector } from './voice-detector.ts';
import { WINDOW_SAMPLES } from './windows.ts';

interface ChannelListenerOptions {
  channel: number;
  sampleRateHz: number;
  rules: SegmentationRules;
  enhancement: AudioEnhancement;
  network: SileroNetwork | null;
  suppressors: NoiseSuppressors;
  nextUtteranceId: () => number;
  post: (message: UtteranceMessage) => void;
  onSpeechStarted: (utteranceId: number, atMs: number) => void;
}

/** Processes one channel from samples to utterances. */
export class ChannelListener {
  readonly front: SpeechFront;
  readonly segmenter: UtteranceSegmenter;
  readonly #detector: VoiceDetector;
  #loudestPower = 0;

  constructor(options: ChannelListenerOptions) {
    this.#detector = new VoiceDetector(options.network);
    this.segmenter = new UtteranceSegmenter(options);
    this.front = new SpeechFront({ ...options, sink: (original, improved) => this.#analyse(original, improved) });
  }

  get durationMs(): number {
    return this.front.samples / 16;
  }

  get peakDbov(): number {
    return this.#loudestPower === 0 ? SILENCE_DBOV : powerToDbov(this.#loudestPower);
  }

  finish(): void {
    this.front.finish();
    this.segmenter.finish(this.durationMs);
  }

  close(): void {
    this.front.close();
  }

  #analyse(original: Float32Array, improved: Int16Array): void {
    let power = 0;
    for (let i = 0; i < WINDOW_SAMPLES; i++) power += original[i]! * original[i]!;
    power /= WINDOW_SAMPLES;
    if (power > this.#loudestPower) this.#loudestPower = power;
    this.segmenter.add(improved, power, this.#detector.judge(original, power));
    if (this.front.isAdaptive) this.front.adaptTo(this.segmenter.runningSnrDb());
  }
}
