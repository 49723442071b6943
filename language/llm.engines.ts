import { TandemError } from '../machines/errors.ts';
import type { Clock } from '../runtime/clock.ts';
import { collectCompletion } from './collect-completion.ts';
import { type LanguageEngine, LanguageEngineError } from './engine.ts';
import { refusalOf } from './language-refusal.ts';
import type { Completion, CompletionPart, CompletionRequest, LanguageModel, LanguageModels } from './llm.ts';
import { type ListedModel, ModelList } from './model-list.ts';
import { ResilientEngine } from './resilience/resilient-engine.ts';

export interface LanguageModelsOptions {
  /** The first engine has the default model. [] if nothing is configured. */
  engines: readonly LanguageEngine[];
  /** Default model of the first engine, listed or not; null: the first model that it lists. */
  usualModel: string | null;
  /** Aliases that the operator configured. They take precedence over ids and built-in aliases. */
  aliases: ReadonlyMap<string, string>;
  /** Concurrent answers per model. */
  concurrency: number;
  clock: Clock;
}

/** Built-in aliases: the default model for chats, and the one for judging. */
const USUAL_NAMES = ['svc-tiny', 'jev-latest'] as const;

export function createLanguageModels(options: LanguageModelsOptions): LanguageModels {
  return new ModelsOfEngines(options);
}

class ModelsOfEngines implements LanguageModels {
  readonly #engines: readonly ResilientEngine[];
  readonly #list: ModelList;
  readonly #usual: string | null;
  readonly #aliases: ReadonlyMap<string, string>;

  constructor({ engines, usualModel, aliases, ...resilience }: LanguageModelsOptions) {
    this.#engines = engines.map((engine) => new ResilientEngine(engine, resilience));
    this.#list = new ModelList(this.#engines, resilience.clock);
    this.#usual = usualModel === null ? null : (aliases.get(usualModel) ?? usualModel);
    this.#aliases = aliases;
  }

  async list() {
    if (this.#engines.length === 0) return { models: [], cached: false };
    const { models, cached } = await this.#list.read().catch(refuse);
    const listed = [...models.values()].map(({ model }) => model);
    const unlisted = this.#configured().filter((id) => !models.has(id));
    return { models: [...unlisted.map(asConfigured), ...listed], cached };
  }

  async aliases() {
    const usual = await this.#usualModel().catch(() => null);
    const names = usual === null ? [] : USUAL_NAMES.map((name) => [name, usual.model.id] as const);
    return new Map([...names, ...(this.#engines.length === 0 ? [] : this.#aliases)]);
  }

  async resolve(name: string | null): Promise<LanguageModel> {
    return (await this.#find(name)).model;
  }

  async *stream(request: CompletionRequest): AsyncGenerator<CompletionPart, void> {
    const { model, engine } = await this.#find(request.model);
    request.signal.throwIfAborted();
    try {
      for await (const part of engine.stream({ ...request, model: model.id })) {
        // Some servers and models ignore the option.
        if (request.parallelToolCalls === false && part.type === 'toolCall' && part.index > 0) continue;
        yield part;
        if (part.type === 'finished') return;
      }
      throw new LanguageEngineError('unavailable', 'the language model broke off');
    } catch (error) {
      request.signal.throwIfAborted();
      throw refusalOf(error);
    }
  }

  async complete(request: CompletionRequest): Promise<Completion> {
    return await collectCompletion(this.stream(request));
  }

  async close(): Promise<void> {
    await Promise.all(this.#engines.map(({ engine }) => engine.close()));
  }

  async #find(name: string | null): Promise<ListedModel> {
    // No name means the default alias, which the operator may have pointed at another model.
    const aliased = this.#aliases.get(name ?? USUAL_NAMES[0]);
    if (aliased !== undefined) return await this.#ofId(aliased);
    if (name === null || USUAL_NAMES.some((usual) => usual === name)) return await this.#usualModel();
    return await this.#ofId(name);
  }

  async #usualModel(): Promise<ListedModel> {
    if (this.#usual !== null) return await this.#ofId(this.#usual);
    const engine = this.#usualEngine();
    const models = await this.#list.readOrLast().catch(refuse);
    const first = [...models.values()].find((listed) => listed.engine === engine);
    if (first !== undefined) return first;
    throw new TandemError(
      'LLM_UNAVAILABLE',
      'The model server lists no model or does not respond. Load a model there, or set LLM_MODEL.',
      {
        retryAfterS: LIST_RETRY_AFTER_S,
      },
    );
  }

  /** Resolves a model that the operator named, even if the server does not list it or cannot be reached. */
  async #ofId(id: string): Promise<ListedModel> {
    const engine = this.#usualEngine();
    const isConfigured = this.#configured().includes(id);
    const models = await (isConfigured ? this.#list.readIfPossible() : this.#list.readOrLast().catch(refuse));
    const listed = models.get(id);
    if (listed !== undefined) return listed;
    if (isConfigured) return { model: asConfigured(id), engine };
    throw new TandemError('MODEL_NOT_FOUND', 'No model has this id. GET /models lists the available ones.');
  }

  #configured(): string[] {
    return [...new Set([...(this.#usual === null ? [] : [this.#usual]), ...this.#aliases.values()])];
  }

  #usualEngine(): ResilientEngine {
    const [engine] = this.#engines;
    if (engine !== undefined) return engine;
    throw new TandemError(
      'LLM_NOT_CONFIGURED',
      'No language model is configured. Set LLM_BASE_URL to the address of an OpenAI-compatible server, such as ' +
        'http://127.0.0.1:11434/v1, with LLM_API_KEY where it wants a key and LLM_MODEL to choose a model; or set ' +
        'LLM_MODEL_PATH to a GGUF file.',
    );
  }
}

const LIST_RETRY_AFTER_S = 30;

function asConfigured(id: string): LanguageModel {
  const description = `${id}, which the settings name and the server does not list`;
  return { id, created: 0, ownedBy: 'unknown', description, contextTokens: null };
}

function refuse(error: unknown): never {
  throw refusalOf(error);
}
