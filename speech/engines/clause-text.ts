import type { Clause, SpokenBlock } from '../synthesizer.ts';

/**
 * The text of a clause for engines that are given nothing but text: what is spoken, on one line. '' when nothing is.
 * Phonemes are not in it: such a word is said as it is spelled.
 */
export function clauseText({ words }: Pick<Clause, 'words'>): string {
  const spoken = words.map((word) => word.spoken).join(' ');
  return spoken.toWellFormed().normalize('NFC').replace(NOT_TEXT, ' ').replace(/\s+/g, ' ').trim();
}

/** Whether there is anything in it that has a sound: else engines fail, or say the names of signs. */
export function isSpeakable(text: string): boolean {
  return /[\p{L}\p{N}]/u.test(text);
}

/** What comes of a clause that has no sound. */
export function silentBlock(sampleRateHz: number): SpokenBlock {
  return { samples: new Int16Array(Math.ceil((sampleRateHz * SILENCE_MS) / 1000)), marks: [] };
}

/** Control characters, and code points that stand for nothing. */
const NOT_TEXT = /[\p{Cc}\p{Cn}\p{Co}\u2028\u2029]/gu;
const SILENCE_MS = 50;
