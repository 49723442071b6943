import { RECOGNITION_RATE_HZ } from '../../../machines/utterances.ts';
import { RealFft } from '../../../media/dsp/fft.ts';

/**
 * What a telephone leaves out. The model listens up to 6.8 kHz and a telephone ends at 3.4: where it expects the noise
 * of an s there is nothing at all. A rectifier makes harmonics of what lies between 2 and 3.4 kHz, whose part above
 * 3.9 kHz rises and falls with the voice (Makhoul and Berouti, "High-frequency regeneration in speech coding systems",
 * ICASSP 1979). That is not what was said there, but nearer to it than silence: of the words of telephone prompts it
 * saves a tenth, of recordings sent through mu-law a few in a hundred.
 */
export class UpperBand {
  readonly #low = [highPass(2000, FIRST_Q), highPass(2000, SECOND_Q)];
  readonly #high = [highPass(3900, FIRST_Q), highPass(3900, SECOND_Q)];

  /** Adds it to samples that lack it, which follow those of the last call. */
  addTo(samples: Int16Array): void {
    for (let index = 0; index < samples.length; index++) {
      const sample = samples[index]!;
      let voice = sample;
      for (const section of this.#low) voice = section.next(voice);
      let harmonics = Math.abs(voice);
      for (const section of this.#high) harmonics = section.next(harmonics);
      samples[index] = Math.max(-32_768, Math.min(32_767, Math.round(sample + harmonics)));
    }
  }
}

/**
 * Whether there is next to nothing above a telephone's band. Wideband speech has at least a 30,000th of its power
 * there, also in two seconds of vowels; what came by telephone has less than a 500,000th, which is dither.
 */
export function lacksUpperBand(blocks: readonly Int16Array[]): boolean {
  let above = 0;
  let all = 0;
  for (const block of blocks) {
    if (block.length < FFT_POINTS) continue;
    for (let index = 0; index < FFT_POINTS; index++) frame[index] = block[index]! * HANN[index]!;
    fft.powers(frame, powers);
    for (let bin = FIRST_BIN; bin < powers.length; bin++) {
      all += powers[bin]!;
      if (bin >= FIRST_BIN_ABOVE) above += powers[bin]!;
    }
  }
  return above < all * LEAST_SHARE_ABOVE;
}

/**
 * Whether speech stands well above the noise around it. What is made of noise is noise: with 20 dB it costs more words
 * than it saves. The loudest and the most quiet tenth of the blocks are compared.
 */
export function isClear(blocks: readonly Int16Array[]): boolean {
  const levels = blocks.map((block) => block.reduce((sum, sample) => sum + sample ** 2, 1) / block.length);
  levels.sort((a, b) => a - b);
  const tenth = Math.floor(levels.length / 10);
  const quiet = levels[tenth] ?? 1;
  const loud = levels.at(-1 - tenth) ?? 1;
  return loud > quiet * 10 ** (CLEAR_FROM_DB / 10);
}

const CLEAR_FROM_DB = 27;
const LEAST_SHARE_ABOVE = 1e-5;
const FFT_POINTS = 512;
/** The direct current of a cheap recorder is no voice. */
const FIRST_BIN = 2;
const FIRST_BIN_ABOVE = Math.ceil((4600 * FFT_POINTS) / RECOGNITION_RATE_HZ);
const HANN = Float32Array.from({ length: FFT_POINTS }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / FFT_POINTS));
const fft = new RealFft(FFT_POINTS);
const frame = new Float32Array(FFT_POINTS);
const powers = new Float32Array(FFT_POINTS / 2 + 1);

/** Of the two sections of a Butterworth filter of fourth order. */
const FIRST_Q = 0.5412;
const SECOND_Q = 1.3066;

/** A second-order section (Bristow-Johnson, "Cookbook formulae for audio EQ biquad filter coefficients"). */
function highPass(cornerHz: number, quality: number): { next(input: number): number } {
  const omega = (2 * Math.PI * cornerHz) / RECOGNITION_RATE_HZ;
  const alpha = Math.sin(omega) / (2 * quality);
  const cosine = Math.cos(omega);
  const a0 = 1 + alpha;
  const b0 = (1 + cosine) / 2 / a0;
  const b1 = -(1 + cosine) / a0;
  const a1 = (-2 * cosine) / a0;
  const a2 = (1 - alpha) / a0;
  let [x1, x2, y1, y2] = [0, 0, 0, 0];
  return {
    next(input) {
      const output = b0 * (input + x2) + b1 * x1 - a1 * y1 - a2 * y2;
      x2 = x1;
      x1 = input;
      y2 = y1;
      y1 = output;
      return output;
    },
  };
}
