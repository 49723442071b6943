import { RECOGNITION_RATE_HZ } from '../../../machines/utterances.ts';
import { RealFft } from '../../../media/dsp/fft.ts';
import type { Band } from './front-end.ts';

/**
 * Detects the band of audio. Telephone lines transmit almost nothing above 4.6 kHz. Wideband speech has at least a
 * 30,000th of its power there, even in two seconds of vowels; telephone speech has less than a 500,000th, which is
 * dither.
 */
export function bandOf(blocks: readonly Int16Array[]): Band {
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
  return above < all * LEAST_SHARE_ABOVE ? 'telephone' : 'wideband';
}

const LEAST_SHARE_ABOVE = 1e-5;
const FFT_POINTS = 512;
/** Ignores the DC offset of a cheap recorder. */
const FIRST_BIN = 2;
const FIRST_BIN_ABOVE = Math.ceil((4600 * FFT_POINTS) / RECOGNITION_RATE_HZ);
const HANN = Float32Array.from({ length: FFT_POINTS }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / FFT_POINTS));
const fft = new RealFft(FFT_POINTS);
const frame = new Float32Array(FFT_POINTS);
const powers = new Float32Array(FFT_POINTS / 2 + 1);
