import type { CommandHost } from './host.ts';

/** Output of an action, for people or for programs. */
export interface Terminal {
  /** Only one JSON document may appear on standard output. */
  readonly json: boolean;
  /** Prints a line for people while the action runs; does nothing with `--json`. */
  line(text: string): void;
  /** Prints a piece of streamed text, which ends its last line itself. */
  write(text: string): void;
  /** Rewrites one line in place, only on a terminal. The next line replaces it. */
  progress(text: string): void;
  /** Prints an error or a warning on standard error, with `--json` too. */
  report(message: string): void;
  paint(colour: Colour, text: string): string;
  /** With `--json`, prints the document now, for an action that keeps running. Its return value is not printed. */
  publish(data: unknown): void;
  readonly hasPublished: boolean;
}

export type Colour = 'bold' | 'red' | 'green' | 'yellow' | 'cyan' | 'dim';

const CODES: Record<Colour, number> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 };

export function openTerminal(
  { env, stdout: out, stderr }: Pick<CommandHost, 'env' | 'stdout' | 'stderr'>,
  { json }: { json: boolean },
): Terminal {
  // https://no-color.org: present and not empty.
  const colours = out.isTTY && !env.NO_COLOR && env.TERM !== 'dumb';
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
      // In a file or pipe, each update would be a line of its own.
      if (json || !out.isTTY) return;
      out.write(`\r\u001B[K${text}`);
      hasProgress = true;
    },
    report: (message) => void stderr.write(`tandem: ${message}\n`),
    paint: (colour, text) => (colours ? `\u001B[${CODES[colour]}m${text}\u001B[0m` : text),
  };
}

/** Formats rows below their headings, aligned; `empty` if there are no rows. */
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

/** Formats one thing, one field per line. */
export function fields(rows: readonly (readonly [string, string | number | null])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length)) + 2;
  return rows.map(([name, value]) => `${name.padEnd(width)}${value ?? '-'}`).join('\n');
}

/** Removes control characters, because foreign text must not control the terminal. Keeps line ends and tabs. */
export function printable(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]/gu, ' ');
}

export function oneLine(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, ' ').trim();
}
