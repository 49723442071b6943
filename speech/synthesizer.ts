import type { ScriptWord } from './text/script.ts';

/** A synthesis engine that is installed and configured: says what voices it has and makes instances. */
export interface SynthesisEngine {
  readonly name: SynthesisEngineName;
  /** Where its models are, if not here: two servers may have different ones of the same name. */
  readonly source?: string;
  /** Whether its instances heed `pitchSemitones` and `pitchRange`; effects do it for those that cannot. */
  readonly controlsPitch: boolean;
  /** How many may run side by side at most: processes for local engines, requests for upstreams. */
  readonly maxInstances: number;
  /** What it can speak with what is installed. Cheap: loads no model. */
  voices(): Promise<readonly EngineVoice[]>;
  /** Why `voices` answers nothing, and what to do about it; null when it does. */
  problem(): Promise<string | null>;
  /** Makes an instance. Aborting ends it at once, also later. @throws SynthesizerError */
  start(options: { model: string; signal: AbortSignal }): Promise<Synthesizer>;
}

export type SynthesisEngineName = 'espeak-ng' | 'sherpa-onnx' | 'openai';

export interface EngineVoice {
  /** As the engine names it, such as `en-us+f3`; unique in the engine. */
  name: string;
  /** What an instance must be started with to speak it. The same name stands for the same bytes. */
  model: string;
  /** BCP 47 in lower case, such as `en-us`. */
  language: string;
  gender: 'female' | 'male' | null;
  /** Whether it takes a `reference` and then sounds like that. */
  clones: boolean;
}

/** One instance of an engine: speaks one clause at a time. Local ones live in child processes. */
export interface Synthesizer {
  readonly sampleRateHz: number;
  /**
   * As fast as it is made, and no faster than it is taken. Whoever stops taking ends it; the instance can then be asked
   * for another clause. Something always comes of a clause, if only silence.
   * @throws SynthesizerError, the signal's reason
   */
  speak(clause: Clause, signal: AbortSignal): AsyncIterable<SpokenBlock>;
  /**
   * Resolves when it is done with what it was asked, also what nobody takes any more: until then the next clause waits.
   * Not there where nothing is made that nobody takes.
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
  /** Factor on the pace at which the voice speaks by itself, 0.2 to 5; engines keep to what they can. */
  speed: number;
  /** Above the voice's own pitch. */
  pitchSemitones: number;
  /** Factor on how far the pitch goes up and down: 0 is monotone, 1 the voice's own. */
  pitchRange: number;
  /** For voices that clone. */
  reference: VoiceReference | null;
}

export interface VoiceReference {
  /** A WAV file, mono, 16 bit. */
  path: string;
  /** What is said in it. */
  text: string;
}

export interface SpokenBlock {
  samples: Int16Array<ArrayBuffer>;
  /**
   * Where words begin, by their index in the clause, in milliseconds from its first sample. May come with a later block
   * than the word itself, and for some words or engines not at all.
   */
  marks: readonly WordMark[];
}

export interface WordMark {
  word: number;
  atMs: number;
}

/** Times count from the first sample of whatever it is a part of. */
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
  /** The clause would be spoken for minutes; parts of it may be spoken. */
  | 'too_long'
  /** Nothing of the text is anything that the voice has a sound for, such as letters of another script. */
  | 'unsayable'
  /** The instance is gone. */
  | 'crashed'
  /** Its model is missing or damaged. */
  | 'model'
  /** An upstream server limits us, failed, or cannot be reached. */
  | 'unavailable';
