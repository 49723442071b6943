import type { Clock } from '../../runtime/clock.ts';
import { LATE, within } from '../../runtime/waiting.ts';
import { LanguageEngineError } from '../engine.ts';
import type { CompletionPart } from '../llm.ts';

export interface PatienceOptions {
  /** Timeout until the first part, and between parts. The consumer's own time does not count. */
  patienceMs: number;
  signal: AbortSignal;
  clock: Clock;
}

/**
 * Passes on an engine's parts and enforces the timeout, even if the engine stalls, never ends or ignores its signal.
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
    // Not awaited: `return` may be what hangs.
    parts.return().catch(() => {});
  }
}

/** Limits an answer that trickles in, one part a minute. */
const LONGEST_ANSWER_MS = 3_600_000;

function tooLate(what: string): LanguageEngineError {
  return new LanguageEngineError('timeout', `the language model ${what}`);
}
