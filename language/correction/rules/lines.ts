/**
 * Measures Markdown and mail lines that are not sentences: code, tables, quotations, rulers.
 * @returns characters from `at`, the start of a line, to the end of the last such line, without its line break
 */
export function keptLines(text: string, at: number): number {
  const fence = match(FENCE, text, at);
  if (fence !== null) return endOfFence(text, at, fence.trim()) - at;
  const line = match(KEPT_LINE, text, at);
  if (line !== null) return line.length;
  const code = match(CODE_LINE, text, at);
  return code === null ? 0 : endOfBody(text, at + code.length, code) - at;
}

/** Length of the indentation and list or heading marker at the start of a line. */
export function lineLead(text: string, at: number): number {
  return match(LEAD, text, at)?.length ?? 0;
}

const FENCE = /[^\S\r\n]{0,20}(?:`{3,}|~{3,})/y;
/** Table row, quotation, ruler or link reference. Never crosses a line break, which keeps it linear. */
const KEPT_LINE =
  /[^\S\r\n]{0,20}(?:\||>)[^\r\n]*|[^\S\r\n]{0,20}(?:([-*_=])(?:[^\S\r\n]{0,3}\1){2,200})[^\S\r\n]*(?=[\r\n]|$)|\[[^\]\r\n]{1,100}\]:[^\r\n]*/y;
/** Code without a fence. */
const CODE_LINE =
  /(?=[^\r\n]*[(){}=<>])[^\r\n]*[;{}][^\S\r\n]*(?=[\r\n]|$)|(?:\$|>>>|SELECT(?=[^\r\n]* FROM )|INSERT INTO|UPDATE(?=[^\r\n]* SET )|DELETE FROM|CREATE TABLE)[^\S\r\n][^\r\n]*|[\w.]{1,40} ?[-+*]?= ?[^\r\n]*(?<![.!?])(?=[\r\n]|$)|[^\S\r\n]{0,40}(?:(?:async )?def \w{1,100}\([^\r\n]{0,500}|class \w{1,100}(?:\([^\r\n]{0,500}\))?):(?=[\r\n]|$)|[^\S\r\n]{0,40}(?:if|elif|while)(?=[^\r\n]{0,500}[=!<>]=)[^\r\n]{0,500}:(?=[\r\n]|$)/y;
const OPENS_BODY = /[{([:]\s*$/;
const NEXT_LINE = /(?:\r\n|[\r\n])([^\S\r\n]*)([^\r\n]*)/y;
const LEAD =
  /[^\S\r\n]{0,200}(?:(?:[-*+•◦‣]|#{1,6}|\d{1,4}[.)]|\(?[A-Za-z\d]\))[^\S\r\n]+(?:\[[ xX]\][^\S\r\n]+)?)(?=\S)|[^\S\r\n]+/y;

/** Lines after a code line that are indented further belong to it. */
function endOfBody(text: string, from: number, line: string): number {
  if (!OPENS_BODY.test(line)) return from;
  const indent = line.length - line.trimStart().length;
  let end = from;
  NEXT_LINE.lastIndex = from;
  for (let next = NEXT_LINE.exec(text); next !== null; next = NEXT_LINE.exec(text)) {
    const [, space = '', rest] = next;
    if (rest === '') continue;
    if (space.length <= indent) break;
    end = NEXT_LINE.lastIndex;
  }
  return end;
}

function endOfFence(text: string, at: number, fence: string): number {
  const closing = new RegExp(
    `[\\r\\n][^\\S\\r\\n]{0,20}${fence[0] === '`' ? '`' : '~'}{${Math.min(fence.length, 100)},}[^\\S\\r\\n]*(?=[\\r\\n]|$)`,
    'g',
  );
  closing.lastIndex = at;
  const found = closing.exec(text);
  return found === null ? text.length : found.index + found[0].length;
}

/** Matches a sticky pattern at an index. */
export function match(pattern: RegExp, text: string, at: number): string | null {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? null;
}
