/** Measures of a human or synthetic voice, from a recording of its speech. */
export interface VoiceMeasures {
  /** Includes pauses; null if the text is unknown. */
  wordsPerMinute: number | null;
  /** Syllable nuclei per second of speech (De Jong and Wempe 2009); null if there is too little speech. */
  syllablesPerSecond: number | null;
  /** Median of the fundamental frequency; null if nothing is voiced. */
  pitchHz: number | null;
  /** From the 10th to the 90th percentile of the fundamental frequency. */
  pitchRangeSemitones: number | null;
  /** Active speech level (ITU-T P.56). */
  levelDbov: number;
  /** Long-term average spectrum of the active speech, dB in each of `BAND_CENTRES_HZ` relative to their mean. */
  spectrumDb: readonly number[];
}

/** Centres of third-octave bands (IEC 61260-1). */
export const BAND_CENTRES_HZ = [
  100, 125, 160, 200, 250, 315, 400, 500, 630, 800, 1000, 1250, 1600, 2000, 2500, 3150, 4000, 5000, 6300, 8000,
] as const;
