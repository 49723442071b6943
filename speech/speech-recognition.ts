import type { MessagePort } from 'node:worker_threads';
import type { RecognitionEvent } from '../machines/utterances.ts';
import type { EngineName, Keyword } from './recognizer.ts';

/**
 * Recognition of streams of utterances as the actors see it: engines, their processes and who gets which are behind
 * it, in a thread of their own. Implemented in `speech-recognition.thread.ts`.
 */
export interface SpeechRecognition {
  /**
   * @throws TandemError `unsupported_language`, saying which engine would understand it; `SHUTTING_DOWN`
   */
  open(options: OpenRecognitionOptions): Promise<RecognitionStream>;
  /** What can be recognised with what is installed. */
  languages(): readonly RecognitionLanguage[];
  /** What is installed and how it does; for `doctor` and health. */
  engines(): Promise<readonly EngineStatus[]>;
  /** False while its thread waits to be restarted. */
  readonly isRunning: boolean;
  close(): Promise<void>;
}

export interface RecognitionSettings {
  /** ISO 639-1 codes that may be spoken; null for any that the engines understand. */
  languages: readonly string[] | null;
  keywords: readonly Keyword[];
  /** How often the hypothesis of an open utterance is told; null for never. */
  hypothesisEveryMs: number | null;
  /** Null without diarisation. A `channel` diarisation names the channel, `voice` tells voices apart. */
  diarization: { by: 'voice' | 'channel'; minSpeakers: number | null; maxSpeakers: number | null } | null;
}

export interface OpenRecognitionOptions extends RecognitionSettings {
  streamId: string;
  /**
   * `live`: utterances are recognised while they are spoken, one after the other, and a stream that falls too far
   * behind is `overloaded`. `batch`: whole utterances side by side on all engines; nothing is ever overloaded.
   */
  mode: 'live' | 'batch';
  onEvent: (event: RecognitionEvent) => void;
  /** Aborting closes the stream at once; nothing more is told. */
  signal: AbortSignal;
}

export interface RecognitionStream {
  /** The end that a listener posts its `UtteranceMessage`s to; hand it over to the listener. */
  readonly utterances: MessagePort;
  /** Which model was chosen, such as `pocketsphinx/en-us`. */
  readonly model: string;
  /** Whether that model has a use for keywords; otherwise they only replace words that sound like them. */
  readonly boostsKeywords: boolean;
  /** Applies from the next utterance on. @throws TandemError `unsupported_language`, and nothing changes */
  configure(change: Partial<RecognitionSettings>): Promise<void>;
  /** Idempotent. */
  close(): void;
}

export interface RecognitionLanguage {
  /** ISO 639-1. */
  code: string;
  engines: readonly EngineName[];
}

export interface EngineStatus {
  engine: EngineName;
  models: readonly string[];
  /** Instances loaded, and busy of these. */
  loaded: number;
  busy: number;
  /** Seconds of work per second of audio, measured; null before anything was recognised. */
  realTimeFactor: number | null;
  /** Why it cannot be used; null when it can. */
  problem: string | null;
}
