import type { EngineName, RecognitionEngine } from '../recognizer.ts';

export interface EngineSettings {
  /** Who is asked first. */
  preferred: 'auto' | 'pocketsphinx' | 'sherpa-onnx' | 'openai';
  /** Instances of local engines at most. */
  processes: number;
  /** Folder of models that the operator put there. */
  modelsDir: string;
  /** Where an engine may keep what it had to make of its files. */
  cacheDir: string;
  /** An OpenAI-compatible server for transcription. */
  upstream: { baseUrl: string; apiKey: string | null; model: string | null } | null;
}

export interface AvailableEngines {
  engines: readonly RecognitionEngine[];
  missing: readonly MissingEngine[];
}

/** An engine that is not there, and what to do to have it. */
export interface MissingEngine {
  engine: EngineName;
  problem: string;
}

/** The engines that are installed and configured. Loads no model. */
export async function createEngines(settings: EngineSettings): Promise<AvailableEngines> {
  void settings;
  return { engines: [], missing: [] };
}
