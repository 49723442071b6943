/**
 * Counts syllable nuclei without knowing the words: voiced peaks of intensity with dips of at least 2 dB on either side
 * (N. H. de Jong and T. Wempe, "Praat script to detect syllable nuclei and measure speech rate automatically", Behavior
 * Research Methods 41 (2009), 385-390, with the threshold below the loudest that their script has had since 2010).
 * `isVoicedAt` takes seconds from the first sample.
 */
export function syllableNuclei(
  samples: Float32Array,
  { sampleRateHz, isVoicedAt }: { sampleRateHz: number; isVoicedAt: (seconds: number) => boolean },
): { nuclei: number; speechSeconds: number } {
  const intensityDb = intensityContour(samples, sampleRateHz);
  const fromDb = Math.max(QUIETEST_DB, percentile(intensityDb, LOUD_PERCENTILE) - BELOW_LOUD_DB);
  let nuclei = 0;
  let isRising = true;
  let extreme = 0;
  for (let i = 1; i < intensityDb.length; i++) {
    const level = intensityDb[i]!;
    if (isRising ? level >= intensityDb[extreme]! : level <= intensityDb[extreme]!) {
      extreme = i;
    } else if (Math.abs(level - intensityDb[extreme]!) >= LEAST_DIP_DB) {
      if (isRising && intensityDb[extreme]! > fromDb && isVoicedAt(extreme * STEP_S)) nuclei += 1;
      isRising = !isRising;
      extreme = i;
    }
  }
  return { nuclei, speechSeconds: secondsAbove(intensityDb, fromDb) };
}

/** Praat's settings for a lowest pitch of 50 Hz, as in the script: a window of 64 ms every 16 ms. */
const STEP_S = 0.016;
const STEPS_PER_WINDOW = 4;
const PARTS_PER_STEP = 4;
const LEAST_DIP_DB = 2;
const LOUD_PERCENTILE = 0.99;
const BELOW_LOUD_DB = 25;
/** Relative to full scale: no speech is that quiet. */
const QUIETEST_DB = -75;
/** Shorter pauses belong to the speech. */
const LEAST_PAUSE_S = 0.3;

/** Mean square under a Hann window in dB of full scale, centred at multiples of `STEP_S`. */
function intensityContour(samples: Float32Array, sampleRateHz: number): Float32Array {
  const partSamples = (STEP_S / PARTS_PER_STEP) * sampleRateHz;
  const parts = new Float32Array(Math.ceil(samples.length / partSamples));
  for (let part = 0; part < parts.length; part++) {
    const end = Math.min(samples.length, Math.round((part + 1) * partSamples));
    let energy = 0;
    for (let i = Math.round(part * partSamples); i < end; i++) energy += samples[i]! * samples[i]!;
    parts[part] = energy / partSamples;
  }
  const reach = (STEPS_PER_WINDOW * PARTS_PER_STEP) / 2;
  const window = Float32Array.from(
    { length: 2 * reach + 1 },
    (_, i) => 0.5 - 0.5 * Math.cos((Math.PI * (i + 1)) / (reach + 1)),
  );
  const weight = window.reduce((sum, value) => sum + value, 0);
  const contour = new Float32Array(Math.ceil(parts.length / PARTS_PER_STEP));
  for (let step = 0; step < contour.length; step++) {
    let power = 0;
    for (let offset = -reach; offset <= reach; offset++) {
      const part = step * PARTS_PER_STEP + offset;
      if (part >= 0 && part < parts.length) power += parts[part]! * window[offset + reach]!;
    }
    contour[step] = 10 * Math.log10(power / weight + 1e-12);
  }
  return contour;
}

function secondsAbove(intensityDb: Float32Array, fromDb: number): number {
  let steps = 0;
  let lastLoud = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < intensityDb.length; i++) {
    if (intensityDb[i]! <= fromDb) continue;
    const gap = i - lastLoud;
    steps += gap * STEP_S < LEAST_PAUSE_S ? gap : 1;
    lastLoud = i;
  }
  return steps * STEP_S;
}

function percentile(values: Float32Array, part: number): number {
  return values.toSorted()[Math.floor((values.length - 1) * part)] ?? Number.NEGATIVE_INFINITY;
}
