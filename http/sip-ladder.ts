import type { PublicSipMessage, PublicSipTrace } from './schemas/sip-message.ts';

/**
 * Draws a call's messages as a ladder for a terminal: a column for Tandem and for each peer of each leg, and an arrow
 * per message. The first leg is left of Tandem, all others right.
 */
export function sipLadder({ call_id, truncated, messages }: PublicSipTrace): string {
  const [first] = messages;
  if (first === undefined) return NOTHING_KEPT;
  const legs = [...new Set(messages.map(({ leg }) => leg))];
  const remotes = new Map<string, string>();
  for (const { leg, remote } of messages) if (remote !== null && !remotes.has(leg)) remotes.set(leg, remote);
  // A drachtio-server does not report where its requests go.
  const columnOf = ({ leg, remote, transport }: PublicSipMessage) =>
    `${leg}\n${remote ?? remotes.get(leg) ?? ''} ${transport}`;
  const peers = [...new Set(messages.map(columnOf))];
  const isLeft = (peer: string) => peer.startsWith(`${legs[0]}\n`);
  const columns = [...peers.filter(isLeft), TANDEM, ...peers.filter((peer) => !isLeft(peer))];
  const local = messages.find((message) => message.local !== null)?.local ?? '';
  const headings = columns.map((column) => (column === TANDEM ? ['Tandem', local] : column.split('\n')));
  const margin = ' '.repeat(TIME_WIDTH);
  const lines = [
    `Call ${printable(call_id)}: ${messages.length} SIP messages since ${first.at}`,
    '',
    ...[0, 1].map((row) => margin + headings.map((heading) => centred(printable(heading[row] ?? ''))).join('')),
    margin + columns.map(() => centred('|')).join(''),
    ...messages.map((message) =>
      rung(message, {
        own: columns.indexOf(TANDEM),
        peer: columns.indexOf(columnOf(message)),
        columns: columns.length,
      }),
    ),
    margin + columns.map(() => centred('|')).join(''),
  ];
  if (truncated) lines.push('', 'The call had more messages than are kept. The last one is cut off.');
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`;
}

const NOTHING_KEPT =
  'No SIP messages are kept of this call. Either it was not dialed over SIP, SIP_TRACE left it out, or SIP_TRACE_DAYS have passed.\n';
const TANDEM = 'Tandem';
const COLUMN = 32;
const TIME_WIDTH = 11;

function rung(
  message: PublicSipMessage,
  { own, peer, columns }: { own: number; peer: number; columns: number },
): string {
  const [from, to] = [Math.min(own, peer), Math.max(own, peer)];
  const pointsRight = message.direction === 'out' ? peer > own : own > peer;
  const width = (to - from) * COLUMN - 1;
  const label = ` ${labelOf(message)} `;
  const shown = label.length > width - 6 ? `${label.slice(0, width - 7)}~ ` : label;
  const start = Math.floor((width - shown.length) / 2);
  const shaft = `${'-'.repeat(start)}${shown}${'-'.repeat(width - start - shown.length)}`;
  const arrow = pointsRight ? `${shaft.slice(0, -1)}>` : `<${shaft.slice(1)}`;
  const cells = centred('|').repeat(columns);
  const at = from * COLUMN + CENTRE + 1;
  return `${timeOf(message.offset_ms)}${cells.slice(0, at)}${arrow}${cells.slice(at + width)}`;
}

function labelOf({ summary, status, cseq, has_sdp, repeated }: PublicSipMessage): string {
  const method = cseq?.split(/\s+/)[1] ?? '';
  const about = [
    ...(status !== null && method !== '' && method !== 'INVITE' ? [method] : []),
    ...(has_sdp ? ['SDP'] : []),
    ...(repeated ? ['repeated'] : []),
  ];
  return printable(`${summary}${about.length === 0 ? '' : ` (${about.join(', ')})`}`);
}

function timeOf(offsetMs: number): string {
  return `+${(offsetMs / 1000).toFixed(3)}`.padStart(TIME_WIDTH - 1).padEnd(TIME_WIDTH);
}

const CENTRE = Math.floor(COLUMN / 2);

function centred(text: string): string {
  const cut = text.length > COLUMN - 2 ? `${text.slice(0, COLUMN - 3)}~` : text;
  return cut.padStart(CENTRE + Math.ceil(cut.length / 2)).padEnd(COLUMN);
}

/** Replaces control characters, because peers choose these texts. */
function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?');
}
