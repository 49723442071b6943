import type { SpeechFormat } from '../../speech-synthesis.ts';

/** Encodes a stream of speech. Lives in the synthesis thread, one per text. */
export interface SpeechEncoder {
  /** Rate of the input samples; differs from the format's if its codec lacks that rate. */
  readonly inputRateHz: number;
  /** Interleaved samples, whole frames. Returns the bytes ready by now; may be empty. */
  encode(samples: Int16Array): Uint8Array<ArrayBuffer>;
  /** Returns the rest. */
  finish(): Uint8Array<ArrayBuffer>;
  /** Frees memory outside the heap. Idempotent; also without `finish`. */
  close(): void;
}

export type OpenSpeechEncoder = (format: SpeechFormat) => Promise<SpeechEncoder>;
