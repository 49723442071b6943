import { Resampler } from '../../media/dsp/resample.ts';

/** Vowels of known pitch: glottal pulses (Rosenberg 1971) through vocal tract resonances (Klatt 1980), within ±1. */
export function syntheticVowel(options: VowelOptions): Float32Array<ArrayBuffer> {
  const { sampleRateHz, seconds } = options;
  const fine = vowelAt48k(options);
  const samples = new Float32Array(Math.round(sampleRateHz * seconds));
  if (sampleRateHz === FINE_RATE_HZ) samples.set(fine);
  else {
    const resampler = new Resampler(FINE_RATE_HZ, sampleRateHz);
    const output = new Float32Array(resampler.outputBound(fine.length) + resampler.outputBound(0));
    const written = resampler.process(fine, fine.length, output);
    resampler.flush(output.subarray(written));
    samples.set(output.subarray(0, samples.length));
  }
  const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 1e-9);
  return samples.map((sample) => sample / peak);
}

interface VowelOptions {
  sampleRateHz: number;
  seconds: number;
  hzAt: (seconds: number) => number;
  vowel?: keyof typeof FORMANTS_HZ;
  /** Maximum deviation of pulses, as a fraction of a period. */
  jitter?: number;
  random?: () => number;
}

/** Lower rates would alias pulse edges and quantise periods. */
const FINE_RATE_HZ = 48_000;

function vowelAt48k({ seconds, hzAt, vowel = 'a', jitter = 0, random = Math.random }: VowelOptions): Float32Array {
  const sampleRateHz = FINE_RATE_HZ;
  const samples = new Float32Array(Math.round(sampleRateHz * seconds));
  let phase = 0;
  let shift = 0;
  for (let i = 0; i < samples.length; i++) {
    const step = hzAt(i / sampleRateHz) / sampleRateHz;
    phase += step * (1 + shift);
    if (phase >= 1) {
      phase -= 1;
      shift = jitter * (2 * random() - 1);
    }
    samples[i] = glottalFlowSlope(phase);
  }
  for (const [index, hz] of FORMANTS_HZ[vowel].entries()) {
    resonate(samples, hz, FORMANT_WIDTHS_HZ[index]!, sampleRateHz);
  }
  return samples;
}

/** Peterson and Barney 1952, male speakers. */
const FORMANTS_HZ = { a: [730, 1090, 2440], i: [270, 2290, 3010], u: [300, 870, 2240], e: [530, 1840, 2480] };
const FORMANT_WIDTHS_HZ = [80, 90, 120];

/** Opens for 40 % of a period and closes for 16 %. */
function glottalFlowSlope(phase: number): number {
  if (phase < 0.4) return Math.sin((Math.PI * phase) / 0.4);
  if (phase < 0.56) return -2.5 * Math.sin(((Math.PI / 2) * (phase - 0.4)) / 0.16);
  return 0;
}

function resonate(samples: Float32Array, hz: number, widthHz: number, sampleRateHz: number): void {
  const radius = Math.exp((-Math.PI * widthHz) / sampleRateHz);
  const a1 = 2 * radius * Math.cos((2 * Math.PI * hz) / sampleRateHz);
  const a2 = -radius * radius;
  let y1 = 0;
  let y2 = 0;
  for (let i = 0; i < samples.length; i++) {
    const y = (1 - a1 - a2) * samples[i]! + a1 * y1 + a2 * y2;
    y2 = y1;
    y1 = y;
    samples[i] = y;
  }
}
