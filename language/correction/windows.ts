/** A part of a text that is corrected separately, or a verbatim one: white space or code. */
export interface Window {
  text: string;
  isVerbatim: boolean;
}

/**
 * Cuts a text into parts that can be checked and passed on one by one: at empty lines, else lines, else sentences, else
 * spaces, else anywhere. Joined they equal the text. White space at the ends of a part and fenced code become verbatim
 * parts.
 */
export function* windowsOf(text: string): Generator<Window> {
  for (const [index, part] of text.split(FENCED).entries()) {
    if (part === '') continue;
    if (index % 2 === 1) yield { text: part, isVerbatim: true };
    else yield* windowsOfProse(part);
  }
}

/** In UTF-16 code units, about 400 tokens: some seconds of a small model's time. A part has at least half of it. */
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
  // Never splits a surrogate pair.
  return /[\ud800-\udbff]$/.test(text) ? text.length - 1 : text.length;
}
