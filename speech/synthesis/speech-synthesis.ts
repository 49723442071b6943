import type { SpeechFormat, SpokenClause, Synthesizer } from '../synthesizer.ts';
import { clausesOf } from './clauses.ts';
import { SynthesizerPool } from './synthesizer-pool.ts';

/** Speech from text, clause by clause: the next is made while its listener has the last. */
export interface SpeechSynthesis {
  /**
   * Ends when all is said. Whoever stops listening stops it.
   * @throws SynthesizerError, the signal's reason when aborted
   */
  speak(request: SpeakRequest, signal: AbortSignal): AsyncGenerator<SpokenClause, void>;
  close(): Promise<void>;
}

export interface SpeakRequest {
  text: string;
  /** As the engine names it. */
  voice: string;
  wordsPerMinute: number;
  format: SpeechFormat;
}

export interface SpeechSynthesisOptions {
  /** How many may run side by side, a process each. */
  processes: number;
  start: (options: { signal: AbortSignal }) => Promise<Synthesizer>;
}

export function createSpeechSynthesis(options: SpeechSynthesisOptions): SpeechSynthesis {
  const pool = new SynthesizerPool(options);
  return {
    async *speak({ text, ...how }, signal) {
      const [first, ...rest] = clausesOf(text);
      if (first === undefined) return;
      const say = (clause: string) => pool.speak({ ...how, text: clause }, signal);
      let next = say(first);
      for (const clause of rest) {
        const spoken = await next;
        next = say(clause);
        // Its failure is met when it is waited for, or not at all when nobody listens any more.
        next.catch(() => {});
        yield spoken;
      }
      yield await next;
    },
    close: () => pool.close(),
  };
}
