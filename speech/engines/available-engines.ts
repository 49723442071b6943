import type { SpeakerEmbedder } from '../diarization/diarizer.ts';
import type { EngineName, RecognitionEngine } from '../recognizer.ts';
import { createSherpaEngine } from './sherpa-onnx/sherpa-engine.ts';

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
  /** Compares voices; null where no model does. */
  embedder: SpeakerEmbedder | null;
}

/** An engine that is not there, and what to do to have it. */
export interface MissingEngine {
  engine: EngineName;
  problem: string;
}

/** The engines that are installed and configured. Loads no model. */
export async function createEngines(settings: EngineSettings): Promise<AvailableEngines> {
  const { processes, modelsDir } = settings;
  return { engines: [createSherpaEngine({ modelsDir, processes })], missing: [], embedder: null };
}
