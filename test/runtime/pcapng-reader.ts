export interface ReadPacket {
  atMs: number;
  version: 4 | 6;
  protocol: 'udp' | 'tcp';
  source: string;
  destination: string;
  sourcePort: number;
  destinationPort: number;
  sequence: number | null;
  payload: Buffer;
  comment: string;
  direction: number;
}

/** A strict reader for the output of `runtime/pcapng.ts`, with all lengths and checksums verified. */
export function readPcapng(file: Buffer): { comment: string; linkType: number; packets: ReadPacket[] } {
  const blocks: { type: number; body: Buffer }[] = [];
  for (let at = 0; at < file.length; ) {
    const length = file.readUInt32LE(at + 4);
    if (length % 4 !== 0 || file.readUInt32LE(at + length - 4) !== length) throw new Error('wrong length of a block');
    blocks.push({ type: file.readUInt32LE(at), body: file.subarray(at + 8, at + length - 4) });
    at += length;
  }
  const [section, description, ...rest] = blocks;
  if (section?.type !== 0x0a0d0d0a || section.body.readUInt32LE(0) !== 0x1a2b3c4d) throw new Error('no section');
  if (description?.type !== 1 || rest.some(({ type }) => type !== 6)) throw new Error('unexpected block');
  return {
    comment: optionsOf(section.body.subarray(16)).get(1)?.toString() ?? '',
    linkType: description.body.readUInt16LE(0),
    packets: rest.map(({ body }) => {
      const captured = body.readUInt32LE(12);
      if (body.readUInt32LE(16) !== captured) throw new Error('a packet is cut');
      const options = optionsOf(body.subarray(20 + captured + (-captured & 3)));
      const time = (BigInt(body.readUInt32LE(4)) << 32n) + BigInt(body.readUInt32LE(8));
      return {
        ...readIp(body.subarray(20, 20 + captured)),
        atMs: Number(time / 1000n),
        comment: options.get(1)?.toString() ?? '',
        direction: options.get(2)?.readUInt32LE(0) ?? 0,
      };
    }),
  };
}

function optionsOf(bytes: Buffer): Map<number, Buffer> {
  const options = new Map<number, Buffer>();
  for (let at = 0; ; ) {
    const [code, length] = [bytes.readUInt16LE(at), bytes.readUInt16LE(at + 2)];
    if (code === 0) return options;
    options.set(code, bytes.subarray(at + 4, at + 4 + length));
    at += 4 + length + (-length & 3);
  }
}

function readIp(packet: Buffer): Omit<ReadPacket, 'atMs' | 'comment' | 'direction'> {
  const version = packet.readUInt8(0) >> 4 === 6 ? 6 : 4;
  const headerLength = version === 6 ? 40 : 20;
  const total = version === 6 ? 40 + packet.readUInt16BE(4) : packet.readUInt16BE(2);
  if (total !== packet.length) throw new Error('wrong length of a packet');
  if (version === 4 && sumOf(packet.subarray(0, 20)) !== 0xffff) throw new Error('wrong checksum of the header');
  const addresses = version === 6 ? packet.subarray(8, 40) : packet.subarray(12, 20);
  const number = packet.readUInt8(version === 6 ? 6 : 9);
  const segment = packet.subarray(headerLength);
  const pseudo = Buffer.alloc(4);
  pseudo.writeUInt16BE(number, 0);
  pseudo.writeUInt16BE(segment.length, 2);
  if (sumOf(Buffer.concat([addresses, pseudo, segment])) !== 0xffff) throw new Error('wrong checksum of the segment');
  const isUdp = number === 17;
  if (isUdp && segment.readUInt16BE(4) !== segment.length) throw new Error('wrong length of a datagram');
  const half = addresses.length / 2;
  return {
    version,
    protocol: isUdp ? 'udp' : 'tcp',
    source: addresses.toString('hex', 0, half),
    destination: addresses.toString('hex', half),
    sourcePort: segment.readUInt16BE(0),
    destinationPort: segment.readUInt16BE(2),
    sequence: isUdp ? null : segment.readUInt32BE(4),
    payload: segment.subarray(isUdp ? 8 : 20),
  };
}

/** One's complement sum of 16-bit words (RFC 1071): all ones for a valid checksum. */
function sumOf(bytes: Buffer): number {
  let sum = 0n;
  for (let at = 0; at < bytes.length; at += 2) sum += BigInt((bytes[at]! << 8) | (bytes[at + 1] ?? 0));
  while (sum > 0xffffn) sum = (sum & 0xffffn) + (sum >> 16n);
  return Number(sum);
}
