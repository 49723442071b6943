import { SILENCE_POWER } from '../dsp/noise-floor.ts';
import { TonalityMeter } from '../dsp/tonality.ts';

/**
 * Detects speech and pauses by level, in windows of 32 ms, at a cost that suits every call. Ignores network tones and
 * steady music.
 */

export const CADENCE_WINDOW_SAMPLES = 256;
export const CADENCE_WINDOW_MS = 32;
/** Two and a half seconds. */
const MEMORY_WINDOWS = 80;
/** Power of the loudest sample relative to its window. Voices stay below, clicks exceed it. */
const CLICK_CREST = 40;
/** A voice exceeds the background by 6 dB. */
const RISE = 4;
/** Sound 22 dB below the loudest parts is background. */
const BELOW_PEAK = 10 ** -2.2;
/** Decay of the peak: 4 dB a second. */
const PEAK_DECAY = 0.97;
/** Fewer windows are a click; a cough is hardly longer. */
const ONSET_WINDOWS = 3;
/** Shorter pauses occur within and between words. */
const JOINED_WINDOWS = 6;
/** As in `VoiceDetector`. */
const TONAL_SHARE_LONG = 0.65;
const TONAL_SHARE_SHORT = 0.85;
const LONG_WINDOWS = 8;
const SHORT_WINDOWS = 4;
/** Time to recognise a tone. Sound before that does not count as voice. */
const TONE_KNOWN_WINDOWS = 12;

export interface CadenceWindow {
  /** Mean square, in 16-bit steps. */
  power: number;
  /** Weaker sound is not voice. */
  leastPower: number;
  isTone: boolean;
}

export class VoiceCadence {
  /** Voice since the first word, including short pauses; 0 before. */
  voicedMs = 0;
  restMs = 0;
  readonly #tonality = new TonalityMeter();
  readonly #powers = new Float64Array(MEMORY_WINDOWS).fill(Number.POSITIVE_INFINITY);
  readonly #shares = new Float64Array(LONG_WINDOWS);
  readonly #doubled = new Float32Array(2 * CADENCE_WINDOW_SAMPLES);
  #windows = 0;
  #peak = 0;
  #previousPower = 0;
  #previousSample = 0;
  #run = 0;
  #restWindows = 0;

  /** Whether a sound has begun, maybe too short for a word. */
  get isRising(): boolean {
    return this.#run > 0;
  }

  /** Forgets the voice so far: too short for a word. */
  forget(): void {
    this.voicedMs = 0;
  }

  /** Analyses a window. Allocates nothing. */
  add(samples: Int16Array, window: CadenceWindow): void {
    const { power, leastPower, isTone } = window;
    const isTonal = this.#isTonal(samples, power);
    const isLoud = this.#isLoud(power) && power > leastPower && !isClick(samples, power);
    this.#windows += 1;
    if (!isLoud) this.#addRest();
    else if (isTonal || isTone) this.#addTone();
    else this.#addVoice();
  }

  #addVoice(): void {
    this.#run += 1;
    const isJoined = this.voicedMs > 0 && this.#restWindows <= JOINED_WINDOWS;
    if (!isJoined && this.#run < ONSET_WINDOWS) {
      this.#rest(this.#restWindows + 1);
      return;
    }
    this.voicedMs += (isJoined ? this.#restWindows + 1 : ONSET_WINDOWS) * CADENCE_WINDOW_MS;
    this.#rest(0);
  }

  #addRest(): void {
    this.#run = 0;
    this.#rest(this.#restWindows + 1);
  }

  /** Neither voice nor pause: a person does not wait while music plays. */
  #addTone(): void {
    this.#run = 0;
    this.#rest(0);
    if (this.voicedMs <= TONE_KNOWN_WINDOWS * CADENCE_WINDOW_MS) this.voicedMs = 0;
  }

  #rest(windows: number): void {
    this.#restWindows = windows;
    this.restMs = windows * CADENCE_WINDOW_MS;
  }

  /** The threshold lies between the background and the peak of the last seconds. */
  #isLoud(power: number): boolean {
    this.#powers[this.#windows % MEMORY_WINDOWS] = power;
    let floor = Number.POSITIVE_INFINITY;
    for (let i = 0; i < MEMORY_WINDOWS; i++) floor = Math.min(floor, this.#powers[i]!);
    // A click is loud for only one window.
    this.#peak = Math.max(this.#peak * PEAK_DECAY, Math.min(power, this.#previousPower));
    this.#previousPower = power;
    const middle = Math.sqrt(floor * this.#peak);
    return power > Math.max(SILENCE_POWER, floor * RISE, this.#peak * BELOW_PEAK, middle);
  }

  #isTonal(samples: Int16Array, power: number): boolean {
    const slot = this.#windows % LONG_WINDOWS;
    this.#shares[slot] = power > SILENCE_POWER ? this.#tonality.add(this.#at16kHz(samples)) : 0;
    if (power > SILENCE_POWER && this.#tonality.isDtmf) return true;
    return this.#meanShare(LONG_WINDOWS) > TONAL_SHARE_LONG || this.#meanShare(SHORT_WINDOWS) > TONAL_SHARE_SHORT;
  }

  #meanShare(windows: number): number {
    let sum = 0;
    for (let back = 0; back < windows; back++) {
      sum += this.#shares[(this.#windows - back + LONG_WINDOWS) % LONG_WINDOWS]!;
    }
    return sum / windows;
  }

  /** Linear interpolation. Its images above 4 kHz are weak. */
  #at16kHz(samples: Int16Array): Float32Array {
    let previous = this.#previousSample;
    for (let i = 0; i < CADENCE_WINDOW_SAMPLES; i++) {
      const sample = samples[i]!;
      this.#doubled[2 * i] = (previous + sample) / 2;
      this.#doubled[2 * i + 1] = sample;
      previous = sample;
    }
    this.#previousSample = previous;
    return this.#doubled;
  }
}

function isClick(samples: Int16Array, power: number): boolean {
  let peak = 0;
  for (let i = 0; i < samples.length; i++) peak = Math.max(peak, Math.abs(samples[i]!));
  return peak * peak > CLICK_CREST * power;
}
