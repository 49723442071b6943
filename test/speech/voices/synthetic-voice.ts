/** A synthetic "ah" with gliding pitch: pulses through vowel formants. */
export function syntheticVoice({
  sampleRateHz,
  seconds,
  pitchHz,
  glideSemitones = 0,
  syllablesPerSecond = 4,
  peak = 0.3,
  pauses = [],
}: {
  sampleRateHz: number;
  seconds: number;
  /** In the middle of the glide. */
  pitchHz: number;
  /** Peak deviation of a triangular pitch glide, one cycle per second. */
  glideSemitones?: number;
  syllablesPerSecond?: number;
  peak?: number;
  pauses?: readonly (readonly [from: number, to: number])[];
}): Float32Array {
  const samples = new Float32Array(Math.round(seconds * sampleRateHz));
  const formants = [
    [700, 90],
    [1200, 110],
    [2600, 160],
  ].map(([frequency, bandwidth]) => resonator(frequency!, bandwidth!, sampleRateHz));
  let phase = 0;
  /** Share of a pulse that goes to the later of two samples; rounding would make periods uneven. */
  let carried = 0;
  let loudest = 0;
  for (let i = 0; i < samples.length; i++) {
    const t = i / sampleRateHz;
    const glide = glideSemitones * (Math.abs((t % 1) * 2 - 1) - 0.5);
    const step = (pitchHz * 2 ** (glide / 12)) / sampleRateHz;
    phase += step;
    let sample = carried;
    carried = 0;
    if (phase >= 1) {
      phase -= 1;
      carried = 1 - phase / step;
      sample += phase / step;
    }
    for (const formant of formants) sample = formant(sample);
    const isPause = pauses.some(([from, to]) => t >= from && t < to);
    samples[i] = isPause ? 0 : sample * (0.55 - 0.45 * Math.cos(2 * Math.PI * syllablesPerSecond * t));
    loudest = Math.max(loudest, Math.abs(samples[i]!));
  }
  return samples.map((sample) => (sample / loudest) * peak);
}

function resonator(frequencyHz: number, bandwidthHz: number, sampleRateHz: number): (sample: number) => number {
  const radius = Math.exp((-Math.PI * bandwidthHz) / sampleRateHz);
  const a1 = 2 * radius * Math.cos((2 * Math.PI * frequencyHz) / sampleRateHz);
  const a2 = -(radius ** 2);
  let [last, beforeLast] = [0, 0];
  return (sample) => {
    const value = sample + a1 * last + a2 * beforeLast;
    beforeLast = last;
    last = value;
    return value;
  };
}
