/**
 * One instance of a synthesis engine: speaks one clause at a time, in the encoding that is asked for. Engines run in
 * child processes; several of them live behind `SpeechSynthesis`.
 */
export interface Synthesizer {
  /** Times count from the first sample. @throws SynthesizerError */
  speak(clause: Clause): Promise<SpokenClause>;
  /** Idempotent. */
  close(): Promise<void>;
}

export interface Clause {
  text: string;
  /** As the engine names it. */
  voice: string;
  wordsPerMinute: number;
  format: SpeechFormat;
}

/** Mono. LINEAR16 is 16 bit, little-endian. */
export interface SpeechFormat {
  encoding: SpeechEncoding;
  sampleRateHz: number;
}

export const SPEECH_ENCODINGS = ['LINEAR16', 'MULAW', 'ALAW'] as const;
export type SpeechEncoding = (typeof SPEECH_ENCODINGS)[number];

export interface SpokenClause {
  audio: Buffer;
  durationMs: number;
  /** Every word of the text, in order, as written there. */
  words: SpokenWord[];
}

export interface SpokenWord {
  word: string;
  startMs: number;
  endMs: number;
}

export class SynthesizerError extends Error {
  override readonly name = 'SynthesizerError';
  readonly code: 'unknown_voice' | 'too_long' | 'crashed';

  constructor(code: SynthesizerError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** Whether another instance may succeed. */
  get retryable(): boolean {
    return this.code === 'crashed';
  }
}
