import { join } from 'node:path';
import type { SynthesisEngine, SynthesisEngineName } from '../synthesizer.ts';
import { createEspeakEngine } from './espeak-ng/espeak-engine.ts';
import { createOpenAiSynthesisEngine } from './openai/openai-synthesis-engine.ts';
import { createSherpaSynthesisEngine } from './sherpa-onnx/sherpa-synthesis-engine.ts';

export interface SynthesisSettings {
  /** Instances of local engines at most. */
  processes: number;
  /** Folder of models that the operator put there. */
  modelsDir: string;
  /** An OpenAI-compatible server for speech. */
  upstream: { baseUrl: string; apiKey: string | null; model: string | null } | null;
  /** Speech that is kept to be said again; no bytes for none. */
  cache: { folder: string; mostBytes: number };
}

export interface AvailableSynthesizers {
  engines: readonly SynthesisEngine[];
  missing: readonly MissingSynthesizer[];
}

/** An engine that is not there, and what to do to have it. */
export interface MissingSynthesizer {
  engine: SynthesisEngineName;
  problem: string;
}

/** The part of the configuration that synthesis is made of. */
export interface SynthesisConfig {
  ttsProcesses: number;
  ttsBaseUrl: string | null;
  ttsApiKey: string | null;
  ttsModel: string | null;
  ttsCacheMb: number;
  modelsDir: string;
  dataDir: string;
}

export function synthesisSettingsOf(config: SynthesisConfig): SynthesisSettings {
  const { ttsBaseUrl: baseUrl, ttsApiKey: apiKey, ttsModel: model } = config;
  return {
    processes: config.ttsProcesses,
    modelsDir: config.modelsDir,
    upstream: baseUrl === null ? null : { baseUrl, apiKey, model },
    cache: { folder: join(config.dataDir, 'cache', 'speech'), mostBytes: config.ttsCacheMb * 1_000_000 },
  };
}

/** The engines that are installed and configured. Loads no model, asks no server. */
export async function createSynthesisEngines({
  processes,
  modelsDir,
  upstream,
}: SynthesisSettings): Promise<AvailableSynthesizers> {
  const engines: SynthesisEngine[] = [
    createEspeakEngine({ processes }),
    createSherpaSynthesisEngine({ modelsDir, processes }),
  ];
  const missing: MissingSynthesizer[] = [];
  if (upstream === null) missing.push({ engine: 'openai', problem: 'no server is configured: set TTS_BASE_URL' });
  else {
    const model = upstream.model ?? UPSTREAM_MODEL;
    engines.push(createOpenAiSynthesisEngine({ ...upstream, model, maxRequests: UPSTREAM_REQUESTS }));
  }
  return { engines, missing };
}

/** The name that servers know which have one model only, or several of OpenAI's. */
const UPSTREAM_MODEL = 'tts-1';
/** Clauses that may be on their way to it at a time. */
const UPSTREAM_REQUESTS = 16;
