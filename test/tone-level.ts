/**
 * Level of one frequency in dBov (generalised Goertzel algorithm). A full-scale sine measures -3.01, as in `levelDbov`.
 * The block should hold several cycles.
 */
export function toneLevelDbov(samples: Int16Array, frequencyHz: number, sampleRateHz = 8000): number {
  if (samples.length === 0) return -96;
  const coefficient = 2 * Math.cos((2 * Math.PI * frequencyHz) / sampleRateHz);
  let previous = 0;
  let beforePrevious = 0;
  for (let i = 0; i < samples.length; i++) {
    const current = samples[i]! + coefficient * previous - beforePrevious;
    beforePrevious = previous;
    previous = current;
  }
  const squaredMagnitude =
    previous * previous + beforePrevious * beforePrevious - coefficient * previous * beforePrevious;
  // A sine of amplitude A has magnitude A*n/2 and power A*A/2.
  const power = (2 * squaredMagnitude) / (samples.length * samples.length);
  return power <= 0 ? -96 : Math.max(-96, 10 * Math.log10(power / (32768 * 32768)));
}

/**
 * Highest level of the frequency in dBov during 250 ms. For recordings of other programs, which stall on a busy machine
 * and fill the gaps with other sounds.
 */
export function loudestToneDbov(samples: Int16Array, frequencyHz: number, sampleRateHz = 8000): number {
  const windowLength = sampleRateHz / 4;
  let loudest = -96;
  for (let start = 0; start + windowLength <= samples.length; start += windowLength / 2) {
    const level = toneLevelDbov(samples.subarray(start, start + windowLength), frequencyHz, sampleRateHz);
    loudest = Math.max(loudest, level);
  }
  return loudest;
}

/** The samples up to the last that is not zero. A recording ends with silence if phones stop before it. */
export function withoutEndSilence(samples: Int16Array): Int16Array {
  return samples.subarray(0, samples.findLastIndex((sample) => sample !== 0) + 1);
}
