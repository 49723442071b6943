import { crc32 } from 'node:zlib';

/** EXIF orientations: upside down, and on either side. */
export const TURNS = [3, 6, 8] as const;

/**
 * Makes tesseract.js read the picture rotated; null if the format does not allow it. tesseract.js searches the first
 * 500 bytes for an EXIF orientation, so one is inserted as a comment at the start.
 */
export function turnedPicture(picture: Buffer, orientation: (typeof TURNS)[number]): Buffer | null {
  // The orientation tag (TIFF 6.0, section 2): 0x0112, one SHORT, its value.
  const tag = Buffer.of(1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0);
  const start = picture.toString('latin1', 0, 4);
  if (start === '\x89PNG') return inserted(picture, PNG_HEADER_BYTES, pngChunk(tag));
  if (start.startsWith('\xff\xd8\xff')) {
    return inserted(picture, 2, Buffer.concat([Buffer.of(0xff, 0xfe, 0, tag.length + 2), tag]));
  }
  if (start.startsWith('P5\n')) return inserted(picture, 3, Buffer.concat([Buffer.from('#'), tag, Buffer.from('\n')]));
  return null;
}

/** The signature and IHDR. */
const PNG_HEADER_BYTES = 33;

/** An unknown ancillary chunk, which decoders skip (PNG, 5.4). */
function pngChunk(data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from('tuRn'), data]);
  const chunk = Buffer.alloc(body.length + 8);
  chunk.writeUInt32BE(data.length, 0);
  body.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(body), body.length + 4);
  return chunk;
}

function inserted(bytes: Buffer, at: number, more: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, at), more, bytes.subarray(at)]);
}
