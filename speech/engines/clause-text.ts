import type { Clause, SpokenBlock } from '../synthesizer.ts';

/**
 * Text of a clause on one line, for engines without phoneme input; '' if silent. Words with phonemes are read as
 * spelled.
 */
export function clauseText({ words }: Pick<Clause, 'words'>): string {
  const spoken = words.map((word) => word.spoken).join(' ');
  return spoken.toWellFormed().normalize('NFC').replace(NOT_TEXT, ' ').replace(/\s+/g, ' ').trim();
}

/** Whether a text contains anything pronounceable. Otherwise engines fail, or read the names of signs. */
export function isSpeakable(text: string): boolean {
  return /[\p{L}\p{N}]/u.test(text);
}

export function silentBlock(sampleRateHz: number): SpokenBlock {
  return { samples: new Int16Array(Math.ceil((sampleRateHz * SILENCE_MS) / 1000)), marks: [] };
}

/** Control characters, and unassigned or private code points. */
const NOT_TEXT = /[\p{Cc}\p{Cn}\p{Co}\u2028\u2029]/gu;
const SILENCE_MS = 50;
