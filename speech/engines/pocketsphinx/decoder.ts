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
 * Silence must stay in the stream, or times are seconds off; noise is suppressed before us, if at all. The cepstral
 * mean is ours to set. Everything else is PocketSphinx's default, three passes: with them a core that is idle does 4 to 6
 * seconds of speech a second, in WebAssembly as natively, and narrower beams would only cost words.
 */
export function decoderOptions(files: { acousticModel: string; dictionary: string }): string[] {
  return [
    ...['-hmm', files.acousticModel],
    ...['-dict', files.dictionary],
    ...['-remove_silence', 'no'],
    ...['-remove_noise', 'no'],
    ...['-logfn', '/dev/null'],
  ];
}
