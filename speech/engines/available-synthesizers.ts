import { join } from 'node:path';
import type { SynthesisEngine, SynthesisEngineName } from '../synthesizer.ts';
import { createEspeakEngine } from './espeak-ng/espeak-engine.ts';
import { createOpenAiSynthesisEngine } from './openai/openai-synthesis-engine.ts';
import { createSherpaSynthesisEngine } from './sherpa-onnx/sherpa-synthesis-engine.ts';

export interface SynthesisSettings {
  /** Limit of local instances. */
  processes: number;
  /** The operator's folder of models. */
  modelsDir: string;
  /** An OpenAI-compatible speech server. */
  upstream: { baseUrl: string; apiKey: string | null; model: string | null } | null;
  /** Cache of synthesised speech; 0 bytes disable it. */
  cache: { folder: string; mostBytes: number };
}

export interface AvailableSynthesizers {
  engines: readonly SynthesisEngine[];
  missing: readonly MissingSynthesizer[];
}

/** An unavailable engine, with advice. */
export interface MissingSynthesizer {
  engine: SynthesisEngineName;
  problem: string;
}

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

/** Creates the installed and configured engines. Loads no model and contacts no server. */
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

/** Default model name, known to servers with a single model and to OpenAI. */
const UPSTREAM_MODEL = 'tts-1';
/** Limit of concurrent clauses at the server. */
const UPSTREAM_REQUESTS = 16;
