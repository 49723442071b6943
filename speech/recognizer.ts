import type { RecognisedWord, Recognition } from '../machines/utterances.ts';

/**
 * One instance of a recognition engine. It does one utterance at a time and remembers nothing of the last. Those that
 * run native or foreign code do so in a child process and are reached through the same interface. `beside` makes
 * another one of the same process.
 */
export interface Recognizer {
  readonly description: RecognizerDescription;
  /** Begins an utterance. @throws RecognizerError */
  begin(options: UtteranceOptions): Promise<void>;
  /** 16 kHz mono samples, which the recognizer takes over. Resolves when they are recognised: whoever waits does not flood it. */
  write(samples: Int16Array<ArrayBuffer>): Promise<void>;
  /** What is understood so far; null when the engine recognises whole utterances only, or nothing so far. */
  hypothesis(): Promise<Hypothesis | null>;
  /** Ends the utterance. Times count from its first sample. A text of '' is a result: nothing was understood. */
  finish(): Promise<Recognition>;
  /** Forgets the utterance. Idempotent. */
  cancel(): Promise<void>;
  /** Idempotent. */
  close(): Promise<void>;
  /**
   * Another recognizer that shares the process and the loaded model, for one utterance at the same time; where
   * `utterancesAtOnce` is more than 1. It ends with this one: close only this one.
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
  /** ISO 639-1 codes it understands. */
  languages: readonly string[];
  /** Whether it can tell which of them it hears. */
  detectsLanguage: boolean;
  /** Whether `hypothesis` answers while the utterance goes on. */
  streams: boolean;
  /** Whether it has a use for `keywords` itself. */
  boostsKeywords: boolean;
  hasConfidence: boolean;
  /** How many utterances one instance recognises at the same time, those of `beside` included. Default 1. */
  utterancesAtOnce?: number;
}

export interface UtteranceOptions {
  /** ISO 639-1; null lets the engine find out. */
  language: string | null;
  keywords: readonly Keyword[];
  /**
   * Whether it is written as it is spoken: `finish` is to answer soon, and `hypothesis` may be asked for. Otherwise an engine may hear
   * all of the utterance before it decodes.
   */
  isLive: boolean;
}

/** A term that is likely to be said. */
export interface Keyword {
  /** One word or several. */
  term: string;
  /** 1 is usual; 0 to 10. */
  weight: number;
}

/** How a recognizer failed; `code` says what whoever asked may do. */
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
  /** An upstream server limits us. */
  | 'rate_limited'
  /** An upstream server failed, or cannot be reached. */
  | 'unavailable'
  | 'cancelled';

/** An engine that is installed and configured: makes recognizers. */
export interface RecognitionEngine {
  readonly name: EngineName;
  /** What it can do with what is installed; several entries when it has several models. Cheap: loads no model. */
  describe(): Promise<readonly RecognizerDescription[]>;
  /** Why `describe` answers nothing, and what to do about it; null when it does. */
  problem?(): Promise<string | null>;
  /** Loads a model. Takes as long as that takes. @throws RecognizerError `model`, `crashed` */
  load(description: RecognizerDescription): Promise<Recognizer>;
  /** How many may run side by side at most: processes for local engines, requests for upstreams. */
  readonly maxInstances: number;
}
