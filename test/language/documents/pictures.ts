import { crc32, deflateSync } from 'node:zlib';

/** Grey levels, one byte per pixel. */
export interface Picture {
  width: number;
  height: number;
  pixels: Buffer;
}

/** Draws capital letters in a 5x7 font, large with soft edges, black on white. */
export function drawnText(lines: readonly string[]): Picture {
  const columns = Math.max(...lines.map((line) => line.length)) * 6 + MARGIN * 2;
  const rows = lines.length * 12 + MARGIN * 2;
  const dots = Array.from({ length: rows }, () => new Uint8Array(columns));
  for (const [number, line] of lines.entries()) {
    for (const [index, letter] of [...line].entries()) {
      for (const [row, bits] of (FONT[letter] ?? []).entries()) {
        for (let column = 0; column < 5; column += 1) {
          if ((bits >> (4 - column)) & 1) dots[MARGIN + number * 12 + row]![MARGIN + index * 6 + column] = 1;
        }
      }
    }
  }
  const width = columns * DOT;
  const height = rows * DOT;
  const pixels = Buffer.alloc(width * height, 255);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) pixels[y * width + x] = 255 - Math.round(255 * inkAt(dots, x / DOT, y / DOT));
  }
  return { width, height, pixels };
}

export function turnedLeft({ width, height, pixels }: Picture): Picture {
  const made = Buffer.alloc(pixels.length);
  for (const [at, pixel] of pixels.entries()) {
    const [x, y] = [at % width, Math.floor(at / width)];
    made[(width - 1 - x) * height + y] = pixel;
  }
  return { width: height, height: width, pixels: made };
}

const MARGIN = 6;
/** Pixels per font dot. */
const DOT = 5;

/** Bilinear between four dots, sharpened. */
function inkAt(dots: readonly Uint8Array[], x: number, y: number): number {
  const [left, top] = [Math.floor(x - 0.5), Math.floor(y - 0.5)];
  const [right, down] = [x - 0.5 - left, y - 0.5 - top];
  const at = (row: number, column: number) => dots[row]?.[column] ?? 0;
  const upper = at(top, left) * (1 - right) + at(top, left + 1) * right;
  const lower = at(top + 1, left) * (1 - right) + at(top + 1, left + 1) * right;
  return Math.min(1, Math.max(0, (upper * (1 - down) + lower * down - 0.3) * 2.5));
}

/** Rows from the top; the highest bit is left. */
const FONT: Record<string, readonly number[]> = {
  A: [14, 17, 17, 31, 17, 17, 17],
  C: [14, 17, 16, 16, 16, 17, 14],
  D: [30, 17, 17, 17, 17, 17, 30],
  E: [31, 16, 16, 30, 16, 16, 31],
  H: [17, 17, 17, 31, 17, 17, 17],
  I: [14, 4, 4, 4, 4, 4, 14],
  L: [16, 16, 16, 16, 16, 16, 31],
  N: [17, 25, 25, 21, 19, 19, 17],
  O: [14, 17, 17, 17, 17, 17, 14],
  R: [30, 17, 17, 30, 20, 18, 17],
  S: [15, 16, 16, 14, 1, 1, 30],
  T: [31, 4, 4, 4, 4, 4, 4],
  U: [17, 17, 17, 17, 17, 17, 14],
};

export function pngOf({ width, height, pixels }: Picture): Buffer {
  const rows = Array.from({ length: height }, (_, y) =>
    Buffer.concat([Buffer.of(0), pixels.subarray(y * width, (y + 1) * width)]),
  );
  return pngWith({ width, height, data: deflateSync(Buffer.concat(rows)) });
}

/** A PNG with arbitrary dimensions in its header. */
export function pngWith({ width, height, data }: { width: number; height: number; data: Buffer }): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 0, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', data),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
