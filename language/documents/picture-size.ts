import type { PictureType } from './content-type.ts';

export interface PictureSize {
  width: number;
  height: number;
}

/** Reads a picture's size from its header, before anything is decoded; null if the header is cut off. */
export function pictureSize(bytes: Buffer, type: Exclude<PictureType, 'gif' | 'tif'>): PictureSize | null {
  try {
    return { png: pngSize, jpg: jpegSize, webp: webpSize }[type](bytes);
  } catch (error) {
    // Read beyond the end.
    if (error instanceof RangeError) return null;
    throw error;
  }
}

function pngSize(bytes: Buffer): PictureSize | null {
  if (bytes.toString('latin1', 12, 16) !== 'IHDR') return null;
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

/** The largest frame: there should be only one (ITU-T T.81, B.1.1). */
function jpegSize(bytes: Buffer): PictureSize | null {
  let size: PictureSize | null = null;
  let at = 2;
  while (at + 4 <= bytes.length) {
    if (bytes[at] !== 0xff) return size;
    const marker = bytes[at + 1]!;
    if (marker === 0xff) at += 1;
    else if (marker === START_OF_SCAN || marker === END_OF_IMAGE) return size;
    else if (isFrame(marker)) {
      const frame = { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
      size = largest(size, frame);
      at += 2 + bytes.readUInt16BE(at + 2);
    } else at += 2 + bytes.readUInt16BE(at + 2);
  }
  return size;
}

const START_OF_SCAN = 0xda;
const END_OF_IMAGE = 0xd9;

/** SOF0 to SOF15, without the table markers in between. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
}

/** The largest size in any chunk (RFC 9649, 2.5 to 2.7). */
function webpSize(bytes: Buffer): PictureSize | null {
  let size: PictureSize | null = null;
  for (let at = 12; at + 18 <= bytes.length; ) {
    const data = at + 8;
    const length = bytes.readUInt32LE(at + 4);
    size = largest(size, webpChunkSize(bytes, { name: bytes.toString('latin1', at, at + 4), data }));
    at = data + length + (length % 2);
  }
  return size;
}

function webpChunkSize(bytes: Buffer, { name, data }: { name: string; data: number }): PictureSize | null {
  if (name === 'VP8 ') {
    return { width: bytes.readUInt16LE(data + 6) & 0x3fff, height: bytes.readUInt16LE(data + 8) & 0x3fff };
  }
  if (name === 'VP8L') {
    const bits = bytes.readUInt32LE(data + 1);
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  if (name === 'VP8X') return { width: bytes.readUIntLE(data + 4, 3) + 1, height: bytes.readUIntLE(data + 7, 3) + 1 };
  return null;
}

function largest(a: PictureSize | null, b: PictureSize | null): PictureSize | null {
  if (a === null || b === null) return a ?? b;
  return { width: Math.max(a.width, b.width), height: Math.max(a.height, b.height) };
}
