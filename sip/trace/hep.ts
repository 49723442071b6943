import { ipAddresses } from '../../runtime/ip-packet.ts';
import type { CallMessage, WireAddress } from './wire-message.ts';

/**
 * A SIP message as a HEP3 datagram (github.com/sipcapture/HEP), with the call id as correlation id. Null if it is too
 * large. Unknown addresses become unspecified.
 */
export function hepDatagram(message: CallMessage, captureId: number): Buffer | null {
  const { local, remote, direction, transport, atMs, callId, text } = message;
  const [source, destination] = direction === 'sent' ? [local, remote] : [remote, local];
  const { from, to } = ipAddresses(source?.host ?? '', destination?.host ?? '');
  const isIpv6 = from.length === 16;
  const seconds = Math.floor(atMs / 1000);
  const chunks = [
    chunk(1, byte(isIpv6 ? AF_INET6 : AF_INET)),
    chunk(2, byte(transport === 'udp' ? UDP : TCP)),
    chunk(isIpv6 ? 5 : 3, from),
    chunk(isIpv6 ? 6 : 4, to),
    chunk(7, portOf(source)),
    chunk(8, portOf(destination)),
    chunk(9, integer(seconds)),
    chunk(10, integer((atMs - seconds * 1000) * 1000)),
    chunk(11, byte(SIP)),
    chunk(12, integer(captureId)),
    chunk(17, Buffer.from(callId, 'utf8')),
    chunk(15, Buffer.from(text, 'latin1')),
  ];
  const length = 6 + chunks.reduce((sum, { length: each }) => sum + each, 0);
  if (length > MOST_BYTES) return null;
  const head = Buffer.from('HEP3\0\0', 'latin1');
  head.writeUInt16BE(length, 4);
  return Buffer.concat([head, ...chunks]);
}

/** Vendor 0: a type of the standard. */
function chunk(type: number, value: Buffer): Buffer {
  const head = Buffer.alloc(6);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE((6 + value.length) & 0xffff, 4);
  return Buffer.concat([head, value]);
}

function byte(value: number): Buffer {
  return Buffer.of(value);
}

function integer(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(Math.floor(value) >>> 0, 0);
  return bytes;
}

function portOf(address: WireAddress | null): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(address?.port ?? 0, 0);
  return bytes;
}

const AF_INET = 2;
const AF_INET6 = 10;
const UDP = 17;
const TCP = 6;
const SIP = 1;
/** Limit of a UDP datagram over IPv4. */
const MOST_BYTES = 65_507;
