import { seededRandom } from '../../runtime/seeded-random.ts';

/** White Gaussian noise, deterministic for a seed. */
export function whiteNoise(count: number, amplitude: number, seed: number): Float32Array<ArrayBuffer> {
  const random = seededRandom(seed);
  return Float32Array.from(
    { length: count },
    () => amplitude * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()),
  );
}

export function meanPowerOf(samples: Float32Array): number {
  return samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
}

export function decibels(powerRatio: number): number {
  return 10 * Math.log10(powerRatio);
}

export function largest(samples: Float32Array | Int16Array): number {
  let most = 0;
  for (const sample of samples) most = Math.max(most, Math.abs(sample));
  return most;
}
