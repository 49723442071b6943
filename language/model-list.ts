import type { Clock } from '../runtime/clock.ts';
import { LATE, within } from '../runtime/waiting.ts';
import { LanguageEngineError } from './engine.ts';
import type { LanguageModel } from './llm.ts';
import type { ResilientEngine } from './resilience/resilient-engine.ts';

export interface ListedModel {
  model: LanguageModel;
  engine: ResilientEngine;
}

export interface ModelListing {
  /** By id, in the order of engines. If two engines have the same id, the first wins. */
  models: ReadonlyMap<string, ListedModel>;
  cached: boolean;
}

/**
 * Lists the engines' models and caches the list for five minutes. Concurrent readers share one query. A list that lacks
 * an engine is not cached.
 */
export class ModelList {
  readonly #engines: readonly ResilientEngine[];
  readonly #clock: Clock;
  #kept: { models: ModelListing['models']; untilMs: number } | null = null;
  #asking: Promise<ModelListing> | null = null;
  /** The last list that any engine returned. */
  #last: ModelListing['models'] | null = null;
  /** The list without the engines that did not answer. */
  #partial: { models: ModelListing['models']; untilMs: number } | null = null;

  constructor(engines: readonly ResilientEngine[], clock: Clock) {
    this.#engines = engines;
    this.#clock = clock;
  }

  /** @throws LanguageEngineError if no engine answers */
  async read(): Promise<ModelListing> {
    if (this.#kept !== null && this.#clock.monotonicMs() < this.#kept.untilMs)
      return { models: this.#kept.models, cached: true };
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null;
    });
    return await this.#asking;
  }

  /**
   * As `read`, but falls back to the last list: a server too busy to list its models may still answer requests.
   * @throws LanguageEngineError if no engine has ever answered
   */
  async readOrLast(): Promise<ModelListing['models']> {
    try {
      return (await this.read()).models;
    } catch (error) {
      if (this.#last === null) throw error;
      return this.#last;
    }
  }

  /** As `read`, but never rejects, and waits a while before it queries a failed engine again. */
  async readIfPossible(): Promise<ModelListing['models']> {
    if (this.#partial !== null && this.#clock.monotonicMs() < this.#partial.untilMs) return this.#partial.models;
    return (await this.read().catch(() => null))?.models ?? NOTHING;
  }

  async #ask(): Promise<ModelListing> {
    const answers = await Promise.allSettled(this.#engines.map((engine) => this.#modelsOf(engine)));
    const failed = answers.filter((answer) => answer.status === 'rejected');
    const models = new Map<string, ListedModel>();
    for (const [index, engine] of this.#engines.entries()) {
      const answer = answers[index];
      for (const model of answer?.status === 'fulfilled' ? answer.value : []) {
        if (!models.has(model.id)) models.set(model.id, { model, engine });
      }
    }
    this.#partial = failed.length > 0 ? { models, untilMs: this.#clock.monotonicMs() + LEFT_IN_PEACE_MS } : null;
    if (failed[0] !== undefined && failed.length === answers.length) throw failed[0].reason;
    this.#last = models;
    this.#kept = failed.length === 0 ? { models, untilMs: this.#clock.monotonicMs() + KEPT_FOR_MS } : null;
    return { models, cached: false };
  }

  async #modelsOf(engine: ResilientEngine): Promise<LanguageModel[]> {
    const late = new AbortController();
    const models = await within(engine.models(late.signal), { ms: ANSWER_WITHIN_MS, clock: this.#clock });
    if (models !== LATE) return models;
    late.abort();
    throw new LanguageEngineError('timeout', 'the model server did not list its models in time');
  }
}

const KEPT_FOR_MS = 300_000;
const LEFT_IN_PEACE_MS = 30_000;
const NOTHING: ModelListing['models'] = new Map();
/** A large model file may have to load first. Servers have a shorter timeout of their own. */
const ANSWER_WITHIN_MS = 120_000;
