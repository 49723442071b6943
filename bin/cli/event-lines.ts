import type { CallEvent } from './api-client.ts';
import { oneLine, type Terminal } from './terminal.ts';

const LONGEST_NAME = 'announcement.finished'.length;

/** Formats a call's events as lines: seconds since the first, state, event, details. */
export function eventLines({ paint }: Terminal): (event: CallEvent) => string {
  let firstAt: number | null = null;
  return (event) => {
    const at = Date.parse(event.at);
    firstAt ??= at;
    const elapsed = `${((at - firstAt) / 1000).toFixed(2)} s`.padStart(8);
    const particulars = [
      event.leg,
      event.sip_status === null ? null : `SIP ${event.sip_status}`,
      event.hangup_cause,
      event.detail,
      ...Object.values(event.data ?? {}).map(String),
      event.transcript ? spoken(event.transcript.text) : null,
    ].filter((part) => part !== null);
    const name = paint('cyan', event.event.padEnd(LONGEST_NAME));
    return `${elapsed}  ${event.state.padEnd(9)}  ${name}  ${oneLine(particulars.join(', '))}`.trimEnd();
  };
}

/** Quotes a text. Removes control characters, because text from an engine must not control the terminal. */
export function spoken(text: string): string {
  return `“${text.replaceAll(/\p{Cc}/gu, ' ')}”`;
}
