/**
 * Lines of Markdown and mail that are no sentences: code, tables, quotations of others, rulers.
 * @returns how many characters from `at`, the start of a line, to the end of the last of them, its break not counted
 */
export function keptLines(text: string, at: number): number {
  const fence = match(FENCE, text, at);
  if (fence !== null) return endOfFence(text, at, fence.trim()) - at;
  const line = match(KEPT_LINE, text, at) ?? match(CODE_LINE, text, at);
  return line === null ? 0 : line.length;
}

/** How many characters of a line's start are indentation and the marker of a list or heading. */
export function lineLead(text: string, at: number): number {
  return match(LEAD, text, at)?.length ?? 0;
}

const FENCE = /[^\S\r\n]{0,20}(?:`{3,}|~{3,})/y;
/** A table's row, a quotation, a ruler, a reference of a link. Without a line break in it, so that it is linear. */
const KEPT_LINE =
  /[^\S\r\n]{0,20}(?:\||>)[^\r\n]*|[^\S\r\n]{0,20}(?:([-*_=])(?:[^\S\r\n]{0,3}\1){2,200})[^\S\r\n]*(?=[\r\n]|$)|\[[^\]\r\n]{1,100}\]:[^\r\n]*/y;
/** Programs that nobody put a fence around. */
const CODE_LINE =
  /(?=[^\r\n]*[(){}=<>])[^\r\n]*[;{}][^\S\r\n]*(?=[\r\n]|$)|(?:\$|>>>|SELECT(?=[^\r\n]* FROM )|INSERT INTO|UPDATE(?=[^\r\n]* SET )|DELETE FROM|CREATE TABLE)[^\S\r\n][^\r\n]*|[\w.]{1,40} ?[-+*]?= ?[^\r\n]*(?<![.!?])(?=[\r\n]|$)/y;
const LEAD =
  /[^\S\r\n]{0,200}(?:(?:[-*+•◦‣]|#{1,6}|\d{1,4}[.)]|\(?[A-Za-z\d]\))[^\S\r\n]+(?:\[[ xX]\][^\S\r\n]+)?)(?=\S)|[^\S\r\n]+/y;

function endOfFence(text: string, at: number, fence: string): number {
  const closing = new RegExp(
    `[\\r\\n][^\\S\\r\\n]{0,20}${fence[0] === '`' ? '`' : '~'}{${Math.min(fence.length, 100)},}[^\\S\\r\\n]*(?=[\\r\\n]|$)`,
    'g',
  );
  closing.lastIndex = at;
  const found = closing.exec(text);
  return found === null ? text.length : found.index + found[0].length;
}

function match(pattern: RegExp, text: string, at: number): string | null {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? null;
}
