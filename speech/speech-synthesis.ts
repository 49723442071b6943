import type { EngineVoice, SpokenWord, SynthesisEngineName } from './synthesizer.ts';
import type { Script } from './text/script.ts';
import type { SpeakingStyle, VoiceRecipe } from './voices/voice-recipe.ts';

/**
 * Speech from text as the rest of the server sees it. The work is done in the synthesis thread, which has the engines'
 * processes; here only finished bytes pass.
 */
export interface SpeechSynthesis {
  /** Of every engine that is there, at the start. */
  voices(): readonly AvailableVoice[];
  /**
   * Speaks it, a little ahead of whoever takes it. Ends when all is said; whoever stops taking stops it.
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
  /** Why it has none, and what to do. */
  problem: string | null;
}

export interface SpeakRequest {
  script: Script;
  recipe: VoiceRecipe;
  /** By the index that clauses of the script have. Default: none. */
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

/** The parts' audio, one after the other, is one file or stream of the format. */
export interface SpokenPart {
  audio: Uint8Array;
  /** Words that are complete now, in order; times count from the beginning of the text. */
  words: SpokenWord[];
  /** Marks that are passed now, in order; times count from the beginning of the text. Default: none. */
  marks?: SpokenMark[];
  /** Of the text until now. */
  durationMs: number;
}

export interface SpokenMark {
  name: string;
  atMs: number;
}
