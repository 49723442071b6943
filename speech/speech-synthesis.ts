import type { EngineVoice, SpokenWord, SynthesisEngineName } from './synthesizer.ts';
import type { Script } from './text/script.ts';
import type { SpeakingStyle, VoiceRecipe } from './voices/voice-recipe.ts';

/** Synthesises speech. The synthesis thread and its engine processes do the work; only encoded bytes pass here. */
export interface SpeechSynthesis {
  /** Voices of every engine available at the start. */
  voices(): readonly AvailableVoice[];
  /**
   * Synthesises a text, slightly ahead of its consumer. Ending the iteration stops it.
   * @throws SynthesizerError, the signal's reason
   */
  speak(request: SpeakRequest, signal: AbortSignal): AsyncGenerator<SpokenPart, void>;
  /** For `doctor`. */
  engines(): Promise<readonly SynthesisEngineStatus[]>;
  /** False while its thread waits to be restarted. */
  readonly isRunning: boolean;
  close(): Promise<void>;
}

export interface AvailableVoice extends EngineVoice {
  engine: SynthesisEngineName;
}

export interface SynthesisEngineStatus {
  engine: SynthesisEngineName;
  voices: number;
  /** Why there are no voices, and what to do. */
  problem: string | null;
}

export interface SpeakRequest {
  script: Script;
  recipe: VoiceRecipe;
  /** By the `voice` index of the script's clauses. Default: none. */
  voices?: readonly VoiceRecipe[];
  style: SpeakingStyle;
  format: SpeechFormat;
}

/** Mono. LINEAR16 is 16 bit, little-endian, without a header. */
export interface SpeechFormat {
  encoding: SpeechEncoding;
  sampleRateHz: number;
}

export const SPEECH_ENCODINGS = ['LINEAR16', 'MULAW', 'ALAW', 'MP3', 'OGG_OPUS'] as const;
export type SpeechEncoding = (typeof SPEECH_ENCODINGS)[number];

/** A chunk of audio. The chunks in order form one file or stream of the format. */
export interface SpokenPart {
  audio: Uint8Array;
  /** Words completed by this chunk, in order; times from the beginning of the text. */
  words: SpokenWord[];
  /** Marks passed by this chunk, in order; times from the beginning of the text. Default: none. */
  marks?: SpokenMark[];
  /** Duration of the text so far. */
  durationMs: number;
}

export interface SpokenMark {
  name: string;
  atMs: number;
}
