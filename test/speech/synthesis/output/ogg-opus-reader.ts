import { createDecoder } from 'libopus-wasm';

/** Strict reader of Ogg (RFC 3533) and Ogg Opus (RFC 7845), independent of the writer. */

export interface OggPage {
  isFirst: boolean;
  isLast: boolean;
  granulePosition: number;
  serial: number;
  sequence: number;
  packets: Buffer[];
}

/** @throws Error for an invalid page */
export function oggPages(file: Uint8Array): OggPage[] {
  const bytes = Buffer.from(file);
  const pages: OggPage[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (bytes.toString('latin1', at, at + 4) !== 'OggS' || bytes[at + 4] !== 0) throw new Error(`no page at ${at}`);
    const flags = bytes[at + 5]!;
    if ((flags & 1) !== 0) throw new Error('continues a packet');
    const lacing = [...bytes.subarray(at + 27, at + 27 + bytes[at + 26]!)];
    if (lacing.at(-1) === 255) throw new Error('a packet goes on in the next page');
    let body = at + 27 + lacing.length;
    const end = body + lacing.reduce((sum, length) => sum + length, 0);
    if (end > bytes.length) throw new Error('the page is cut off');
    const page = Buffer.from(bytes.subarray(at, end));
    page.writeUInt32LE(0, 22);
    if (checksum(page) !== bytes.readUInt32LE(at + 22)) throw new Error('wrong checksum');
    const packets: Buffer[] = [];
    let length = 0;
    for (const segment of lacing) {
      length += segment;
      if (segment === 255) continue;
      packets.push(bytes.subarray(body, body + length));
      body += length;
      length = 0;
    }
    pages.push({
      isFirst: (flags & 2) !== 0,
      isLast: (flags & 4) !== 0,
      granulePosition: Number(bytes.readBigInt64LE(at + 6)),
      serial: bytes.readUInt32LE(at + 14),
      sequence: bytes.readUInt32LE(at + 18),
      packets,
    });
    at = end;
  }
  return pages;
}

export interface OpusFile {
  preSkip: number;
  originalRateHz: number;
  vendor: string;
  /** Played samples at 48 kHz, without pre-skip and end trimming. */
  samples: Int16Array;
}

export async function decodeOggOpus(file: Uint8Array): Promise<OpusFile> {
  const [head, tags, ...audio] = oggPages(file);
  const header = head!.packets[0]!;
  const comments = tags!.packets[0]!;
  if (header.toString('latin1', 0, 8) !== 'OpusHead' || header.length !== 19) throw new Error('no OpusHead');
  if (comments.toString('latin1', 0, 8) !== 'OpusTags') throw new Error('no OpusTags');
  if (header[8] !== 1 || header[9] !== 1 || header.readInt16LE(16) !== 0 || header[18] !== 0) {
    throw new Error('not version 1, mono, without gain, of mapping family 0');
  }
  const preSkip = header.readUInt16LE(10);
  using decoder = await createDecoder({ channels: 1, sampleRate: 48_000 });
  const decoded = audio.flatMap(({ packets }) => packets.map((packet) => decoder.decode(packet)));
  const samples = new Int16Array(decoded.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of decoded) {
    samples.set(part, at);
    at += part.length;
  }
  return {
    preSkip,
    originalRateHz: header.readUInt32LE(12),
    vendor: comments.toString('utf8', 12, 12 + comments.readUInt32LE(8)),
    samples: samples.subarray(preSkip, audio.at(-1)!.granulePosition),
  };
}

/** CRC of RFC 3533 section 6, bit by bit. */
function checksum(bytes: Uint8Array): number {
  let remainder = 0;
  for (const octet of bytes) {
    for (let bit = 7; bit >= 0; bit--) {
      const top = (remainder >>> 31) ^ ((octet >> bit) & 1);
      remainder = ((remainder << 1) ^ (top === 1 ? 0x04c11db7 : 0)) >>> 0;
    }
  }
  return remainder;
}
