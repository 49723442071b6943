import type { MessagePort } from 'node:worker_threads';
import type { RecognitionEvent } from '../machines/utterances.ts';
import type { EngineName, Keyword } from './recognizer.ts';

/**
 * Recognises streams of utterances. Engines, their processes and scheduling run in a thread behind it. Implemented in
 * `speech-recognition.thread.ts`.
 */
export interface SpeechRecognition {
  /**
   * Opens a stream.
   * @throws TandemError `unsupported_language`, which names engines that would understand it; `STT_OVERLOADED` if the
   * recognizers could not keep up with another live stream; `SHUTTING_DOWN`
   */
  open(options: OpenRecognitionOptions): Promise<RecognitionStream>;
  languages(): readonly RecognitionLanguage[];
  /** State of the installed engines, for `doctor` and health. */
  engines(): Promise<readonly EngineStatus[]>;
  /**
   * Load of the recognizers with `more` additional live streams, as a share of their capacity. Above 1, another live
   * stream is rejected.
   */
  liveLoad(more: number): number;
  /** False while its thread waits to be restarted. */
  readonly isRunning: boolean;
  close(): Promise<void>;
}

export interface RecognitionSettings {
  /** ISO 639-1 codes that may be spoken; null for any that the engines understand. */
  languages: readonly string[] | null;
  keywords: readonly Keyword[];
  /** Interval of hypotheses of an open utterance; null for none. */
  hypothesisEveryMs: number | null;
  /** Null without diarisation. `channel` labels by channel, `voice` distinguishes voices. */
  diarization: { by: 'voice' | 'channel'; minSpeakers: number | null; maxSpeakers: number | null } | null;
}

export interface OpenRecognitionOptions extends RecognitionSettings {
  streamId: string;
  /**
   * `live`: utterances are recognised while spoken, in order, and a stream that falls too far behind is `overloaded`.
   * `batch`: whole utterances run in parallel on all engines, and are never overloaded.
   */
  mode: 'live' | 'batch';
  onEvent: (event: RecognitionEvent) => void;
  /** Opens a live stream even if the recognizers are busy. Default false. */
  isPromised?: boolean;
  /** Aborting closes the stream at once, without further events. */
  signal: AbortSignal;
}

export interface RecognitionStream {
  /** Port for the listener, which posts `UtteranceMessage`s to it. */
  readonly utterances: MessagePort;
  /** The chosen model, such as `pocketsphinx/en-us`. */
  readonly model: string;
  /** Whether the model uses keywords. Otherwise they only replace words that sound alike. */
  readonly boostsKeywords: boolean;
  /** Applies from the next utterance. @throws TandemError `unsupported_language`, without any change */
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
  /** Loaded instances, and how many are busy. */
  loaded: number;
  busy: number;
  /** Measured seconds of work per second of audio; null before the first recognition. */
  realTimeFactor: number | null;
  /** Why the engine cannot be used; null if it can. */
  problem: string | null;
}
