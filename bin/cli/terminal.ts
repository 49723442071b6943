/** What an action writes to, aware of whether a person or a program reads it. */
export interface Terminal {
  /** One JSON document is all that may appear on standard output. */
  readonly json: boolean;
  /** Where text for a person goes while the action runs: standard output, or nowhere with `--json`. */
  line(text: string): void;
  /** A piece of a text that is written as it comes, and ends its last line itself. */
  write(text: string): void;
  /** One line that is rewritten in place; only on a terminal, and gone with the next line. */
  progress(text: string): void;
  paint(colour: Colour, text: string): string;
  /** Writes the document with `--json` now, for an action that goes on; what it returns in the end is not written. */
  publish(data: unknown): void;
  readonly hasPublished: boolean;
}

export type Colour = 'bold' | 'red' | 'green' | 'yellow' | 'cyan' | 'dim';

const CODES: Record<Colour, number> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 };

export function openTerminal({ json, out = process.stdout }: { json: boolean; out?: NodeJS.WriteStream }): Terminal {
  // https://no-color.org: present and not empty.
  const colours = out.isTTY && !process.env.NO_COLOR && process.env.TERM !== 'dumb';
  let hasProgress = false;
  let hasPublished = false;
  function write(text: string): void {
    if (json) return;
    if (hasProgress) out.write('\r\u001B[K');
    hasProgress = false;
    out.write(text);
  }
  return {
    json,
    get hasPublished() {
      return hasPublished;
    },
    publish(data) {
      if (!json || hasPublished) return;
      hasPublished = true;
      out.write(`${JSON.stringify({ success: true, data }, null, 2)}\n`);
    },
    line(text) {
      write(`${text}\n`);
    },
    write,
    progress(text) {
      // Without a terminal a rewritten line would be a flood of lines.
      if (json || !out.isTTY) return;
      out.write(`\r\u001B[K${text}`);
      hasProgress = true;
    },
    paint: (colour, text) => (colours ? `\u001B[${CODES[colour]}m${text}\u001B[0m` : text),
  };
}

/** Rows below their headings, as wide as they need to be. Without rows, `empty`. */
export function table(
  headings: readonly string[],
  rows: readonly (readonly (string | number | null)[])[],
  empty: string,
): string {
  if (rows.length === 0) return empty;
  const cells = [headings, ...rows].map((row) => row.map((cell) => (cell === null ? '-' : String(cell))));
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** One field a line, for a single thing. */
export function fields(rows: readonly (readonly [string, string | number | null])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length)) + 2;
  return rows.map(([name, value]) => `${name.padEnd(width)}${value ?? '-'}`).join('\n');
}

/** What somebody else wrote must not steer a terminal; lines and tabs stay. */
export function printable(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]/gu, ' ');
}

/** The same in one line. */
export function oneLine(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, ' ').trim();
}
