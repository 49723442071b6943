import type { CallEvent } from './api-client.ts';
import type { Terminal } from './terminal.ts';

const LONGEST_NAME = 'announcement.finished'.length;

/** Writes the events of one call as lines: seconds since its first, state, event, and what is known beyond. */
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
    return `${elapsed}  ${event.state.padEnd(9)}  ${name}  ${particulars.join(', ')}`.trimEnd();
  };
}

/** Quoted. What an engine writes must not steer a terminal. */
export function spoken(text: string): string {
  return `“${text.replaceAll(/\p{Cc}/gu, ' ')}”`;
}
