import type { Clock } from '../../runtime/clock.ts';
import { LATE, within } from '../../runtime/waiting.ts';
import { LanguageEngineError } from '../engine.ts';
import type { CompletionPart } from '../llm.ts';

export interface PatienceOptions {
  /** Until the first part, and then between parts; whoever takes them may take as long as they like. */
  patienceMs: number;
  signal: AbortSignal;
  clock: Clock;
}

/**
 * The parts of an engine that may fall silent, never end or not listen to its signal: this ends, and tells the engine to.
 * @throws LanguageEngineError `timeout`; what the engine throws; the signal's reason
 */
export async function* patiently(
  open: (signal: AbortSignal) => AsyncGenerator<CompletionPart, void>,
  { patienceMs, signal, clock }: PatienceOptions,
): AsyncGenerator<CompletionPart, void> {
  const over = new AbortController();
  const parts = open(AbortSignal.any([signal, over.signal]));
  const endsAtMs = clock.monotonicMs() + LONGEST_ANSWER_MS;
  try {
    for (;;) {
      const leftMs = endsAtMs - clock.monotonicMs();
      if (leftMs <= 0) throw tooLate('did not come to an end');
      const next = await within(parts.next(), { ms: Math.min(patienceMs, leftMs), signal, clock });
      const isSilent = clock.monotonicMs() < endsAtMs;
      if (next === LATE) throw tooLate(isSilent ? 'was silent for too long' : 'did not come to an end');
      if (next.done) return;
      yield next.value;
    }
  } finally {
    over.abort();
    // Not awaited: it may be what does not answer.
    parts.return().catch(() => {});
  }
}

/** Somebody who says a word a minute does not answer. */
const LONGEST_ANSWER_MS = 3_600_000;

function tooLate(what: string): LanguageEngineError {
  return new LanguageEngineError('timeout', `the language model ${what}`);
}
