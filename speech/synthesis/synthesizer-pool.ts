import { type Clause, type SpokenClause, type Synthesizer, SynthesizerError } from '../synthesizer.ts';
import type { SpeechSynthesisOptions } from './speech-synthesis.ts';

/** Instances are started when they are first needed, and take clauses in the order in which they were asked for. */
export class SynthesizerPool {
  readonly #options: SpeechSynthesisOptions;
  readonly #closing = new AbortController();
  readonly #idle: Synthesizer[] = [];
  readonly #all = new Set<Synthesizer>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(options: SpeechSynthesisOptions) {
    this.#options = options;
  }

  /** A clause whose instance died is spoken by a new one, once. @throws SynthesizerError, the signal's reason */
  async speak(clause: Clause, signal: AbortSignal): Promise<SpokenClause> {
    await this.#turn(signal);
    try {
      signal.throwIfAborted();
      return await this.#speakBy(this.#idle.pop(), clause).catch(async (error: unknown) => {
        if (!(error instanceof SynthesizerError && error.retryable)) throw error;
        signal.throwIfAborted();
        // Others that are idle may have died of the same.
        return await this.#speakBy(undefined, clause);
      });
    } finally {
      this.#passOn();
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new SynthesizerError('crashed', 'the synthesizers are closed'));
    await Promise.all([...this.#all].map((synthesizer) => synthesizer.close()));
  }

  /** Who waits gets the turn of one who is done; who comes meanwhile does not get ahead. */
  async #turn(signal: AbortSignal): Promise<void> {
    const ended = AbortSignal.any([signal, this.#closing.signal]);
    ended.throwIfAborted();
    if (this.#running < this.#options.processes) {
      this.#running += 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = () => {
      const index = this.#waiting.indexOf(resolve);
      if (index >= 0) this.#waiting.splice(index, 1);
      reject(ended.reason);
    };
    this.#waiting.push(resolve);
    ended.addEventListener('abort', leave, { once: true });
    await promise.finally(() => ended.removeEventListener('abort', leave));
  }

  #passOn(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#running -= 1;
    else next();
  }

  async #speakBy(idle: Synthesizer | undefined, clause: Clause): Promise<SpokenClause> {
    const synthesizer = idle ?? (await this.#start());
    try {
      const spoken = await synthesizer.speak(clause);
      this.#idle.push(synthesizer);
      return spoken;
    } catch (error) {
      if (error instanceof SynthesizerError && !error.retryable) this.#idle.push(synthesizer);
      else await this.#drop(synthesizer);
      throw error;
    }
  }

  async #start(): Promise<Synthesizer> {
    const synthesizer = await this.#options.start({ signal: this.#closing.signal });
    this.#all.add(synthesizer);
    return synthesizer;
  }

  async #drop(synthesizer: Synthesizer): Promise<void> {
    this.#all.delete(synthesizer);
    await synthesizer.close();
  }
}
