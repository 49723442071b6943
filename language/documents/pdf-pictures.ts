import { getResolvedPDFJS } from 'unpdf';
import type { PdfPage } from './pdf.ts';
import { READING_LIMITS, RECOGNITION_LIMITS } from './reading-limits.ts';

/** A picture as pdf.js decodes it. */
interface PaintedPicture {
  width: number;
  height: number;
  /** `ImageKind` of pdf.js. */
  kind?: number;
  data?: Uint8Array | Uint8ClampedArray | null;
}

/** The largest pictures that a page paints, in the order of painting, as PNM files in shades of grey. */
export async function* picturesOf(page: PdfPage): AsyncGenerator<Buffer | 'too large'> {
  const { OPS } = await getResolvedPDFJS();
  const { fnArray, argsArray } = await page.getOperatorList();
  const pictures: PaintedPicture[] = [];
  for (const [index, operation] of fnArray.entries()) {
    const [painted] = (argsArray[index] ?? []) as [unknown];
    if (operation === OPS.paintImageXObject) pictures.push(...(await decoded(page, painted)));
    else if (operation === OPS.paintInlineImageXObject) pictures.push(painted as PaintedPicture);
  }
  const readable = pictures.filter(({ width, height }) => Math.min(width, height) >= RECOGNITION_LIMITS.fewestPixels);
  const largest = readable.toSorted((a, b) => b.width * b.height - a.width * a.height);
  const chosen = new Set(largest.slice(0, RECOGNITION_LIMITS.picturesPerPage));
  for (const picture of readable) {
    if (!chosen.has(picture)) continue;
    if (picture.width * picture.height > READING_LIMITS.picturePixels) yield 'too large';
    const grey = greyOf(picture);
    if (grey !== null) yield Buffer.concat([Buffer.from(`P5\n${picture.width} ${picture.height}\n255\n`), grey]);
  }
}

/** Its decoder leaves out what is larger than it was told, and what is damaged. */
async function decoded(page: PdfPage, id: unknown): Promise<PaintedPicture[]> {
  if (typeof id !== 'string') return [];
  const objects = id.startsWith('g_') ? page.commonObjs : page.objs;
  const picture = await new Promise<PaintedPicture | null>((resolve) => objects.get(id, resolve));
  return picture === null ? [] : [picture];
}

const ONE_BIT = 1;
const RGB = 2;
const RGBA = 3;

function greyOf({ width, height, kind, data }: PaintedPicture): Buffer | null {
  if (!data) return null;
  const pixels = width * height;
  const grey = Buffer.alloc(pixels, 255);
  if (kind === ONE_BIT) {
    const rowBytes = Math.ceil(width / 8);
    if (data.length < rowBytes * height) return null;
    for (let at = 0; at < pixels; at += 1) {
      const column = at % width;
      const byte = data[((at - column) / width) * rowBytes + (column >> 3)]!;
      grey[at] = (byte >> (7 - (column & 7))) & 1 ? 255 : 0;
    }
    return grey;
  }
  const bytes = kind === RGB ? 3 : 4;
  if ((kind !== RGB && kind !== RGBA) || data.length < pixels * bytes) return null;
  for (let at = 0, from = 0; at < pixels; at += 1, from += bytes) {
    const opacity = bytes === 4 ? data[from + 3]! / 255 : 1;
    const luma = 0.299 * data[from]! + 0.587 * data[from + 1]! + 0.114 * data[from + 2]!;
    grey[at] = Math.round(luma * opacity + 255 * (1 - opacity));
  }
  return grey;
}
