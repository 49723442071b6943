import type { SynthesisSettings } from '../engines/available-synthesizers.ts';
import type { AvailableVoice, SpeakRequest, SpokenPart, SynthesisEngineStatus } from '../speech-synthesis.ts';

/** What crosses between the main thread and the synthesis thread. */
export interface SynthesisThread {
  data: ThreadData;
  ready: SynthesisDescribed;
  calls: SynthesisCalls;
  reports: ThreadReport;
  notices: never;
}

interface ThreadData {
  settings: SynthesisSettings;
  /** Module whose `createSynthesisEngines` makes the engines. */
  enginesModule: string;
}

interface SynthesisCalls {
  /** Begins to speak. */
  'stream.open': { request: { streamKey: number; request: SpeakRequest }; answer: undefined };
  /** One at a time. Null once all is said. */
  'stream.next': { request: { streamKey: number }; answer: SpokenPart | null };
  /** Also of one that is over. */
  'stream.close': { request: { streamKey: number }; answer: undefined };
  'engines.describe': { request: object; answer: SynthesisDescribed };
}

export interface SynthesisDescribed {
  voices: AvailableVoice[];
  engines: SynthesisEngineStatus[];
}

export type ThreadReport =
  /** A synthesizer died, or could not be started. */
  { type: 'synthesizer.broken'; model: string; detail: string } | { type: 'cache.troubled'; detail: string };
