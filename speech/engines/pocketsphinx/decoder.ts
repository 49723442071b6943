import type { Band } from './front-end.ts';

/** A PocketSphinx decoder, in WebAssembly or native: what is different between the two, and nothing else. */
export interface Decoder {
  startUtterance(): void;
  /** What is subtracted from the cepstra of what is processed from now on. */
  setCepstralMean(mean: Float32Array): void;
  process(samples: Int16Array<ArrayBuffer>): void;
  endUtterance(): void;
  /** The best path so far; with posteriors once the utterance has ended. */
  segments(): DecodedSegment[];
  close(): void;
}

export interface DecodedSegment {
  /** As in the dictionary: with `(2)` for an alternative pronunciation, or a filler such as `<sil>`. */
  word: string;
  /** Frames of 10 ms, both inclusive. */
  startFrame: number;
  endFrame: number;
  /** Logarithm to `LOG_BASE` of the posterior probability; means nothing before the utterance has ended. */
  logPosterior: number;
}

export const LOG_BASE = 1.0001;
export const FRAME_MS = 10;

/**
 * How much the language model counts against the acoustic model. PocketSphinx's default is for wideband. The telephone
 * model has a quarter fewer coefficients, so its scores lie closer together and count for less.
 */
const LANGUAGE_WEIGHT: Readonly<Record<Band, number>> = { telephone: 5, wideband: 6.5 };

/**
 * Silence must stay in the stream, or times are seconds off. Noise is suppressed before the decoder, if at all. The
 * cepstral mean is set from here. Everything else is PocketSphinx's default of three passes: narrower beams would only
 * cost words.
 */
export function decoderOptions(band: Band, files: { acousticModel: string; dictionary: string }): string[] {
  return [
    ...['-hmm', files.acousticModel],
    ...['-dict', files.dictionary],
    ...['-lw', `${LANGUAGE_WEIGHT[band]}`],
    ...['-remove_silence', 'no'],
    ...['-remove_noise', 'no'],
    ...['-logfn', '/dev/null'],
  ];
}
