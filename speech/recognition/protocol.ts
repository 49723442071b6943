import type { MessagePort } from 'node:worker_threads';
import type { RecognitionEvent } from '../../machines/utterances.ts';
import type { EngineSettings } from '../engines/available-engines.ts';
import type { EngineStatus, RecognitionLanguage, RecognitionSettings } from '../speech-recognition.ts';
import type { LiveLoadReading } from './live-load.ts';

/** Messages between the main thread and the speech thread. Audio has ports of its own. */
export interface RecognitionThread {
  data: ThreadData;
  ready: EnginesDescribed;
  calls: RecognitionCalls;
  reports: ThreadReport;
  notices: never;
}

interface ThreadData {
  settings: EngineSettings;
  /** Module whose `createEngines` creates the engines. */
  enginesModule: string;
}

interface RecognitionCalls {
  'stream.open': {
    request: {
      streamKey: number;
      mode: 'live' | 'batch';
      isPromised: boolean;
      settings: RecognitionSettings;
      utterances: MessagePort;
    };
    answer: StreamModel;
  };
  'stream.configure': { request: { streamKey: number; change: Partial<RecognitionSettings> }; answer: StreamModel };
  'stream.close': { request: { streamKey: number }; answer: undefined };
  'engines.describe': { request: object; answer: EnginesDescribed };
}

export interface StreamModel {
  /** Chosen engine and model, such as `pocketsphinx/en-us`. */
  model: string;
  /** Whether the model uses keywords itself. */
  boostsKeywords: boolean;
}

export interface EnginesDescribed {
  languages: RecognitionLanguage[];
  engines: EngineStatus[];
}

export type ThreadReport =
  | ({ type: 'load' } & LiveLoadReading)
  | { type: 'event'; streamKey: number; event: RecognitionEvent }
  /** A recognizer broke and was closed. */
  | { type: 'recognizer.broken'; model: string; detail: string };
