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

  /** A clause whose instance died is spoken by another one, once. @throws SynthesizerError, the signal's reason */
  async speak(clause: Clause, signal: AbortSignal): Promise<SpokenClause> {
    await this.#turn(signal);
    try {
      return await this.#speakOnce(clause).catch(async (error: unknown) => {
        if (!(error instanceof SynthesizerError && error.retryable)) throw error;
        signal.throwIfAborted();
        return await this.#speakOnce(clause);
      });
    } finally {
      this.#running -= 1;
      this.#waiting.shift()?.();
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new SynthesizerError('crashed', 'the synthesizers are closed'));
    for (const wake of this.#waiting.splice(0)) wake();
    await Promise.all([...this.#all].map((synthesizer) => synthesizer.close()));
  }

  async #turn(signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      this.#closing.signal.throwIfAborted();
      if (this.#running < this.#options.processes) break;
      await this.#woken(signal);
    }
    this.#running += 1;
  }

  /** Until a turn is free, or the signal aborts. */
  async #woken(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    const leave = () => {
      const index = this.#waiting.indexOf(resolve);
      if (index >= 0) this.#waiting.splice(index, 1);
      resolve();
    };
    signal.addEventListener('abort', leave, { once: true });
    await promise;
    signal.removeEventListener('abort', leave);
    // A turn that was given to one who has left is the next one's.
    if (signal.aborted && this.#running < this.#options.processes) this.#waiting.shift()?.();
  }

  async #speakOnce(clause: Clause): Promise<SpokenClause> {
    const synthesizer = this.#idle.pop() ?? (await this.#start());
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
