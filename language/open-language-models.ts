import type { Clock } from '../runtime/clock.ts';
import type { LanguageEngine } from './engine.ts';
import { createLanguageModels } from './llm.engines.ts';
import type { LanguageModels } from './llm.ts';

/** As `settings.ts` has them. */
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
  /** Told when the process of a model file ends or does not start; for a log. */
  onTrouble?: (detail: string) => void;
}

/** The models of the server, and that of the file; neither is asked before somebody needs it. */
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
    // It names a model of the server.
    usualModel: baseUrl === null ? null : settings.llmModel,
    aliases: settings.llmAliases,
    concurrency,
    clock,
  });
}
