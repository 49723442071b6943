import type { Band } from './front-end.ts';

/** A PocketSphinx decoder, in WebAssembly or native: only what differs between the two. */
export interface Decoder {
  startUtterance(): void;
  /** Sets the mean subtracted from the cepstra of subsequent audio. */
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
  /** Posterior probability as a logarithm to `LOG_BASE`; undefined before the utterance has ended. */
  logPosterior: number;
}

export const LOG_BASE = 1.0001;
export const FRAME_MS = 10;

/**
 * Weight of the language model against the acoustic model. PocketSphinx's default is for wideband. The telephone model
 * has a quarter fewer coefficients, so its scores lie closer together and need less counterweight.
 */
const LANGUAGE_WEIGHT: Readonly<Record<Band, number>> = { telephone: 5, wideband: 6.5 };

/**
 * Silence must stay in the stream, or times are seconds off. Noise is suppressed before the decoder, if at all. The
 * cepstral mean is set explicitly. Otherwise PocketSphinx's default of three passes: narrower beams would only lose
 * words.
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
