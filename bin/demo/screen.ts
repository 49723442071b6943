import type { CallEvent } from './api.ts';

/** What the demo prints: headings, event lines, and one progress line that is rewritten in place on a terminal. */
export interface Screen {
  heading(text: string): void;
  line(text: string): void;
  check(ok: boolean, text: string): void;
  event(event: CallEvent): void;
  progress(text: string): void;
  readonly failed: boolean;
}

export function openScreen(out: NodeJS.WriteStream = process.stdout): Screen {
  const colour = out.isTTY && process.env.NO_COLOR === undefined;
  const paint = (code: number, text: string) => (colour ? `\u001B[${code}m${text}\u001B[0m` : text);
  let hasProgress = false;
  let failed = false;
  let firstAt: number | null = null;

  function write(text: string): void {
    if (hasProgress) out.write('\r\u001B[K');
    hasProgress = false;
    out.write(`${text}\n`);
  }

  return {
    heading: (text) => write(`\n${paint(1, text)}`),
    line: (text) => write(`  ${text}`),
    check(ok, text) {
      failed ||= !ok;
      write(`  ${ok ? paint(32, '✓') : paint(31, '✗')} ${text}`);
    },
    event(event) {
      const at = Date.parse(event.at);
      firstAt ??= at;
      const elapsed = `${((at - firstAt) / 1000).toFixed(2)} s`.padStart(8);
      const particulars = [
        event.leg,
        event.sip_status === null ? null : `SIP ${event.sip_status}`,
        event.hangup_cause,
        event.detail,
      ].filter((part) => part !== null);
      write(
        `  ${elapsed}  ${event.state.padEnd(9)}  ${paint(36, event.event.padEnd(20))}  ${particulars.join(', ')}`.trimEnd(),
      );
    },
    progress(text) {
      // Without a terminal a rewritten line would be a flood of lines.
      if (!out.isTTY) return;
      out.write(`\r\u001B[K  ${text}`);
      hasProgress = true;
    },
    get failed() {
      return failed;
    },
  };
}
