import { type LanguageEngine, LanguageEngineError, type LanguageEngineErrorCode } from '../../language/engine.ts';
import type { CompletionPart, CompletionRequest, LanguageModel } from '../../language/llm.ts';
import { modelOf } from './fake-language-models.ts';

type Turn = 'answer' | 'trickles' | 'silent' | 'breaks' | 'ends' | 'deaf' | Error;

/** An engine that plays one scripted turn per attempt, then answers normally. */
export class ScriptedEngine implements LanguageEngine {
  readonly name: string;
  listed: LanguageModel[];
  turns: Turn[] = [];
  readonly attempts: (CompletionRequest & { model: string })[] = [];
  ended = 0;
  listings = 0;
  /** Awaited before each listing; may throw. */
  onList: () => Promise<void> | void = () => undefined;
  /** Awaited between the parts of a trickling answer. */
  onTrickle: () => Promise<void> | void = () => undefined;
  isClosed = false;
  readonly #waiters = new Set<() => void>();

  constructor(name = 'scripted', ids: readonly string[] = ['tiny-1.0']) {
    this.name = name;
    this.listed = ids.map((id) => modelOf(id, { ownedBy: name }));
  }

  async models(): Promise<LanguageModel[]> {
    this.listings += 1;
    await this.onList();
    return this.listed;
  }

  async attempted(count: number): Promise<void> {
    const reached = Promise.withResolvers<void>();
    const look = () => {
      if (this.attempts.length >= count) reached.resolve();
    };
    this.#waiters.add(look);
    look();
    await reached.promise;
  }

  async *stream(request: CompletionRequest & { model: string }): AsyncGenerator<CompletionPart, void> {
    this.attempts.push(request);
    for (const look of this.#waiters) look();
    const turn = this.turns.shift() ?? 'answer';
    try {
      if (turn instanceof Error) throw turn;
      if (turn === 'ends') return;
      if (turn === 'deaf') await new Promise(() => {});
      if (turn === 'silent') await aborted(request.signal);
      yield { type: 'text', text: 'Hello.' };
      while (turn === 'trickles') {
        await this.onTrickle();
        yield { type: 'text', text: '.' };
      }
      if (turn === 'breaks') throw failureOf('unavailable');
      const usage = { promptTokens: 1, completionTokens: 1, isEstimated: false };
      yield { type: 'finished', reason: 'stop', usage, model: request.model };
    } finally {
      this.ended += 1;
    }
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

export function failureOf(code: LanguageEngineErrorCode, retryAfterS: number | null = null): LanguageEngineError {
  return new LanguageEngineError(code, 'as scripted', { retryAfterS });
}

async function aborted(signal: AbortSignal): Promise<never> {
  const gone = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => gone.reject(signal.reason));
  return await gone.promise;
}
