import type { RecognisedWord, Recognition } from '../machines/utterances.ts';

/**
 * One instance of a recognition engine, for one utterance at a time without memory of earlier ones. Native or foreign
 * code runs in a child process behind the same interface.
 */
export interface Recognizer {
  readonly description: RecognizerDescription;
  /** Begins an utterance. @throws RecognizerError */
  begin(options: UtteranceOptions): Promise<void>;
  /**
   * Adds 16 kHz mono samples, whose buffer the recognizer takes over. Resolves when they are recognised, which gives
   * backpressure.
   */
  write(samples: Int16Array<ArrayBuffer>): Promise<void>;
  /**
   * Call when speech pauses and the utterance is probably over. Concludes the audio so far, so that `finish` is fast.
   * More audio may follow. Absent in engines without such work.
   */
  pause?(): Promise<void>;
  /** The text so far; null if the engine only recognises whole utterances, or has no text yet. */
  hypothesis(): Promise<Hypothesis | null>;
  /** Ends the utterance. Times count from its first sample. The text is '' if nothing was recognised. */
  finish(): Promise<Recognition>;
  /** Discards the utterance. Idempotent. */
  cancel(): Promise<void>;
  /** Idempotent. */
  close(): Promise<void>;
  /**
   * Another recognizer in the same process with the same loaded model, for a concurrent utterance. Present if
   * `utterancesAtOnce` is more than 1. Closes with this one; do not close it separately.
   */
  beside?(): Recognizer;
}

export interface Hypothesis {
  text: string;
  words: RecognisedWord[];
}

export type EngineName = 'pocketsphinx' | 'pocketsphinx-native' | 'sherpa-onnx' | 'openai';

export interface RecognizerDescription {
  engine: EngineName;
  /** Name of the model, such as `en-us`. */
  model: string;
  /** Supported ISO 639-1 codes. */
  languages: readonly string[];
  /** Whether it detects which of them is spoken. */
  detectsLanguage: boolean;
  /** Whether `hypothesis` has results during the utterance. */
  streams: boolean;
  /** Whether it uses `keywords` itself. */
  boostsKeywords: boolean;
  hasConfidence: boolean;
  /** Concurrent utterances per instance, including those of `beside`. Default 1. */
  utterancesAtOnce?: number;
}

export interface UtteranceOptions {
  /** ISO 639-1; null: detected by the engine. */
  language: string | null;
  keywords: readonly Keyword[];
  /**
   * Whether audio arrives in real time: `finish` should answer soon, and `hypothesis` may be called. Otherwise the
   * engine may wait for the whole utterance.
   */
  isLive: boolean;
}

/** A term that is likely to be spoken. */
export interface Keyword {
  /** One word or several. */
  term: string;
  /** 0 to 10; 1 is usual. */
  weight: number;
}

/** Failure of a recognizer; `code` says what the caller can do. */
export class RecognizerError extends Error {
  override readonly name = 'RecognizerError';
  readonly code: RecognizerErrorCode;
  /** Whether the same utterance may succeed elsewhere or later. */
  readonly retryable: boolean;
  readonly retryAfterS: number | null;

  constructor(
    code: RecognizerErrorCode,
    message: string,
    {
      retryable = false,
      retryAfterS = null,
      cause,
    }: { retryable?: boolean; retryAfterS?: number | null; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.retryable = retryable;
    this.retryAfterS = retryAfterS;
  }
}

export type RecognizerErrorCode =
  | 'unsupported_language'
  /** The engine's process died or broke its protocol. */
  | 'crashed'
  /** Its model is missing or damaged. */
  | 'model'
  | 'rate_limited'
  /** An upstream server failed, or cannot be reached. */
  | 'unavailable'
  | 'cancelled';

/** An installed and configured engine, which creates recognizers. */
export interface RecognitionEngine {
  readonly name: EngineName;
  /** Capabilities of what is installed, one entry per model. Cheap: loads no model. */
  describe(): Promise<readonly RecognizerDescription[]>;
  /** Why `describe` returns nothing, and what to do; null if it returns something. */
  problem?(): Promise<string | null>;
  /** Loads a model, which may take long. @throws RecognizerError `model`, `crashed` */
  load(description: RecognizerDescription): Promise<Recognizer>;
  /** Limit of parallel instances: processes for local engines, requests for upstreams. */
  readonly maxInstances: number;
}
