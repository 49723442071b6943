import { BAND_CENTRES_HZ } from './voice-measures.ts';

/**
 * Long-term average spectra of speech over twelve languages, dB in third octaves from 100 Hz to 8 kHz, relative to their
 * mean: D. Byrne and others, "An international comparison of long-term average speech spectra", Journal of the
 * Acoustical Society of America 96 (1994), 2108-2120, table II.
 */
export const FEMALE_SPEECH_SPECTRUM_DB = relativeToMean([
  37.5, 40.1, 53.4, 62.2, 60.9, 58.1, 61.7, 61.7, 60.4, 58.0, 54.3, 52.3, 51.7, 48.8, 47.3, 46.7, 45.3, 44.6, 45.2,
  44.9,
]);

export const MALE_SPEECH_SPECTRUM_DB = relativeToMean([
  54.4, 57.7, 56.8, 58.2, 59.7, 60.0, 62.4, 62.6, 60.6, 55.7, 53.1, 53.7, 52.3, 48.7, 48.9, 47.0, 46.0, 44.4, 43.3,
  42.4,
]);

function relativeToMean(levelsDb: readonly number[]): readonly number[] {
  const mean = levelsDb.reduce((sum, level) => sum + level, 0) / BAND_CENTRES_HZ.length;
  return levelsDb.map((level) => Math.round((level - mean) * 10) / 10);
}
