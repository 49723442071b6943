/**
 * One band of G.722: ADPCM with a predictor of two poles and six zeros (ITU-T G.722 clauses 6.2.1 to 6.2.4). As there,
 * arithmetic has 16 bits, saturates after every addition and keeps the upper half of products. Names are those of
 * clause 6.
 */

export class SubBand {
  readonly #initialStep: number;
  /** DETL or DETH. */
  #step: number;
  /** NBL or NBH: the logarithm of the step. */
  #logStep = 0;
  /** Predictions: of the zeros (SZ) and of both sections (S). */
  #zeroPrediction = 0;
  #prediction = 0;
  /** A1 and A2. */
  #pole1 = 0;
  #pole2 = 0;
  /** P and R, one and two samples ago. */
  #partial1 = 0;
  #partial2 = 0;
  #reconstructed1 = 0;
  /** B1 to B6, and twice the differences D of the last six samples, saturated, newest first. */
  readonly #zeros = new Int32Array(6);
  readonly #doubled = new Int32Array(6);

  constructor(initialStep: number) {
    this.#initialStep = initialStep;
    this.#step = initialStep;
  }

  reset(): void {
    this.#step = this.#initialStep;
    this.#logStep = 0;
    this.#zeroPrediction = 0;
    this.#prediction = 0;
    this.#pole1 = 0;
    this.#pole2 = 0;
    this.#partial1 = 0;
    this.#partial2 = 0;
    this.#reconstructed1 = 0;
    this.#zeros.fill(0);
    this.#doubled.fill(0);
  }

  /** Encodes a 15-bit sample of the lower band to 6 bits. */
  encodeLow(sample: number): number {
    // SUBTRA, QUANTL
    const error = saturated(sample - this.#prediction);
    const magnitude = error >= 0 ? error : ~error;
    const step = this.#step;
    // Binary search: decision levels increase, and so do their products.
    let level = 0;
    for (let stride = 16; stride > 0; stride >>= 1) {
      const probe = level + stride;
      if (probe < 30 && magnitude >= product(LOW_DECISIONS[probe]!, step)) level = probe;
    }
    const code = (error >= 0 ? LOW_POSITIVE_CODE : LOW_NEGATIVE_CODE)[level]!;
    this.#adaptLow(code);
    return code;
  }

  /** Decodes 6 bits to a sample of the lower band, which may exceed 15 bits. */
  decodeLow(code: number, mode: 1 | 2 | 3): number {
    const level = mode === 1 ? LOW_LEVELS_6[code]! : mode === 2 ? LOW_LEVELS_5[code >> 1]! : LOW_LEVELS_4[code >> 2]!;
    const sample = saturated(this.#prediction + product(level, this.#step));
    this.#adaptLow(code);
    return sample;
  }

  /** Encodes a 15-bit sample of the higher band to 2 bits. */
  encodeHigh(sample: number): number {
    // SUBTRA, QUANTH
    const error = saturated(sample - this.#prediction);
    const magnitude = error >= 0 ? error : ~error;
    const isLarge = magnitude >= product(HIGH_DECISION, this.#step);
    const code = error >= 0 ? (isLarge ? 2 : 3) : isLarge ? 0 : 1;
    this.#adaptHigh(code);
    return code;
  }

  /** Decodes 2 bits to a sample of the higher band, which may exceed 15 bits. */
  decodeHigh(code: number): number {
    return this.#adaptHigh(code);
  }

  #adaptLow(code: number): void {
    // INVQAL, LOGSCL, SCALEL
    const coarse = code >> 2;
    const difference = product(LOW_LEVELS_4[coarse]!, this.#step);
    const logStep = product(this.#logStep, 32_512) + LOW_LOG_STEPS[coarse]!;
    this.#logStep = logStep < 0 ? 0 : Math.min(logStep, 18_432);
    this.#step = stepOf(this.#logStep, 8);
    this.#predict(difference);
  }

  #adaptHigh(code: number): number {
    // INVQAH, LOGSCH, SCALEH
    const difference = product(HIGH_LEVELS[code]!, this.#step);
    const logStep = product(this.#logStep, 32_512) + HIGH_LOG_STEPS[code]!;
    this.#logStep = logStep < 0 ? 0 : Math.min(logStep, 22_528);
    this.#step = stepOf(this.#logStep, 10);
    return this.#predict(difference);
  }

  /** Adapts the predictor and returns the reconstructed sample: RECONS to PREDIC. */
  #predict(difference: number): number {
    const reconstructed = saturated(this.#prediction + difference);
    const partial = saturated(this.#zeroPrediction + difference);
    const zeroPrediction = this.#adaptZeros(difference);
    const isLike1 = (partial ^ this.#partial1) >= 0;
    const isLike2 = (partial ^ this.#partial2) >= 0;
    // UPPOL2
    const quadruple = saturated(this.#pole1 << 2);
    const pull = (isLike1 ? saturated(-quadruple) : quadruple) >> 7;
    const pole2 = clamped(pull + (isLike2 ? 128 : -128) + product(this.#pole2, 32_512), 12_288);
    // UPPOL1
    const pole1 = clamped((isLike1 ? 192 : -192) + product(this.#pole1, 32_640), 15_360 - pole2);
    // FILTEP, PREDIC
    const poles = product(pole1, saturated(2 * reconstructed)) + product(pole2, saturated(2 * this.#reconstructed1));
    this.#prediction = saturated(saturated(poles) + zeroPrediction);
    this.#zeroPrediction = zeroPrediction;
    this.#pole1 = pole1;
    this.#pole2 = pole2;
    this.#partial2 = this.#partial1;
    this.#partial1 = partial;
    this.#reconstructed1 = reconstructed;
    return reconstructed;
  }

  /** Adapts the zeros and returns their prediction of the next sample: UPZERO, DELAYA, FILTEZ. */
  #adaptZeros(difference: number): number {
    const zeros = this.#zeros;
    const doubled = this.#doubled;
    const nudge = difference === 0 ? 0 : 128;
    let newer = saturated(2 * difference);
    let prediction = 0;
    let overflow = 0;
    // Newest to oldest, the reverse of the recommendation. The sum differs only if a partial sum overflows.
    for (let i = 0; i < 6; i++) {
      const old = doubled[i]!;
      // At most 32 767 less a 256th plus 128, which is 32 767, so no saturation.
      const zero = product(zeros[i]!, 32_640) + ((old ^ difference) >= 0 ? nudge : -nudge);
      zeros[i] = zero;
      doubled[i] = newer;
      const part = product(zero, newer);
      prediction += part;
      overflow |= (part + 5461) >>> 0 > 10_922 ? 1 : 0;
      newer = old;
    }
    return overflow === 0 ? prediction : this.#saturatedZeroPrediction();
  }

  /** FILTEZ, saturated after every addition. */
  #saturatedZeroPrediction(): number {
    let prediction = 0;
    for (let i = 5; i >= 0; i--) prediction = saturated(prediction + product(this.#zeros[i]!, this.#doubled[i]!));
    return prediction;
  }
}

function saturated(value: number): number {
  return (value << 16) >> 16 === value ? value : value < 0 ? -32_768 : 32_767;
}

function clamped(value: number, most: number): number {
  return value > most ? most : Math.max(value, -most);
}

/** Upper 16 bits of the product of two fractions. */
function product(a: number, b: number): number {
  return Math.imul(a, b) >> 15;
}

/** SCALEL, SCALEH: 2 to the power of a logarithm with 11 fraction bits. */
function stepOf(logStep: number, exponent: number): number {
  const mantissa = MANTISSAS[(logStep >> 6) & 31]!;
  const shift = exponent - (logStep >> 11);
  return (shift < 0 ? mantissa << -shift : mantissa >> shift) << 2;
}

/** Table 15 (ILB): 2048 times 2 to the power of i/32. */
const MANTISSAS = Int32Array.of(
  2048,
  2093,
  2139,
  2186,
  2233,
  2282,
  2332,
  2383,
  2435,
  2489,
  2543,
  2599,
  2656,
  2714,
  2774,
  2834,
  2896,
  2960,
  3025,
  3091,
  3158,
  3228,
  3298,
  3371,
  3444,
  3520,
  3597,
  3676,
  3756,
  3838,
  3922,
  4008,
);

/** Decision levels of the 60-level quantiser (LL6, Table 14), times 8. */
const LOW_DECISIONS = timesEight([
  0, 35, 72, 110, 150, 190, 233, 276, 323, 370, 422, 473, 530, 587, 650, 714, 786, 858, 940, 1023, 1121, 1219, 1339,
  1458, 1612, 1765, 1980, 2195, 2557, 2919,
]);

/** By decision interval of the error. The two lowest negative codes are unused (0 to 3, Table 14). */
const LOW_NEGATIVE_CODE = Int32Array.from({ length: 30 }, (_, level) => (level < 2 ? 63 - level : 33 - level));
const LOW_POSITIVE_CODE = Int32Array.from({ length: 30 }, (_, level) => 61 - level);

/** Output levels by code (QQ6, QQ5 and QQ4, Tables 14 and 18), times 8 and signed. */
const LOW_LEVELS_6 = timesEight([
  -17, -17, -17, -17, -3101, -2738, -2376, -2088, -1873, -1689, -1535, -1399, -1279, -1170, -1072, -982, -899, -822,
  -750, -682, -618, -558, -501, -447, -396, -347, -300, -254, -211, -170, -130, -91, 3101, 2738, 2376, 2088, 1873, 1689,
  1535, 1399, 1279, 1170, 1072, 982, 899, 822, 750, 682, 618, 558, 501, 447, 396, 347, 300, 254, 211, 170, 130, 91, 54,
  17, -54, -17,
]);
const LOW_LEVELS_5 = timesEight([
  -35, -35, -2919, -2195, -1765, -1458, -1219, -1023, -858, -714, -587, -473, -370, -276, -190, -110, 2919, 2195, 1765,
  1458, 1219, 1023, 858, 714, 587, 473, 370, 276, 190, 110, 35, -35,
]);
const LOW_LEVELS_4 = timesEight([
  0, -2557, -1612, -1121, -786, -530, -323, -150, 2557, 1612, 1121, 786, 530, 323, 150, 0,
]);

/** WL by the upper four bits of a code (Table 16). */
const LOW_LOG_STEPS = Int32Array.of(-60, 3042, 1198, 538, 334, 172, 58, -30, 3042, 1198, 538, 334, 172, 58, -30, -60);

/** The higher band: Q2, QQ2 and WH by code (Tables 17 and 19). */
const HIGH_DECISION = 8 * 564;
const HIGH_LEVELS = timesEight([-926, -202, 926, 202]);
const HIGH_LOG_STEPS = Int32Array.of(798, -214, 798, -214);

function timesEight(levels: readonly number[]): Int32Array {
  return Int32Array.from(levels, (level) => 8 * level);
}
