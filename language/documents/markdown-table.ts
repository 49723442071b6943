/** Formats rows as a Markdown table whose head is the first row. Drops empty rows and columns. */
export function markdownTable(rows: readonly (readonly string[])[]): string {
  const filled = rows.filter((row) => row.some((cell) => cell.trim() !== ''));
  const used = new Set<number>();
  for (const row of filled) {
    for (const [column, cell] of row.entries()) if (cell.trim() !== '') used.add(column);
  }
  const columns = [...used].sort((a, b) => a - b);
  const [head, ...body] = filled.map((row) => line(columns.map((column) => oneLine(row[column] ?? ''))));
  if (head === undefined) return '';
  return [head, line(columns.map(() => '---')), ...body].join('\n');
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

function oneLine(cell: string): string {
  return cell.trim().replace(/\s+/g, ' ').replaceAll('\\', '\\\\').replaceAll('|', '\\|');
}
