import { join } from 'node:path';
import type { SpeakerEmbedder } from '../diarization/diarizer.ts';
import type { EngineName, RecognitionEngine } from '../recognizer.ts';
import { createNativePocketsphinxEngine, createPocketsphinxEngine } from './pocketsphinx/pocketsphinx-engine.ts';
import { createSherpaEngine } from './sherpa-onnx/sherpa-engine.ts';
import { createSpeakerEmbedder, findSpeakerModel } from './sherpa-onnx/speaker-embedder.ts';

export interface EngineSettings {
  /** Engine that is tried first. */
  preferred: 'auto' | 'pocketsphinx' | 'sherpa-onnx' | 'openai';
  /** Limit of local instances. */
  processes: number;
  /** The operator's folder of models. */
  modelsDir: string;
  /** Where an engine may cache what it derives from its files. */
  cacheDir: string;
  /** An OpenAI-compatible transcription server. */
  upstream: { baseUrl: string; apiKey: string | null; model: string | null } | null;
}

export interface AvailableEngines {
  engines: readonly RecognitionEngine[];
  missing: readonly MissingEngine[];
  /** Compares voices; null without a speaker model. */
  embedder: SpeakerEmbedder | null;
}

/** An unavailable engine, with advice. */
export interface MissingEngine {
  engine: EngineName;
  problem: string;
}

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

/** Creates the installed and configured engines. Loads no model. */
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

/** Why an engine has no model; null if it has one. */
export async function problemOf(engine: RecognitionEngine): Promise<string | null> {
  if (engine.problem !== undefined) return await engine.problem();
  return (await engine.describe()).length === 0 ? NO_MODEL : null;
}

const NO_MODEL = 'no model yet: tandem models list shows which there are, tandem models fetch brings one';

/** Default model name, known to servers with a single model and to OpenAI. */
const UPSTREAM_MODEL = 'whisper-1';
/** Limit of concurrent utterances at the server. */
const UPSTREAM_REQUESTS = 16;
