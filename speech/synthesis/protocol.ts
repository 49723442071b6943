import type { SynthesisSettings } from '../engines/available-synthesizers.ts';
import type { AvailableVoice, SpeakRequest, SpokenPart, SynthesisEngineStatus } from '../speech-synthesis.ts';

/** What crosses between the main thread and the synthesis thread, as `engine-thread/` does it. */

export interface ThreadData {
  settings: SynthesisSettings;
  /** Module whose `createSynthesisEngines` makes the engines. */
  enginesModule: string;
}

/** What the main thread may ask, and what the answer holds. */
export interface SynthesisCalls {
  /** Begins to speak. */
  'stream.open': { request: { streamKey: number; request: SpeakRequest }; answer: null };
  /** One at a time. Null once all is said. */
  'stream.next': { request: { streamKey: number }; answer: SpokenPart | null };
  /** Also of one that is over. */
  'stream.close': { request: { streamKey: number }; answer: null };
  'engines.describe': { request: object; answer: SynthesisDescribed };
}

export interface SynthesisDescribed {
  voices: AvailableVoice[];
  engines: SynthesisEngineStatus[];
}

/** What it tells without being asked. */
export type ThreadNotice =
  /** A synthesizer died, or could not be started. */
  { type: 'synthesizer.broken'; model: string; detail: string } | { type: 'cache.troubled'; detail: string };
