import type { GreyPicture } from './grey-picture.ts';

/** The first picture of a GIF file (GIF89a specification), not decoded yet. */
export interface GifPicture {
  /** Size of the canvas. */
  width: number;
  height: number;
  /** @throws Error if the picture is damaged */
  decode(): GreyPicture;
}

/** @throws Error if the file is damaged */
export function firstPictureOfGif(bytes: Buffer): GifPicture {
  const [width, height, flags] = [bytes.readUInt16LE(6), bytes.readUInt16LE(8), bytes.readUInt8(10)];
  const globalShades = shadesOf(bytes, 13, flags);
  let transparent = -1;
  for (let at = 13 + tableBytes(flags); ; ) {
    const introducer = bytes.readUInt8(at);
    if (introducer === IMAGE) {
      const frame = frameAt(bytes, at + 1);
      if (frame.left + frame.width > width || frame.top + frame.height > height)
        throw new Error('the picture is cut off');
      const shades = frame.shades ?? globalShades;
      return { width, height, decode: () => paint({ width, height }, { ...frame, shades, transparent }) };
    }
    if (introducer !== EXTENSION) throw new Error('there is no picture');
    if (bytes.readUInt8(at + 1) === GRAPHIC_CONTROL) {
      transparent = (bytes.readUInt8(at + 3) & 1) === 1 ? bytes.readUInt8(at + 6) : -1;
    }
    at = dataAt(bytes, at + 2).end;
  }
}

interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
  isInterlaced: boolean;
  /** The local colour table; null if there is none. */
  shades: Uint8Array | null;
  codeBits: number;
  data: Buffer;
}

const IMAGE = 0x2c;
const EXTENSION = 0x21;
const GRAPHIC_CONTROL = 0xf9;

function frameAt(bytes: Buffer, at: number): Frame {
  const [left, top, width, height] = [0, 2, 4, 6].map((offset) => bytes.readUInt16LE(at + offset)) as Four;
  const flags = bytes.readUInt8(at + 8);
  const data = at + 9 + tableBytes(flags);
  const codeBits = bytes.readUInt8(data);
  if (codeBits < 2 || codeBits > 8) throw new Error('the codes have no possible length');
  const place = { left, top, width, height, isInterlaced: (flags & 0x40) !== 0 };
  return { ...place, shades: shadesOf(bytes, at + 9, flags), codeBits, data: dataAt(bytes, data + 1).data };
}

type Four = [number, number, number, number];

function tableBytes(flags: number): number {
  return (flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1);
}

/** Converts a colour table to shades of grey. */
function shadesOf(bytes: Buffer, at: number, flags: number): Uint8Array | null {
  const length = tableBytes(flags);
  if (at + length > bytes.length) throw new Error('the colours lie outside the file');
  if (length === 0) return null;
  return Uint8Array.from({ length: length / 3 }, (_, index) => {
    const [red, green, blue] = bytes.subarray(at + index * 3, at + index * 3 + 3);
    return Math.round(0.299 * red! + 0.587 * green! + 0.114 * blue!);
  });
}

/** Joins the sub-blocks from `start`. */
function dataAt(bytes: Buffer, start: number): { data: Buffer; end: number } {
  const parts: Buffer[] = [];
  let at = start;
  for (let length = bytes.readUInt8(at); length > 0; length = bytes.readUInt8(at)) {
    parts.push(bytes.subarray(at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { data: Buffer.concat(parts), end: at + 1 };
}

function paint(
  { width, height }: { width: number; height: number },
  frame: Frame & { transparent: number },
): GreyPicture {
  const grey = Buffer.alloc(width * height, 255);
  const pixels = decompress(frame, frame.width * frame.height);
  for (const [index, row] of rowsOf(frame).entries()) {
    for (let column = 0; column < frame.width; column += 1) {
      const colour = pixels[index * frame.width + column]!;
      if (colour === frame.transparent) continue;
      grey[(frame.top + row) * width + frame.left + column] = frame.shades?.[colour] ?? 255;
    }
  }
  return { width, height, grey };
}

/** Row numbers in the order of the data (GIF89a, appendix E). */
function rowsOf({ height, isInterlaced }: Frame): number[] {
  const passes: [from: number, step: number][] = isInterlaced
    ? [
        [0, 8],
        [4, 8],
        [2, 4],
        [1, 2],
      ]
    : [[0, 1]];
  return passes.flatMap(([from, step]) =>
    Array.from({ length: Math.max(0, Math.ceil((height - from) / step)) }, (_, index) => from + index * step),
  );
}

const MOST_CODES = 4096;

/** LZW with codes of growing length (GIF89a, appendix F). Missing data stays colour 0. */
function decompress({ codeBits, data }: Pick<Frame, 'codeBits' | 'data'>, length: number): Uint8Array {
  const out = new Uint8Array(length);
  const clear = 1 << codeBits;
  /** Each code means the colours of an earlier code, followed by one more. */
  const earlier = new Uint16Array(MOST_CODES);
  const last = new Uint8Array(MOST_CODES);
  const lengths = new Uint16Array(MOST_CODES).fill(1, 0, clear);
  for (let code = 0; code < clear; code += 1) last[code] = code;
  let [next, bits, previous, written] = [clear + 2, codeBits + 1, -1, 0];
  for (let bit = 0; bit + bits <= data.length * 8 && written < length; ) {
    const byte = bit >> 3;
    const window = data[byte]! | ((data[byte + 1] ?? 0) << 8) | ((data[byte + 2] ?? 0) << 16);
    const code = (window >> (bit & 7)) & ((1 << bits) - 1);
    bit += bits;
    if (code === clear + 1) break;
    if (code === clear) {
      [next, bits, previous] = [clear + 2, codeBits + 1, -1];
      continue;
    }
    if (code > next || (code === next && previous === -1)) throw new Error('a code is not known');
    if (previous !== -1 && next < MOST_CODES) {
      earlier[next] = previous;
      lengths[next] = lengths[previous]! + 1;
      let first = code === next ? previous : code;
      while (lengths[first]! > 1) first = earlier[first]!;
      last[next] = last[first]!;
      next += 1;
      if (next === 1 << bits && bits < 12) bits += 1;
    }
    const end = written + lengths[code]!;
    for (let at = end - 1, from = code; at >= written; at -= 1, from = earlier[from]!) {
      if (at < length) out[at] = last[from]!;
    }
    written = end;
    previous = code;
  }
  return out;
}
