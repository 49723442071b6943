import type { ScriptClause } from '../text/script.ts';

/**
 * Pauses between clauses. Engines pause within a text, but each clause is a text of its own to them, so the pause at
 * its end must be added. As long as eSpeak NG's own pauses at its usual pace.
 */
const AFTER_SENTENCE_MS = 290;
const AFTER_PART_MS = 150;

/** Including closing quotes and brackets. */
const SENTENCE_END = /[.!?…。！？।॥؟۔][\p{Pe}\p{Pf}"']*$/u;
const PART_END = /[,;:،、，；：–—][\p{Pe}\p{Pf}"']*$/u;

/** Whether no later word can belong to the sentence. */
export function endsSentence(clause: ScriptClause): boolean {
  return SENTENCE_END.test(lastSpoken(clause));
}

/** Silence before the next clause, at the engine's usual pace. */
export function pauseAfterMs(clause: ScriptClause): number {
  const last = lastSpoken(clause);
  if (SENTENCE_END.test(last)) return AFTER_SENTENCE_MS;
  return PART_END.test(last) ? AFTER_PART_MS : 0;
}

function lastSpoken({ words }: ScriptClause): string {
  return words.findLast(({ spoken }) => spoken !== '')?.spoken ?? '';
}
