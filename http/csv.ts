/** Numbers, exact decimals and our own strings are written as they are. Text from users must be wrapped in `text`. */
export type CsvCell = string | number | null | { text: string | null };

/** One record of RFC 4180, with its line break. */
export function csvRecord(cells: readonly CsvCell[]): string {
  return `${cells.map(fieldOf).join(',')}\r\n`;
}

function fieldOf(cell: CsvCell): string {
  if (cell === null) return '';
  if (typeof cell !== 'object') return quoted(String(cell));
  return quoted(withoutFormula(cell.text ?? ''));
}

function quoted(field: string): string {
  return /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}

/** Prevents CSV injection (OWASP): spreadsheets run text that starts like a formula, unless an apostrophe precedes it. */
function withoutFormula(text: string): string {
  return /^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text;
}
