import ipaddr from 'ipaddr.js';

export interface IpEndpoint {
  /** An IP address, without brackets. Any other text becomes the unspecified address. */
  host: string;
  port: number;
}

export interface IpPayload {
  source: IpEndpoint;
  destination: IpEndpoint;
  /** At most 65,000 bytes. */
  payload: Buffer;
}

/** An IP packet with a UDP datagram (RFC 768), with correct lengths and checksums. */
export function udpPacket({ source, destination, payload }: IpPayload): Buffer {
  const segment = Buffer.alloc(8 + payload.length);
  segment.writeUInt16BE(source.port, 0);
  segment.writeUInt16BE(destination.port, 2);
  segment.writeUInt16BE(segment.length, 4);
  payload.copy(segment, 8);
  // Zero would mean "no checksum".
  return ipPacket({ source, destination, protocol: UDP, segment, checksumAt: 6, zeroAs: 0xffff });
}

/** An IP packet with a TCP segment (RFC 9293) that carries data. */
export function tcpPacket({
  source,
  destination,
  payload,
  sequence,
  acknowledged,
}: IpPayload & { sequence: number; acknowledged: number }): Buffer {
  const segment = Buffer.alloc(20 + payload.length);
  segment.writeUInt16BE(source.port, 0);
  segment.writeUInt16BE(destination.port, 2);
  segment.writeUInt32BE(sequence >>> 0, 4);
  segment.writeUInt32BE(acknowledged >>> 0, 8);
  segment.writeUInt8(5 << 4, 12);
  segment.writeUInt8(PSH | ACK, 13);
  segment.writeUInt16BE(0xffff, 14);
  payload.copy(segment, 20);
  return ipPacket({ source, destination, protocol: TCP, segment, checksumAt: 16, zeroAs: 0 });
}

interface Segment {
  source: IpEndpoint;
  destination: IpEndpoint;
  protocol: number;
  segment: Buffer;
  checksumAt: number;
  zeroAs: number;
}

function ipPacket({ source, destination, protocol, segment, checksumAt, zeroAs }: Segment): Buffer {
  const { from, to } = ipAddresses(source.host, destination.host);
  const pseudo = Buffer.alloc(8);
  pseudo.writeUInt32BE(segment.length, 0);
  pseudo.writeUInt32BE(protocol, 4);
  segment.writeUInt16BE(checksumOf(Buffer.concat([from, to, pseudo, segment])) || zeroAs, checksumAt);
  if (from.length === 16) {
    // RFC 8200 §3.
    const header = Buffer.alloc(8);
    header.writeUInt8(6 << 4, 0);
    header.writeUInt16BE(segment.length, 4);
    header.writeUInt8(protocol, 6);
    header.writeUInt8(HOPS, 7);
    return Buffer.concat([header, from, to, segment]);
  }
  // RFC 791 §3.1.
  const header = Buffer.alloc(20);
  header.writeUInt8((4 << 4) | 5, 0);
  header.writeUInt16BE(20 + segment.length, 2);
  header.writeUInt8(HOPS, 8);
  header.writeUInt8(protocol, 9);
  from.copy(header, 12);
  to.copy(header, 16);
  header.writeUInt16BE(checksumOf(header), 10);
  return Buffer.concat([header, segment]);
}

/** The bytes of both addresses, in one family. An address that does not fit becomes unspecified. */
export function ipAddresses(source: string, destination: string): { from: Buffer; to: Buffer } {
  const from = bytesOf(source);
  const to = bytesOf(destination);
  const length = to?.length ?? from?.length ?? 4;
  return { from: from?.length === length ? from : Buffer.alloc(length), to: to ?? Buffer.alloc(length) };
}

function bytesOf(host: string): Buffer | null {
  const [address = ''] = host.split('%', 1);
  return ipaddr.isValid(address) ? Buffer.from(ipaddr.process(address).toByteArray()) : null;
}

/** RFC 1071. */
function checksumOf(bytes: Buffer): number {
  let sum = 0;
  for (let at = 0; at + 1 < bytes.length; at += 2) sum += bytes.readUInt16BE(at);
  if (bytes.length % 2 === 1) sum += bytes.readUInt8(bytes.length - 1) << 8;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

const UDP = 17;
const TCP = 6;
const PSH = 0x08;
const ACK = 0x10;
const HOPS = 64;
