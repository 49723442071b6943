/**
 * Parses CSV (RFC 4180).
 * @param usual default: the most frequent separator in the first line that has any, also below a title: comma,
 * semicolon, tab or bar
 */
export function csvRows(source: string, usual?: string): string[][] {
  const [declaration = '', declared] = DECLARATION.exec(source) ?? [];
  const text = source.slice(declaration.length);
  const separator = declared ?? usual ?? separatorOf(text.slice(0, 4096));
  const rows: string[][] = [];
  let row: string[] = [];
  let at = 0;
  while (at <= text.length) {
    const { value, end } = text[at] === '"' ? quoted(text, { at, separator }) : plain(text, { at, separator });
    row.push(value);
    const isLast = text[end] !== separator;
    if (isLast) {
      rows.push(row);
      row = [];
    }
    at = text[end] === '\r' && text[end + 1] === '\n' ? end + 2 : end + 1;
    if (isLast && at >= text.length) break;
  }
  return rows;
}

/** Excel's own first line, which names the separator. */
const DECLARATION = /^sep=([^"\r\n])(?:\r\n?|\n)/i;
const SEPARATORS = [',', ';', '\t', '|'];

/** Ignores quoted text, including line ends in it, and lines of one cell, such as a title. */
function separatorOf(beginning: string): string {
  const bare = beginning.replace(/"[^"]*(?:"|$)/g, '""');
  const lines = bare.split(/[\r\n]/).filter((line) => line.trim() !== '');
  const first = lines.findIndex((line) => SEPARATORS.some((separator) => line.includes(separator)));
  const counts = SEPARATORS.map((separator) => (lines[first] ?? '').split(separator).length);
  const separator = SEPARATORS[counts.indexOf(Math.max(...counts))] ?? ',';
  // Below a title, the next line has it too. Otherwise it is punctuation in a single column.
  return first <= 0 || lines[first + 1]?.includes(separator) ? separator : ',';
}

function plain(text: string, { at, separator }: { at: number; separator: string }) {
  let end = at;
  while (end < text.length && text[end] !== separator && text[end] !== '\n' && text[end] !== '\r') end += 1;
  return { value: text.slice(at, end), end };
}

/** Keeps text between the closing quote and the next separator. */
function quoted(text: string, { at, separator }: { at: number; separator: string }) {
  let value = '';
  let from = at + 1;
  for (;;) {
    const quote = text.indexOf('"', from);
    if (quote === -1) return { value: value + text.slice(from), end: text.length };
    value += text.slice(from, quote);
    if (text[quote + 1] !== '"') {
      const rest = plain(text, { at: quote + 1, separator });
      return { value: value + rest.value, end: rest.end };
    }
    value += '"';
    from = quote + 2;
  }
}
