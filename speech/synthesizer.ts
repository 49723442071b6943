import type { ScriptWord } from './text/script.ts';

/** An installed and configured synthesis engine: lists voices and starts instances. */
export interface SynthesisEngine {
  readonly name: SynthesisEngineName;
  /** Where its models are, if not here: two servers may have different models of the same name. */
  readonly source?: string;
  /** Whether instances apply `pitchSemitones` and `pitchRange`. If not, effects do. */
  readonly controlsPitch: boolean;
  /** Limit of parallel instances: processes for local engines, requests for upstreams. */
  readonly maxInstances: number;
  /** Voices of what is installed. Cheap: loads no model. */
  voices(): Promise<readonly EngineVoice[]>;
  /** Why `voices` returns none, and what to do; null if it returns some. */
  problem(): Promise<string | null>;
  /** Starts an instance. Aborting stops it, also later. @throws SynthesizerError */
  start(options: { model: string; signal: AbortSignal }): Promise<Synthesizer>;
}

export type SynthesisEngineName = 'espeak-ng' | 'sherpa-onnx' | 'openai';

export interface EngineVoice {
  /** The engine's name, such as `en-us+f3`; unique within the engine. */
  name: string;
  /** Model to start an instance with. The same name stands for the same bytes. */
  model: string;
  /** BCP 47 in lower case, such as `en-us`. */
  language: string;
  gender: 'female' | 'male' | null;
  /** Whether it clones the voice of a `reference`. */
  clones: boolean;
}

/** One instance of an engine, which speaks one clause at a time. Local ones live in child processes. */
export interface Synthesizer {
  readonly sampleRateHz: number;
  /**
   * Synthesises a clause, with backpressure. Ending the iteration cancels it; the instance can then take another
   * clause. There is always some audio, if only silence.
   * @throws SynthesizerError, the signal's reason
   */
  speak(clause: Clause, signal: AbortSignal): AsyncIterable<SpokenBlock>;
  /**
   * Resolves when all requested work is done, including cancelled clauses; until then the next clause waits. Absent if
   * nothing continues after a cancellation.
   */
  idle?(): Promise<void>;
  /** Idempotent. */
  close(): Promise<void>;
}

export interface Clause {
  /** Not empty. */
  words: readonly ScriptWord[];
  /** `EngineVoice.name`. */
  voice: string;
  /** Factor on the voice's own pace, 0.2 to 5. Engines may limit it. */
  speed: number;
  /** Above the voice's own pitch. */
  pitchSemitones: number;
  /** Factor on the range of the pitch: 0 is monotone, 1 the voice's own. */
  pitchRange: number;
  /** For voices that clone. */
  reference: VoiceReference | null;
}

export interface VoiceReference {
  /** A WAV file, mono, 16 bit. */
  path: string;
  /** The text spoken in it. */
  text: string;
}

export interface SpokenBlock {
  samples: Int16Array<ArrayBuffer>;
  /**
   * Starts of words, by their index in the clause, in milliseconds from its first sample. May arrive in a later block
   * than the word, or be missing for some words or engines.
   */
  marks: readonly WordMark[];
}

export interface WordMark {
  word: number;
  atMs: number;
}

/** Times count from the first sample of the enclosing clause or text. */
export interface SpokenWord {
  word: string;
  startMs: number;
  endMs: number;
}

export class SynthesizerError extends Error {
  override readonly name = 'SynthesizerError';
  readonly code: SynthesizerErrorCode;

  constructor(code: SynthesizerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** Whether another instance may succeed. */
  get retryable(): boolean {
    return this.code === 'crashed';
  }
}

export type SynthesizerErrorCode =
  | 'unknown_voice'
  /** The clause would take minutes; parts of it may work. */
  | 'too_long'
  /** The voice has no sound for anything in the text, such as letters of another script. */
  | 'unsayable'
  /** The instance is gone. */
  | 'crashed'
  /** Its model is missing or damaged. */
  | 'model'
  /** An upstream server limits us, failed, or cannot be reached. */
  | 'unavailable';
