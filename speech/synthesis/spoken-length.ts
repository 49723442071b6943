import type { ScriptWord } from '../text/script.ts';

/** About how many sounds it takes to say a word; 0 for what is not said. For engines that do not tell when they say it. */
export function spokenLength({ spoken, phonemes }: ScriptWord): number {
  if (phonemes !== null) return count(phonemes, /[\p{L}ː]/gu);
  const isSpelt = /^\p{Lu}{2,5}$/u.test(spoken.replace(/[^\p{L}\p{N}]/gu, ''));
  let length = 0;
  for (const { pattern, sounds } of LENGTHS) length += count(spoken, pattern) * sounds;
  return isSpelt ? length * SOUNDS_OF_A_LETTERS_NAME : length;
}

/** Sounds of a character on average, by kind. Each character is of one kind at most. */
const LENGTHS = [
  { pattern: /\p{N}|\p{S}/gu, sounds: 3.5 },
  { pattern: /\p{sc=Han}/gu, sounds: 2.5 },
  { pattern: /\p{sc=Hangul}/gu, sounds: 2.5 },
  { pattern: /[\p{sc=Hiragana}\p{sc=Katakana}]/gu, sounds: 1.8 },
  { pattern: /(?![\p{sc=Han}\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}])\p{L}/gu, sounds: 1 },
  // Vowel signs of Indian scripts; the vowels left out in Arabic and Hebrew are not.
  { pattern: /\p{Mc}/gu, sounds: 0.7 },
];

/** Such as of IVR. */
const SOUNDS_OF_A_LETTERS_NAME = 2.2;

function count(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}
