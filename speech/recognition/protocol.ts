import type { MessagePort } from 'node:worker_threads';
import type { ErrorCode } from '../../machines/errors.ts';
import type { RecognitionEvent } from '../../machines/utterances.ts';
import type { EngineSettings } from '../engines/available-engines.ts';
import type { EngineStatus, RecognitionLanguage, RecognitionSettings } from '../speech-recognition.ts';

/**
 * All that crosses between the main thread and the speech thread. Requests are answered once each, with `done` or
 * `failed`; events come whenever they happen. Audio comes on ports of its own.
 */

export interface ThreadData {
  settings: EngineSettings;
  /** Module whose `createEngines` makes the engines. */
  enginesModule: string;
}

/** What the main thread may ask, and what the answer holds. */
export interface ThreadCalls {
  'stream.open': {
    request: { streamKey: number; mode: 'live' | 'batch'; settings: RecognitionSettings; utterances: MessagePort };
    answer: StreamModel;
  };
  'stream.configure': { request: { streamKey: number; change: Partial<RecognitionSettings> }; answer: StreamModel };
  'stream.close': { request: { streamKey: number }; answer: null };
  'engines.describe': { request: object; answer: EnginesDescribed };
  /** Shows that the thread is not stuck. */
  'thread.ping': { request: object; answer: null };
  /** Closes every stream and recognizer; the thread can then be terminated. */
  'thread.drain': { request: object; answer: null };
}

export interface StreamModel {
  /** Engine and model that utterances go to, such as `pocketsphinx/en-us`. */
  model: string;
}

export interface EnginesDescribed {
  languages: RecognitionLanguage[];
  engines: EngineStatus[];
}

export type ThreadCall = keyof ThreadCalls;

export type ToThread = {
  [Call in ThreadCall]: { type: Call; requestId: number } & ThreadCalls[Call]['request'];
}[ThreadCall];

export type FromThread =
  | ({ type: 'ready' } & EnginesDescribed)
  | ThreadNotice
  | { type: 'done'; requestId: number; answer: ThreadCalls[ThreadCall]['answer'] }
  | { type: 'failed'; requestId: number; failure: ThreadFailure };

/** What it tells without being asked. */
export type ThreadNotice =
  | { type: 'event'; streamKey: number; event: RecognitionEvent }
  /** A recognizer broke and was closed. */
  | { type: 'recognizer.broken'; model: string; detail: string };

/** Errors lose their class on the way between threads, so they cross as this. */
export interface ThreadFailure {
  code: ErrorCode;
  message: string;
}
