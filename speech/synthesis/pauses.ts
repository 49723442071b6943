import type { ScriptClause } from '../text/script.ts';

/**
 * Engines pause within a text, and each clause is a text of its own to them: what they leave out after the last word is
 * made up for. As long as eSpeak NG's own pauses at its usual pace.
 */
const AFTER_SENTENCE_MS = 290;
const AFTER_PART_MS = 150;

/** After its closing quotes and brackets. */
const SENTENCE_END = /[.!?…。！？।॥؟۔][\p{Pe}\p{Pf}"']*$/u;
const PART_END = /[,;:،、，；：–—][\p{Pe}\p{Pf}"']*$/u;

/** Whether nothing that comes later can belong to the sentence. */
export function endsSentence(clause: ScriptClause): boolean {
  return SENTENCE_END.test(lastSpoken(clause));
}

/** How much silence follows a clause before the next, at the engine's usual pace. */
export function pauseAfterMs(clause: ScriptClause): number {
  const last = lastSpoken(clause);
  if (SENTENCE_END.test(last)) return AFTER_SENTENCE_MS;
  return PART_END.test(last) ? AFTER_PART_MS : 0;
}

function lastSpoken({ words }: ScriptClause): string {
  return words.findLast(({ spoken }) => spoken !== '')?.spoken ?? '';
}
