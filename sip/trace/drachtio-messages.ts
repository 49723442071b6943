import { withoutBrackets } from '../message/index.ts';
import type { SeenMessage } from './call-messages.ts';

/**
 * The SIP message in a frame of a drachtio-server: a received one, or the echo of a sent one. Null for other frames,
 * such as a response that the server generated. The server shows no 100, no retransmissions, and no ACK of a rejection.
 */
export function readDrachtioMessage(frame: string, atMs: number): SeenMessage | null {
  const end = frame.indexOf('\r\n');
  if (end === -1) return null;
  const bytes = Buffer.from(frame.slice(end + 2), 'utf8');
  if (bytes.length === 0) return null;
  const fields = frame.slice(0, end).split('|');
  const [, kind] = fields;
  if (kind === 'sip' && fields[2] === 'network') {
    const [size, transport = '', host, port] = fields.slice(3);
    if (size === '0') return null;
    const local = addressOf(fields[10], fields[11]);
    return { atMs, direction: 'received', transport, local, remote: addressOf(host, port), bytes };
  }
  // `id|response|id of the command|OK|application|...`
  if (kind !== 'response' || fields[3] !== 'OK' || fields[4] !== 'application') return null;
  const [, transport = '', host, port] = fields.slice(5);
  const address = addressOf(host, port);
  // The echo of a request has the server's address, that of a response the peer's.
  const isResponse = bytes.toString('latin1', 0, 8) === 'SIP/2.0 ';
  const addresses = isResponse ? { local: null, remote: address } : { local: address, remote: null };
  return { atMs, direction: 'sent', transport, ...addresses, bytes };
}

function addressOf(host: string | undefined, port: string | undefined): { host: string; port: number } | null {
  const number = Number(port);
  if (!host || !Number.isInteger(number) || number < 1 || number > 65_535) return null;
  return { host: withoutBrackets(host), port: number };
}
