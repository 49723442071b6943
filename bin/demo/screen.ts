import type { CallEvent } from '../cli/api-client.ts';
import { eventLines } from '../cli/event-lines.ts';
import type { Terminal } from '../cli/terminal.ts';

/** Output of the demo: headings, event lines, and one progress line that is rewritten in place on a terminal. */
export interface Screen {
  heading(text: string): void;
  line(text: string): void;
  check(ok: boolean, text: string): void;
  event(event: CallEvent): void;
  progress(text: string): void;
  /** All checks so far. */
  readonly checks: readonly { ok: boolean; text: string }[];
}

export function openScreen(terminal: Terminal): Screen {
  const { paint } = terminal;
  const lineOf = eventLines(terminal);
  const checks: { ok: boolean; text: string }[] = [];
  return {
    checks,
    heading: (text) => terminal.line(`\n${paint('bold', text)}`),
    line: (text) => terminal.line(`  ${text}`),
    check(ok, text) {
      checks.push({ ok, text });
      terminal.line(`  ${ok ? paint('green', '✓') : paint('red', '✗')} ${text}`);
    },
    event: (event) => terminal.line(`  ${lineOf(event)}`),
    progress: (text) => terminal.progress(`  ${text}`),
  };
}
