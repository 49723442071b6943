import type { SpeechFormat } from '../../speech-synthesis.ts';

/** Makes the bytes of a stream of speech, sample by sample. Lives in the synthesis thread, one for each text. */
export interface SpeechEncoder {
  /** At this rate samples are wanted; may differ from the format's where its codec has no such rate. */
  readonly inputRateHz: number;
  /** Interleaved samples, whole frames. Returns what is ready by now; may be empty. */
  encode(samples: Int16Array): Uint8Array<ArrayBuffer>;
  /** The rest. */
  finish(): Uint8Array<ArrayBuffer>;
  /** Frees what it holds outside the heap. Idempotent; also without `finish`. */
  close(): void;
}

export type OpenSpeechEncoder = (format: SpeechFormat) => Promise<SpeechEncoder>;
