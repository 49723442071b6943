/**
 * Conceals lost samples like ITU-T G.711 Appendix I: repeats the last pitch periods, one more every 10 ms, fades from
 * 10 ms to 60 ms, and blends into the following audio. Appendix I delays the audio by 3.75 ms to blend the start too;
 * here the first samples absorb the step. 16-bit samples at 8 or 16 kHz. Allocates only in the constructor.
 */

const MOST_PERIODS = 3;
const BLEND_PER_LOST = 0.4;

/** In samples. */
interface Lengths {
  /** Pitches from 66 Hz to 200 Hz (I.2.4). Shorter periods repeat twice or more. */
  shortestPeriod: number;
  longestPeriod: number;
  /** Comparison length for the last period: 20 ms. */
  compared: number;
  /** The most periods repeated, and a quarter of one for blending. */
  history: number;
  periodAddedEvery: number;
  fadesFrom: number;
  fadedAt: number;
  /** Blend into the following audio: 4 ms, and 4 ms more for each 10 ms lost, up to 10 ms. */
  shortestBlend: number;
  longestBlend: number;
}

function lengthsAt(samplesPerTick: 1 | 2): Lengths {
  const longestPeriod = 120 * samplesPerTick;
  return {
    shortestPeriod: 40 * samplesPerTick,
    longestPeriod,
    compared: 160 * samplesPerTick,
    history: MOST_PERIODS * longestPeriod + longestPeriod / 4,
    periodAddedEvery: 80 * samplesPerTick,
    fadesFrom: 80 * samplesPerTick,
    fadedAt: 480 * samplesPerTick,
    shortestBlend: 32 * samplesPerTick,
    longestBlend: 80 * samplesPerTick,
  };
}

export class LossConcealer {
  concealed = 0;
  readonly #lengths: Lengths;
  readonly #history: Float32Array;
  /** The history at the start of the loss, whose end is repeated. */
  readonly #source: Float32Array;
  /** The original last quarter of a period: each longer repetition blends it again. */
  readonly #lastQuarter: Float32Array;
  readonly #bridge: Float32Array;
  /** Samples since the loss began; 0 without one. */
  #lost = 0;
  #period: number;
  #quarter: number;
  #periods = 1;
  #offset = 0;
  #bridged = 0;
  #step = 0;
  #blendLength = 0;
  /** Samples left of the blend after a loss; 0 without one. */
  #blendLeft = 0;

  /** @param samplesPerTick 1 for 8 kHz and 2 for 16 kHz */
  constructor(samplesPerTick: 1 | 2 = 1) {
    this.#lengths = lengthsAt(samplesPerTick);
    const { history, longestPeriod, shortestPeriod } = this.#lengths;
    this.#history = new Float32Array(history);
    this.#source = new Float32Array(history);
    this.#lastQuarter = new Float32Array(longestPeriod / 4);
    this.#bridge = new Float32Array(longestPeriod / 4);
    this.#period = shortestPeriod;
    this.#quarter = shortestPeriod >> 2;
  }

  /** Adds received samples `from`..`to` of `frame`. Modifies the first of them after a loss. */
  addReceived(frame: Int16Array, from: number, to: number): void {
    if (this.#lost > 0 && this.#blendLeft === 0 && to > from) {
      this.#blendLength = Math.min(
        this.#lengths.longestBlend,
        this.#lengths.shortestBlend + Math.round(BLEND_PER_LOST * this.#lost),
      );
      this.#blendLeft = this.#blendLength;
    }
    for (let i = from; i < to && this.#blendLeft > 0; i++) {
      const weight = this.#blendLeft / (this.#blendLength + 1);
      frame[i] = Math.round(weight * this.#next() + (1 - weight) * frame[i]!);
      this.#blendLeft -= 1;
      if (this.#blendLeft === 0) this.#lost = 0;
    }
    this.#remember(frame, from, to);
  }

  /** Fills the lost samples `from`..`to` of `frame`. */
  conceal(frame: Int16Array, from: number, to: number): void {
    if (to <= from) return;
    if (this.#lost === 0) this.#begin();
    this.#blendLeft = 0;
    for (let i = from; i < to; i++) frame[i] = Math.max(-32_768, Math.min(32_767, Math.round(this.#next())));
    this.concealed += to - from;
    this.#remember(frame, from, to);
  }

  /** Blends the next samples in, because they do not continue the last ones. */
  bridge(): void {
    if (this.#lost > 0) return;
    this.#begin();
    this.#lost = 1;
  }

  #begin(): void {
    this.#source.set(this.#history);
    this.#period = pitchPeriod(this.#source, this.#lengths);
    this.#quarter = this.#period >> 2;
    this.#lastQuarter.set(this.#source.subarray(this.#lengths.history - this.#quarter));
    this.#periods = 1;
    this.#offset = 0;
    this.#bridged = this.#quarter;
    this.#step = this.#source[this.#lengths.history - 1]! - this.#source[this.#lengths.history - 1 - this.#period]!;
    this.#blendEnd();
  }

  /** The next sample of the repetition. */
  #next(): number {
    const lost = this.#lost;
    this.#lost = lost + 1;
    if (lost >= this.#lengths.fadedAt) return 0;
    if (lost > 0 && lost % this.#lengths.periodAddedEvery === 0 && this.#periods < MOST_PERIODS) this.#addPeriod();
    let sample = this.#repeated();
    const quarter = this.#quarter;
    if (this.#bridged < quarter) {
      const weight = (this.#bridged + 1) / (quarter + 1);
      sample = weight * sample + (1 - weight) * this.#bridge[this.#bridged]!;
      this.#bridged += 1;
    }
    if (lost < quarter) sample += this.#step * (1 - (lost + 1) / (quarter + 1));
    return lost < this.#lengths.fadesFrom
      ? sample
      : (sample * (this.#lengths.fadedAt - lost)) / (this.#lengths.fadedAt - this.#lengths.fadesFrom);
  }

  #repeated(): number {
    const length = this.#periods * this.#period;
    const sample = this.#source[this.#lengths.history - length + this.#offset]!;
    this.#offset = this.#offset + 1 === length ? 0 : this.#offset + 1;
    return sample;
  }

  /** Repeats one period more, in phase, after a transition of a quarter period. */
  #addPeriod(): void {
    for (let i = 0; i < this.#quarter; i++) this.#bridge[i] = this.#repeated();
    this.#offset = (this.#offset - this.#quarter + this.#periods * this.#period) % this.#period;
    this.#bridged = 0;
    this.#periods += 1;
    this.#blendEnd();
  }

  /** Blends the end of the repeated part into its start. */
  #blendEnd(): void {
    const quarter = this.#quarter;
    const before = this.#lengths.history - this.#periods * this.#period - quarter;
    for (let i = 0; i < quarter; i++) {
      const weight = (i + 1) / (quarter + 1);
      this.#source[this.#lengths.history - quarter + i] =
        (1 - weight) * this.#lastQuarter[i]! + weight * this.#source[before + i]!;
    }
  }

  #remember(frame: Int16Array, from: number, to: number): void {
    const history = this.#history;
    const count = Math.min(this.#lengths.history, to - from);
    history.copyWithin(0, count);
    for (let i = 0; i < count; i++) history[this.#lengths.history - count + i] = frame[to - count + i]!;
  }
}

/** The lag at which the end of the history best matches the audio before it. */
function pitchPeriod(history: Float32Array, lengths: Lengths): number {
  const start = lengths.history - lengths.compared;
  let best = lengths.longestPeriod;
  let bestScore = 0;
  for (let lag = lengths.shortestPeriod; lag <= lengths.longestPeriod; lag++) {
    let likeness = 0;
    let energy = 1;
    for (let i = start; i < lengths.history; i++) {
      const earlier = history[i - lag]!;
      likeness += history[i]! * earlier;
      energy += earlier * earlier;
    }
    const score = likeness > 0 ? (likeness * likeness) / energy : 0;
    if (score > bestScore) {
      best = lag;
      bestScore = score;
    }
  }
  return best;
}
