/** A part of a text that is corrected by itself, or none that could be: white space, code. */
export interface Window {
  text: string;
  isVerbatim: boolean;
}

/**
 * Cuts a text where an answer about one part can be judged and passed on before the next is asked for: at empty lines, else
 * lines, else sentences, else spaces, and anywhere when there is none of these. Joined they are the text. White
 * space at both ends of a part and fenced code are parts of their own, which nobody is asked about.
 */
export function* windowsOf(text: string): Generator<Window> {
  for (const [index, part] of text.split(FENCED).entries()) {
    if (part === '') continue;
    if (index % 2 === 1) yield { text: part, isVerbatim: true };
    else yield* windowsOfProse(part);
  }
}

/** In UTF-16 code units. About 400 tokens: some seconds of a small model's time. A part has half of it at least. */
export const MOST_CHARACTERS = 1_500;
const FENCED = /(^[^\S\r\n]{0,3}```[^\n]*\n(?:(?![^\S\r\n]{0,3}```)[^\n]*\n)*[^\S\r\n]{0,3}```[^\S\r\n]*$)/m;

function* windowsOfProse(text: string): Generator<Window> {
  let at = 0;
  while (at < text.length) {
    const end = text.length - at <= MOST_CHARACTERS ? text.length : at + cutOf(text.slice(at, at + MOST_CHARACTERS));
    const part = text.slice(at, end);
    const core = part.trim();
    const start = part.indexOf(core);
    if (start > 0) yield { text: part.slice(0, start), isVerbatim: true };
    if (core !== '') yield { text: core, isVerbatim: false };
    const rest = part.slice(start + core.length);
    if (rest !== '') yield { text: rest, isVerbatim: true };
    at = end;
  }
}

function cutOf(text: string): number {
  for (const boundary of ['\n\n', '\n', '. ', '? ', '! ', '। ', '。', ' ']) {
    const found = text.lastIndexOf(boundary);
    if (found > text.length / 2) return found + boundary.length;
  }
  // Not between the two halves of a character.
  return /[\ud800-\udbff]$/.test(text) ? text.length - 1 : text.length;
}
