import type { Clock } from '../runtime/clock.ts';
import type { LanguageEngine } from './engine.ts';
import { createLanguageModels } from './llm.engines.ts';
import type { LanguageModels } from './llm.ts';

export interface LanguageSettings {
  llmBaseUrl: string | null;
  llmApiKey: string | null;
  llmModel: string | null;
  llmModelPath: string | null;
  llmAliases: ReadonlyMap<string, string>;
  llmConcurrency: number;
}

export interface OpenLanguageModelsOptions {
  clock: Clock;
  /** Called when the process of a model file exits or fails to start; for logs. */
  onTrouble?: (detail: string) => void;
}

/** Opens the configured server and model file. Neither is contacted before the first request. */
export async function openLanguageModels(
  settings: LanguageSettings,
  { clock, onTrouble }: OpenLanguageModelsOptions,
): Promise<LanguageModels> {
  const { llmBaseUrl: baseUrl, llmApiKey: apiKey, llmModelPath: modelPath, llmConcurrency: concurrency } = settings;
  const engines: LanguageEngine[] = [];
  if (baseUrl !== null) {
    const { createOpenAiLanguageEngine } = await import('./engines/openai/openai-engine.ts');
    engines.push(createOpenAiLanguageEngine({ baseUrl, apiKey }));
  }
  if (modelPath !== null) {
    const { createLlamaEngine } = await import('./engines/llama/llama-engine.ts');
    engines.push(createLlamaEngine({ modelPath, concurrency, ...(onTrouble && { onTrouble }) }));
  }
  return createLanguageModels({
    engines,
    // The setting names a model of the server.
    usualModel: baseUrl === null ? null : settings.llmModel,
    aliases: settings.llmAliases,
    concurrency,
    clock,
  });
}
