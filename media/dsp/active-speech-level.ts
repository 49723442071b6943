import { SILENCE_DBOV } from './level.ts';

/**
 * Active speech level by method B of ITU-T P.56 (clause 5): long-term power over the time in which the envelope is, or
 * recently was, near that level.
 */
export class ActiveSpeechLevel {
  readonly #smoothing: number;
  /** The slow envelope is not checked at every sample; P.56 requires at least 600 checks a second. */
  readonly #samplesPerLook: number;
  readonly #hangoverLooks: number;
  /** By threshold: active checks, and checks since the envelope was above it. */
  readonly #activeLooks = new Float64Array(THRESHOLDS.length);
  readonly #looksBelow: Float64Array;
  #samples = 0;
  #energy = 0;
  #smoothed = 0;
  #envelope = 0;

  constructor(sampleRateHz: number) {
    this.#smoothing = Math.exp(-1 / (sampleRateHz * TIME_CONSTANT_S));
    this.#samplesPerLook = Math.max(1, Math.floor(sampleRateHz / LOOKS_PER_SECOND));
    this.#hangoverLooks = Math.ceil((HANGOVER_S * sampleRateHz) / this.#samplesPerLook);
    this.#looksBelow = new Float64Array(THRESHOLDS.length).fill(this.#hangoverLooks);
  }

  /** Adds the next `count` samples, between -1 and 1. Allocates nothing. */
  add(samples: Float32Array, count: number): void {
    const keep = this.#smoothing;
    // Local variables, because field access would dominate over an hour of samples.
    let energy = this.#energy;
    let smoothed = this.#smoothed;
    let envelope = this.#envelope;
    let untilLook = this.#samplesPerLook - (this.#samples % this.#samplesPerLook);
    for (let i = 0; i < count; i++) {
      const sample = samples[i]!;
      energy += sample * sample;
      smoothed = keep * smoothed + (1 - keep) * Math.abs(sample);
      envelope = keep * envelope + (1 - keep) * smoothed;
      untilLook -= 1;
      if (untilLook > 0) continue;
      untilLook = this.#samplesPerLook;
      this.#look(envelope);
      if (envelope < INAUDIBLE) {
        // Prevents slow denormal numbers.
        smoothed = 0;
        envelope = 0;
      }
    }
    this.#energy = energy;
    this.#smoothed = smoothed;
    this.#envelope = envelope;
    this.#samples += count;
  }

  /** In dBov; `SILENCE_DBOV` without speech. */
  get levelDbov(): number {
    return this.#measure().levelDbov;
  }

  /** Speech share of the time, 0 to 1. */
  get activity(): number {
    return this.#measure().activity;
  }

  #look(envelope: number): void {
    for (let j = 0; j < THRESHOLDS.length; j++) {
      if (envelope >= THRESHOLDS[j]!) {
        this.#looksBelow[j] = 0;
      } else if (this.#looksBelow[j]! < this.#hangoverLooks) {
        this.#looksBelow[j] = this.#looksBelow[j]! + 1;
      } else {
        continue;
      }
      this.#activeLooks[j] = this.#activeLooks[j]! + 1;
    }
  }

  /** Interpolates between the two thresholds where level and threshold are the margin apart. */
  #measure(): { levelDbov: number; activity: number } {
    const looks = this.#samples / this.#samplesPerLook;
    const longTermDbov = 10 * Math.log10(this.#energy / this.#samples);
    let before: { levelDbov: number; aboveDb: number } | null = null;
    for (let j = 0; j < THRESHOLDS.length; j++) {
      const active = this.#activeLooks[j]!;
      if (active === 0) break;
      const levelDbov = longTermDbov + 10 * Math.log10(looks / active);
      const aboveDb = levelDbov - 20 * Math.log10(THRESHOLDS[j]!) - MARGIN_DB;
      if (aboveDb <= 0) {
        const part = before === null ? 1 : before.aboveDb / (before.aboveDb - aboveDb);
        const found = before === null ? levelDbov : before.levelDbov + part * (levelDbov - before.levelDbov);
        if (found < SILENCE_DBOV) break;
        return { levelDbov: found, activity: Math.min(1, 10 ** ((longTermDbov - found) / 10)) };
      }
      before = { levelDbov, aboveDb };
    }
    return { levelDbov: SILENCE_DBOV, activity: 0 };
  }
}

/** P.56, table 1. */
const TIME_CONSTANT_S = 0.03;
const HANGOVER_S = 0.2;
const MARGIN_DB = 15.9;
const LOOKS_PER_SECOND = 1000;
const INAUDIBLE = 1e-9;

/** Powers of two of full scale, from the smallest 16-bit step up. */
const THRESHOLDS = Float64Array.from({ length: 15 }, (_, j) => 2 ** (j - 15));
