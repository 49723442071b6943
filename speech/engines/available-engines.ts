import { join } from 'node:path';
import type { SpeakerEmbedder } from '../diarization/diarizer.ts';
import type { EngineName, RecognitionEngine } from '../recognizer.ts';
import { createNativePocketsphinxEngine, createPocketsphinxEngine } from './pocketsphinx/pocketsphinx-engine.ts';
import { createSherpaEngine } from './sherpa-onnx/sherpa-engine.ts';
import { createSpeakerEmbedder, findSpeakerModel } from './sherpa-onnx/speaker-embedder.ts';

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

/** The part of the configuration that engines are made of. */
export interface EngineConfig {
  sttEngine: EngineSettings['preferred'];
  sttProcesses: number;
  sttBaseUrl: string | null;
  sttApiKey: string | null;
  sttModel: string | null;
  modelsDir: string;
  dataDir: string;
}

export function engineSettingsOf(config: EngineConfig): EngineSettings {
  const { sttBaseUrl: baseUrl, sttApiKey: apiKey, sttModel } = config;
  return {
    preferred: config.sttEngine,
    processes: config.sttProcesses,
    modelsDir: config.modelsDir,
    cacheDir: join(config.dataDir, 'cache'),
    upstream: baseUrl === null ? null : { baseUrl, apiKey, model: sttModel },
  };
}

/** The engines that are installed and configured. Loads no model. */
export async function createEngines(settings: EngineSettings): Promise<AvailableEngines> {
  const { processes, modelsDir, cacheDir, upstream } = settings;
  const engines: RecognitionEngine[] = [
    createNativePocketsphinxEngine({ processes }),
    createPocketsphinxEngine({ processes, cacheDir }),
    createSherpaEngine({ modelsDir, processes }),
  ];
  const missing: MissingEngine[] = [];
  if (upstream === null) missing.push({ engine: 'openai', problem: 'no server is configured: set STT_BASE_URL' });
  else {
    const { createOpenAiEngine } = await import('./openai/openai-engine.ts');
    engines.push(
      createOpenAiEngine({ ...upstream, model: upstream.model ?? UPSTREAM_MODEL, maxRequests: UPSTREAM_REQUESTS }),
    );
  }
  const speakerModel = await findSpeakerModel(modelsDir);
  return { engines, missing, embedder: speakerModel === null ? null : createSpeakerEmbedder(speakerModel) };
}

/** Why an engine has no model; null when it has. */
export async function problemOf(engine: RecognitionEngine): Promise<string | null> {
  if (engine.problem !== undefined) return await engine.problem();
  return (await engine.describe()).length === 0 ? NO_MODEL : null;
}

const NO_MODEL = 'no model yet: tandem models list shows which there are, tandem models fetch brings one';

/** The name that servers know which have one model only, or several of OpenAI's. */
const UPSTREAM_MODEL = 'whisper-1';
/** Utterances that may be on their way to it at a time. */
const UPSTREAM_REQUESTS = 16;
