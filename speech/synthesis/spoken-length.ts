import type { ScriptWord } from '../text/script.ts';

/** Estimates the number of sounds in a word; 0 if it is silent. For engines that do not mark words. */
export function spokenLength({ spoken, phonemes }: ScriptWord): number {
  if (phonemes !== null) return count(phonemes, /[\p{L}ː]/gu);
  const isSpelt = /^\p{Lu}{2,5}$/u.test(spoken.replace(/[^\p{L}\p{N}]/gu, ''));
  let length = 0;
  for (const { pattern, sounds } of LENGTHS) length += count(spoken, pattern) * sounds;
  return isSpelt ? length * SOUNDS_OF_A_LETTERS_NAME : length;
}

/** Average sounds per character, by kind. Each character belongs to at most one kind. */
const LENGTHS = [
  { pattern: /\p{N}|\p{S}/gu, sounds: 3.5 },
  { pattern: /\p{sc=Han}/gu, sounds: 2.5 },
  { pattern: /\p{sc=Hangul}/gu, sounds: 2.5 },
  { pattern: /[\p{sc=Hiragana}\p{sc=Katakana}]/gu, sounds: 1.8 },
  { pattern: /(?![\p{sc=Han}\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}])\p{L}/gu, sounds: 1 },
  // Vowel signs of Indian scripts. Arabic and Hebrew leave vowels out.
  { pattern: /\p{Mc}/gu, sounds: 0.7 },
];

/** On average: IVR is spelt as three names of letters. */
const SOUNDS_OF_A_LETTERS_NAME = 2.2;

function count(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}
