import type { ScriptWord } from '../../text/script.ts';

/** A clause as text for eSpeak NG. */
export interface EspeakText {
  text: string;
  /** Start of each word in code points. A silent word starts where the next does. */
  starts: readonly number[];
}

/**
 * Characters with special meaning to eSpeak NG: it always reads SSML and entities, takes a control character as a
 * command, which would affect later clauses too, and stops at NUL. A lone surrogate cannot be encoded.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are meant
const MORE_THAN_TEXT = /[<>\u0000-\u001f\u007f-\u009f]|&(?=[#\w])|\p{Surrogate}/gu;

/**
 * Joins words to the text of a clause, with phonemes in eSpeak NG's notation. `mnemonicsOf` converts IPA. It returns
 * null for sounds that the voice's language lacks; such words are read as spelt.
 */
export function espeakText(words: readonly ScriptWord[], mnemonicsOf: (ipa: string) => string | null): EspeakText {
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
    // The space before the next word.
    codePoints += 1;
  }
  return { text: parts.join(' '), starts };
}

/** Punctuation after a word with phonemes still affects intonation. */
const CLOSING = /[.,;:!?…]+$/u;

/** Two brackets would begin phonemes. */
function plain(spoken: string): string {
  return spoken.replace(MORE_THAN_TEXT, ' ').replace(/\[(?=\[)/g, ' ');
}
