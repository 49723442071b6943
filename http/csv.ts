/** Numbers, decimals and our own strings are written unchanged. Wrap text from users in `text`. */
export type CsvCell = string | number | null | { text: string | null };

/** Formats one record with its line break (RFC 4180). */
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

/** Prevents CSV injection (OWASP): an apostrophe stops spreadsheets from running text as a formula. */
function withoutFormula(text: string): string {
  return /^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text;
}
