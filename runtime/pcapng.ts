export interface CapturedPacket {
  /** Wall time, in milliseconds since the epoch. */
  atMs: number;
  bytes: Buffer;
  direction: 'sent' | 'received';
  comment: string;
}

export interface Capture {
  /** About the whole file. */
  comment: string;
  packets: readonly CapturedPacket[];
}

/** A pcapng capture file (draft-ietf-opsawg-pcapng) with one interface of raw IP packets. */
export function pcapngFile({ comment, packets }: Capture): Buffer {
  return Buffer.concat([sectionHeader(comment), INTERFACE, ...packets.map(enhancedPacket)]);
}

function sectionHeader(comment: string): Buffer {
  const body = Buffer.alloc(16);
  body.writeUInt32LE(0x1a2b3c4d, 0);
  body.writeUInt16LE(1, 4);
  // Unspecified section length.
  body.writeBigInt64LE(-1n, 8);
  return block(0x0a0d0d0a, [body, ...options([COMMENT, textOf(comment)], [SECTION_APPLICATION, textOf('Tandem')])]);
}

/** Times are in microseconds, the default; packets are not truncated. */
function interfaceDescription(): Buffer {
  const body = Buffer.alloc(8);
  body.writeUInt16LE(LINKTYPE_RAW, 0);
  return block(1, [body, ...options([INTERFACE_NAME, textOf('tandem')])]);
}

function enhancedPacket({ atMs, bytes, direction, comment }: CapturedPacket): Buffer {
  const time = BigInt(Math.round(atMs)) * 1000n;
  const body = Buffer.alloc(20);
  body.writeUInt32LE(Number(time >> 32n), 4);
  body.writeUInt32LE(Number(time & 0xffff_ffffn), 8);
  body.writeUInt32LE(bytes.length, 12);
  body.writeUInt32LE(bytes.length, 16);
  const flags = Buffer.alloc(4);
  flags.writeUInt32LE(direction === 'received' ? 1 : 2, 0);
  return block(6, [body, padded(bytes), ...options([COMMENT, textOf(comment)], [PACKET_FLAGS, flags])]);
}

function block(type: number, parts: readonly Buffer[]): Buffer {
  const length = 12 + parts.reduce((sum, part) => sum + part.length, 0);
  const head = Buffer.alloc(8);
  head.writeUInt32LE(type, 0);
  head.writeUInt32LE(length, 4);
  const tail = Buffer.alloc(4);
  tail.writeUInt32LE(length, 0);
  return Buffer.concat([head, ...parts, tail]);
}

function options(...list: readonly [code: number, value: Buffer][]): Buffer[] {
  const parts = list.flatMap(([code, value]) => {
    const head = Buffer.alloc(4);
    head.writeUInt16LE(code, 0);
    head.writeUInt16LE(value.length, 2);
    return [head, padded(value)];
  });
  return [...parts, Buffer.alloc(4)];
}

/** Pads to a multiple of four bytes. */
function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)]);
}

function textOf(text: string): Buffer {
  return Buffer.from(text.slice(0, MOST_COMMENT), 'utf8');
}

const LINKTYPE_RAW = 101;
const COMMENT = 1;
const PACKET_FLAGS = 2;
const INTERFACE_NAME = 2;
const SECTION_APPLICATION = 4;
/** An option has at most 65,535 bytes; a character has up to three. */
const MOST_COMMENT = 20_000;
const INTERFACE = interfaceDescription();
