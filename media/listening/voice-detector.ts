import { NoiseFloor, SILENCE_POWER } from '../dsp/noise-floor.ts';
import { TonalityMeter } from '../dsp/tonality.ts';
import type { SileroNetwork } from './silero-network.ts';
import { type WindowKind, windowsIn } from './windows.ts';

/**
 * Classifies the windows of a channel. Speech exceeds the background, is not steady tones, and is a voice to the neural
 * network. Without one, it must exceed the background clearly.
 */

/** Tonal share of the power over a quarter of a second, or over an eighth. */
const TONAL_SHARE_LONG = 0.65;
const TONAL_SHARE_SHORT = 0.85;
const LONG_WINDOWS = 8;
const SHORT_WINDOWS = 4;
/** Required ratio over the background without a network: 9 dB. */
const CLEAR_RATIO = 8;

/** The end of a DTMF digit is not speech either. */
const AFTER_DTMF_WINDOWS = 3;
const AUDIBLE_AFTER_RISE_WINDOWS = windowsIn(500);

export class VoiceDetector {
  readonly #network: SileroNetwork | null;
  readonly #floor = new NoiseFloor();
  readonly #tonality = new TonalityMeter();
  /** Tonal shares of the last windows; 0 for silent ones. */
  readonly #shares = new Float64Array(LONG_WINDOWS);
  #windows = 0;
  #audibleWindows = 0;
  #dtmfWindows = 0;
  #isAfterTone = false;

  constructor(network: SileroNetwork | null) {
    this.#network = network;
  }

  /** Classifies the next window, in 16-bit scale, given its mean power. Allocates nothing. */
  judge(window: Float32Array, power: number): WindowKind {
    const isAudible = this.#isAudible(power);
    const isTonal = this.#isTonal(window, power);
    if (isTonal) {
      this.#isAfterTone = true;
      return 'tone';
    }
    if (!isAudible) return 'background';
    const isVoice = this.#network === null ? this.#isClear(power) : this.#detectsVoice(this.#network, window);
    return isVoice ? 'speech' : 'background';
  }

  /** After a loud tone, the network takes speech for more of the tone, so it is reset. */
  #detectsVoice(network: SileroNetwork, window: Float32Array): boolean {
    if (this.#isAfterTone) network.reset();
    this.#isAfterTone = false;
    return network.isSpeech(window);
  }

  #isClear(power: number): boolean {
    return power > this.#floor.power * CLEAR_RATIO;
  }

  /** Includes the quiet syllables between loud ones, which only the network can distinguish from noise. */
  #isAudible(power: number): boolean {
    if (this.#floor.rises(power)) this.#audibleWindows = AUDIBLE_AFTER_RISE_WINDOWS;
    else this.#audibleWindows -= 1;
    return this.#audibleWindows > 0 && power > SILENCE_POWER;
  }

  #isTonal(window: Float32Array, power: number): boolean {
    const isSounding = power > SILENCE_POWER;
    this.#shares[this.#windows % LONG_WINDOWS] = isSounding ? this.#tonality.add(window) : 0;
    this.#windows += 1;
    if (isSounding && this.#tonality.isDtmf) this.#dtmfWindows = AFTER_DTMF_WINDOWS;
    else this.#dtmfWindows -= 1;
    if (this.#dtmfWindows > 0) return true;
    return this.#meanShare(LONG_WINDOWS) > TONAL_SHARE_LONG || this.#meanShare(SHORT_WINDOWS) > TONAL_SHARE_SHORT;
  }

  #meanShare(windows: number): number {
    let sum = 0;
    for (let back = 1; back <= windows; back++)
      sum += this.#shares[(this.#windows - back + LONG_WINDOWS) % LONG_WINDOWS]!;
    return sum / windows;
  }
}
