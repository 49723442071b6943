import { describe, expect, it } from 'vitest';
import { measureVoice } from '../../../speech/voices/measure-voice.ts';
import { BAND_CENTRES_HZ, type VoiceMeasures } from '../../../speech/voices/voice-measures.ts';
import * as fc from '../../properties.ts';
import { syntheticVoice } from './synthetic-voice.ts';

describe('voice measurement', () => {
  it.each([
    [8000, 95],
    [16_000, 120],
    [22_050, 205],
    [48_000, 260],
  ])('finds at %i Hz the pitch of %i Hz, its range and the syllables', (sampleRateHz, pitchHz) => {
    const samples = syntheticVoice({ sampleRateHz, seconds: 8, pitchHz, glideSemitones: 6, syllablesPerSecond: 4 });
    const measures = measureVoice(samples, sampleRateHz);
    expect(measures.pitchHz! / pitchHz).toBeCloseTo(1, 1);
    // 80 % of a uniform glide.
    expect(measures.pitchRangeSemitones).toBeGreaterThan(4.3);
    expect(measures.pitchRangeSemitones).toBeLessThan(5.3);
    expect(measures.syllablesPerSecond).toBeGreaterThan(3.7);
    expect(measures.syllablesPerSecond).toBeLessThan(4.3);
  });

  it('counts words per minute from first to last sound, including pauses', () => {
    const samples = syntheticVoice({
      sampleRateHz: 16_000,
      seconds: 12,
      pitchHz: 150,
      pauses: [
        [0, 2],
        [5, 6],
        [10, 12],
      ],
    });
    expect(measureVoice(samples, 16_000, { words: 20 }).wordsPerMinute).toBeGreaterThan(145);
    expect(measureVoice(samples, 16_000, { words: 20 }).wordsPerMinute).toBeLessThan(155);
    expect(measureVoice(samples, 16_000).wordsPerMinute).toBeNull();
  });

  it('counts syllables per second of speech, without pauses', () => {
    const pauses = [[3, 6]] as const;
    const samples = syntheticVoice({ sampleRateHz: 16_000, seconds: 10, pitchHz: 150, syllablesPerSecond: 5, pauses });
    expect(measureVoice(samples, 16_000).syllablesPerSecond).toBeGreaterThan(4.5);
    expect(measureVoice(samples, 16_000).syllablesPerSecond).toBeLessThan(5.4);
  });

  it('gives equal results for integers and floats, and only changes the level of louder audio', () => {
    const samples = syntheticVoice({ sampleRateHz: 16_000, seconds: 5, pitchHz: 110, peak: 0.1 });
    const asFloat = measureVoice(samples, 16_000);
    const asInteger = measureVoice(
      Int16Array.from(samples, (sample) => Math.round(sample * 32768)),
      16_000,
    );
    const louder = measureVoice(
      samples.map((sample) => sample * 4),
      16_000,
    );
    expect(asInteger.levelDbov).toBeCloseTo(asFloat.levelDbov, 1);
    expect(asInteger.pitchHz).toBeCloseTo(asFloat.pitchHz!, 0);
    expect(louder.levelDbov - asFloat.levelDbov).toBeCloseTo(12.04, 1);
    expect(louder.pitchHz).toBeCloseTo(asFloat.pitchHz!, 0);
    expectSpectrum(louder.spectrumDb, asFloat.spectrumDb, 0.5);
  });

  it('finds equal bands in pink noise and ignores pauses', () => {
    const noise = pinkNoise(8 * 22_050);
    const spectrum = measureVoice(noise, 22_050).spectrumDb;
    expectSpectrum(
      spectrum,
      BAND_CENTRES_HZ.map(() => 0),
      2,
    );
    const withPause = new Float32Array(2 * noise.length);
    withPause.set(noise);
    expectSpectrum(measureVoice(withPause, 22_050).spectrumDb, spectrum, 0.5);
  });

  it('continues the highest band flat beyond the sample rate', () => {
    const narrow = measureVoice(pinkNoise(80_000), 8000).spectrumDb;
    const highest = narrow[BAND_CENTRES_HZ.indexOf(3150)]!;
    for (const band of [4000, 5000, 6300, 8000] as const) expect(narrow[BAND_CENTRES_HZ.indexOf(band)]).toBe(highest);
  });

  it('samples a bounded part of an hour', () => {
    const hour = new Int16Array(3600 * 4000);
    const voice = syntheticVoice({ sampleRateHz: 4000, seconds: 10, pitchHz: 130 });
    const said = voice.map((sample) => sample * 32767);
    for (let second = 0; second < 300; second += 10) hour.set(said, second * 4000);
    expect(measureVoice(hour, 4000, { words: 100 }).pitchHz! / 130).toBeCloseTo(1, 1);
  });

  it('returns null measures without speech', () => {
    for (const samples of [
      new Float32Array(0),
      Float32Array.of(1),
      new Float32Array(16_000),
      new Float32Array(16_000).fill(Number.NaN),
      new Int16Array(48_000),
    ]) {
      expect(measureVoice(samples, 16_000, { words: 3 })).toEqual({
        wordsPerMinute: null,
        syllablesPerSecond: null,
        pitchHz: null,
        pitchRangeSemitones: null,
        levelDbov: -96,
        spectrumDb: BAND_CENTRES_HZ.map(() => 0),
      });
    }
    for (const rate of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e12]) {
      expect(measureVoice(new Float32Array(16_000).fill(0.5), rate).pitchHz).toBeNull();
    }
  });

  it('finds no pitch and no syllables in noise, even with clipping', () => {
    const noise = Float32Array.from({ length: 32_000 }, (_, i) => 4 * pseudoRandom(i));
    const measures = measureVoice(noise, 16_000);
    expect(measures.syllablesPerSecond).toBeNull();
    expectSane(measures);
  });

  it('returns plausible numbers for any input', () => {
    const samples = fc.oneof(
      fc.float32Array({ maxLength: 2000 }),
      fc.int16Array({ maxLength: 2000 }),
      fc
        .record({ value: fc.float(), length: fc.nat(8000) })
        .map(({ value, length }) => new Float32Array(length).fill(value)),
    );
    const words = fc.oneof(fc.nat(1000), fc.double());
    void fc.assert(
      fc.property(samples, fc.oneof(fc.constantFrom(8000, 16_000), fc.double()), words, (data, rate, count) => {
        expectSane(measureVoice(data, rate, { words: count }));
      }),
      { numRuns: 60 },
    );
  });
});

function expectSane({ levelDbov, spectrumDb, ...others }: VoiceMeasures): void {
  expect(levelDbov).toBeGreaterThanOrEqual(-96);
  expect(levelDbov).toBeLessThanOrEqual(0);
  expect(spectrumDb.length).toBe(BAND_CENTRES_HZ.length);
  for (const level of spectrumDb) expect(Math.abs(level)).toBeLessThanOrEqual(80);
  for (const value of Object.values(others)) {
    if (value === null) continue;
    expect(Number.isFinite(value)).toBe(true);
    expect(value).toBeGreaterThanOrEqual(0);
  }
}

function expectSpectrum(actual: readonly number[], expected: readonly number[], toleranceDb: number): void {
  for (const [band, level] of expected.entries()) {
    expect(Math.abs(actual[band]! - level), `${BAND_CENTRES_HZ[band]} Hz`).toBeLessThan(toleranceDb);
  }
}

/** Uniform from -1 to 1. */
function pseudoRandom(i: number): number {
  const value = Math.sin(i * 12.9898 + 78.233) * 43758.5453;
  return 2 * (value - Math.floor(value)) - 1;
}

/** White noise through Paul Kellet's filter, within 0.5 dB of -3 dB per octave. */
function pinkNoise(length: number): Float32Array {
  const state = [0, 0, 0, 0, 0, 0];
  const poles = [0.99886, 0.99332, 0.969, 0.8665, 0.55, -0.7616];
  const gains = [0.0555179, 0.0750759, 0.153852, 0.3104856, 0.5329522, -0.016898];
  let last = 0;
  return Float32Array.from({ length }, (_, i) => {
    const white = pseudoRandom(i);
    for (let pole = 0; pole < poles.length; pole++) state[pole] = poles[pole]! * state[pole]! + gains[pole]! * white;
    const pink = state.reduce((sum, value) => sum + value, 0) + white * 0.5362 + last;
    last = white * 0.115926;
    return pink * 0.05;
  });
}
