import type { SynthesisSettings } from '../engines/available-synthesizers.ts';
import type { AvailableVoice, SpeakRequest, SpokenPart, SynthesisEngineStatus } from '../speech-synthesis.ts';

/** Messages between the main thread and the synthesis thread. */
export interface SynthesisThread {
  data: ThreadData;
  ready: SynthesisDescribed;
  calls: SynthesisCalls;
  reports: ThreadReport;
  notices: never;
}

interface ThreadData {
  settings: SynthesisSettings;
  /** Module whose `createSynthesisEngines` creates the engines. */
  enginesModule: string;
}

interface SynthesisCalls {
  /** Starts synthesis. */
  'stream.open': { request: { streamKey: number; request: SpeakRequest }; answer: undefined };
  /** One at a time. Null at the end. */
  'stream.next': { request: { streamKey: number }; answer: SpokenPart | null };
  /** Also valid after the end. */
  'stream.close': { request: { streamKey: number }; answer: undefined };
  'engines.describe': { request: object; answer: SynthesisDescribed };
}

export interface SynthesisDescribed {
  voices: AvailableVoice[];
  engines: SynthesisEngineStatus[];
}

export type ThreadReport =
  /** A synthesizer died or could not be started. */
  { type: 'synthesizer.broken'; model: string; detail: string } | { type: 'cache.troubled'; detail: string };
