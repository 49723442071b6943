import { RealFft } from '../../media/dsp/fft.ts';
import { BAND_CENTRES_HZ } from './voice-measures.ts';

/**
 * Long-term average spectrum of speech in dB for each of `BAND_CENTRES_HZ`, relative to their mean, over the windows
 * that are at least as loud as `fromPower` (mean square). Samples are between -1 and 1.
 *
 * Bands beyond the sampling rate repeat the highest measured one: above 3 kHz the average spectrum of speech falls by
 * at most 5 dB (Byrne and others 1994). All are 0 if nothing can be measured.
 */
export function longTermSpectrum(
  samples: Float32Array,
  { sampleRateHz, fromPower }: { sampleRateHz: number; fromPower: number },
): number[] {
  const fft = new RealFft(windowSizeFor(sampleRateHz));
  const window = hann(fft.size);
  const block = new Float32Array(fft.size);
  const powers = new Float32Array(fft.size / 2 + 1);
  const sums = new Float64Array(powers.length);
  for (let start = 0; start + fft.size <= samples.length || start === 0; start += fft.size / 2) {
    let energy = 0;
    for (let i = 0; i < fft.size; i++) {
      const sample = start + i < samples.length ? samples[start + i]! : 0;
      energy += sample * sample;
      block[i] = sample * window[i]!;
    }
    if (energy / fft.size < fromPower) continue;
    fft.powers(block, powers);
    for (let bin = 0; bin < powers.length; bin++) sums[bin] = sums[bin]! + powers[bin]!;
  }
  return bandLevels(sums, sampleRateHz / fft.size);
}

/** Bins under 12 Hz separate even the lowest bands. */
const LEAST_WINDOW_S = 1 / 12;
/** Anything further below the loudest band is noise of the recording. */
const MOST_BELOW_LOUDEST_DB = 80;
/** Recording filters attenuate frequencies near Nyquist. */
const USED_PART_OF_BANDWIDTH = 0.9;

function windowSizeFor(sampleRateHz: number): number {
  return 2 ** Math.ceil(Math.log2(sampleRateHz * LEAST_WINDOW_S));
}

function hann(size: number): Float32Array {
  return Float32Array.from({ length: size }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / size));
}

function bandLevels(sums: Float64Array, binHz: number): number[] {
  const limitHz = (sums.length - 1) * binHz * USED_PART_OF_BANDWIDTH;
  const powers = BAND_CENTRES_HZ.map((centre) => {
    const upperHz = centre * 2 ** (1 / 6);
    return upperHz > limitHz
      ? null
      : powerBetween(sums, { lowerBin: (centre * 2 ** (-1 / 6)) / binHz, upperBin: upperHz / binHz });
  });
  const loudest = Math.max(...powers.map((power) => power ?? 0));
  if (!(loudest > 0)) return BAND_CENTRES_HZ.map(() => 0);
  let last = loudest;
  const levels = powers.map((power) => {
    last = power ?? last;
    return Math.max(-MOST_BELOW_LOUDEST_DB, 10 * Math.log10(last / loudest));
  });
  const mean = levels.reduce((sum, level) => sum + level, 0) / levels.length;
  return levels.map((level) => level - mean);
}

/** Bin k covers k - 1/2 to k + 1/2; bins at the edges count in part. */
function powerBetween(sums: Float64Array, { lowerBin, upperBin }: { lowerBin: number; upperBin: number }): number {
  let power = 0;
  for (let bin = Math.round(lowerBin); bin <= Math.round(upperBin) && bin < sums.length; bin++) {
    const part = Math.min(bin + 0.5, upperBin) - Math.max(bin - 0.5, lowerBin);
    power += sums[bin]! * Math.max(0, part);
  }
  return power;
}
