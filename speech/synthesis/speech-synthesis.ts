import { type SpeechFormat, type SpokenClause, type Synthesizer, SynthesizerError } from '../synthesizer.ts';
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
      const clauses = clausesOf(text);
      let next = sayNext();
      while (next !== null) {
        const { clause, spoken } = next;
        const heard = await spoken.catch((error: unknown) => {
          clauses.unshift(...halvesOf(clause, error));
          return null;
        });
        next = sayNext();
        if (heard !== null) yield heard;
      }

      function sayNext() {
        const clause = clauses.shift();
        if (clause === undefined) return null;
        const spoken = pool.speak({ ...how, text: clause }, signal);
        // Its failure is met when it is waited for, or not at all when nobody listens any more.
        spoken.catch(() => {});
        return { clause, spoken };
      }
    },
    close: () => pool.close(),
  };
}

/** Of a clause that would be spoken for minutes. @throws the error where it is another one, or nothing can be halved */
function halvesOf(clause: string, error: unknown): [string, string] {
  if (!(error instanceof SynthesizerError && error.code === 'too_long')) throw error;
  const words = clause.split(' ');
  const [parts, joint] = words.length > 1 ? [words, ' '] : [[...clause], ''];
  if (parts.length < 2) throw error;
  const middle = parts.length >> 1;
  return [parts.slice(0, middle).join(joint), parts.slice(middle).join(joint)];
}
