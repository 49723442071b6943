/** What can be measured of a voice, people's and engines' alike, from a recording of its speech. */
export interface VoiceMeasures {
  /** Pauses included; null when the text is not known. */
  wordsPerMinute: number | null;
  /** Nuclei of syllables per second of speech (De Jong and Wempe 2009); null when there is too little speech. */
  syllablesPerSecond: number | null;
  /** Median of the fundamental frequency; null when nothing is voiced. */
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
