/** A number, an exact decimal or another text of our own making goes out as it is; what others wrote is `text`. */
export type CsvCell = string | number | null | { text: string | null };

/** One record of RFC 4180, its line break included. */
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

/** Spreadsheets run what begins like a formula (OWASP, CSV injection); an apostrophe makes it text. */
function withoutFormula(text: string): string {
  return /^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text;
}
