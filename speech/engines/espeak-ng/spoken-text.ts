import type { ScriptWord } from '../../text/script.ts';

/** The words of a clause as eSpeak NG is given them. */
export interface SpokenText {
  text: string;
  /** Where each word begins in it, in code points. Words that are not said begin where the next does. */
  starts: readonly number[];
}

/**
 * What would be more than text to eSpeak NG: it reads SSML and entities whether one wants it or not, takes a control
 * character for the start of a command, which would hold for whoever is spoken for next, and stops at NUL. Half a
 * surrogate pair cannot be encoded.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are meant
const MORE_THAN_TEXT = /[<>\u0000-\u001f\u007f-\u009f]|&(?=[#\w])|\p{Surrogate}/gu;

/** `mnemonicsOf` answers null for sounds that the voice's language has not: such words are spoken as spelt. */
export function spokenText(words: readonly ScriptWord[], mnemonicsOf: (ipa: string) => string | null): SpokenText {
  const starts: number[] = [];
  const parts: string[] = [];
  let codePoints = 0;
  for (const { spoken, phonemes } of words) {
    starts.push(codePoints);
    const mnemonics = phonemes === null ? null : mnemonicsOf(phonemes);
    const part = mnemonics === null ? plain(spoken) : `[[${mnemonics}]]${CLOSING.exec(spoken)?.[0] ?? ''}`;
    if (part.trim() === '') continue;
    parts.push(part);
    for (const _ of part) codePoints += 1;
    // The space that joins it to the next.
    codePoints += 1;
  }
  return { text: parts.join(' '), starts };
}

/** Punctuation after a word still says how the sentence goes. */
const CLOSING = /[.,;:!?…]+$/u;

/** Two brackets would begin phonemes. */
function plain(spoken: string): string {
  return spoken.replace(MORE_THAN_TEXT, ' ').replace(/\[(?=\[)/g, ' ');
}
