import { getResolvedPDFJS } from 'unpdf';
import { type GreyPicture, greyOfColours, pnmOf } from './grey-picture.ts';
import type { Pdf } from './open-pdf.ts';
import { READING_LIMITS, RECOGNITION_LIMITS } from './reading-limits.ts';

export type PdfPage = Awaited<ReturnType<Pdf['getPage']>>;

/** A picture as pdf.js decodes it. */
interface PaintedPicture {
  width: number;
  height: number;
  /** `ImageKind` of pdf.js. */
  kind?: number;
  data?: Uint8Array | Uint8ClampedArray | null;
}

/**
 * Yields the largest pictures that a page paints, in painting order, as greyscale PNM files. pdf.js skips pictures
 * beyond its size limit.
 */
export async function* picturesOf(page: PdfPage): AsyncGenerator<Buffer | 'left out'> {
  const { OPS } = await getResolvedPDFJS();
  const { fnArray, argsArray } = await page.getOperatorList();
  const pictures: PaintedPicture[] = [];
  for (const [index, operation] of fnArray.entries()) {
    const [painted] = (argsArray[index] ?? []) as [unknown];
    if (operation === OPS.paintImageXObject) {
      const found = await decoded(page, painted);
      if (found.length === 0) yield 'left out';
      pictures.push(...found);
    }
    if (operation === OPS.paintInlineImageXObject) pictures.push(painted as PaintedPicture);
    else if (operation === OPS.paintImageMaskXObject) pictures.push(...(await stencilled(page, painted)));
  }
  const readable = pictures.filter(({ width, height }) => Math.min(width, height) >= RECOGNITION_LIMITS.fewestPixels);
  const largest = readable.toSorted((a, b) => b.width * b.height - a.width * a.height);
  const chosen = new Set(largest.slice(0, RECOGNITION_LIMITS.picturesPerPage));
  for (const picture of readable) {
    if (!chosen.has(picture)) continue;
    if (picture.width * picture.height > READING_LIMITS.picturePixels) yield 'left out';
    const grey = greyOf(picture);
    if (grey !== null) yield pnmOf(turned({ ...picture, grey }, page.rotate));
  }
}

/** Returns all image objects of a page in painting order; null for those that cannot be decoded. */
export async function paintedPictures(page: PdfPage): Promise<(GreyPicture | null)[]> {
  const { OPS } = await getResolvedPDFJS();
  const { fnArray, argsArray } = await page.getOperatorList();
  const pictures: (GreyPicture | null)[] = [];
  for (const [index, operation] of fnArray.entries()) {
    if (operation !== OPS.paintImageXObject) continue;
    const [picture] = await decoded(page, (argsArray[index] as [unknown])[0]);
    const grey = picture && greyOf(picture);
    pictures.push(picture && grey ? { width: picture.width, height: picture.height, grey } : null);
  }
  return pictures;
}

/** pdf.js leaves out damaged pictures and JPEG 2000. */
async function decoded(page: PdfPage, id: unknown): Promise<PaintedPicture[]> {
  if (typeof id !== 'string') return [];
  const objects = id.startsWith('g_') ? page.commonObjs : page.objs;
  const picture = await new Promise<PaintedPicture | null>((resolve) => objects.get(id, resolve));
  return picture === null ? [] : [picture];
}

/** An image mask: bits that are 0 paint black, as in many scans of text. Its data may be a separate object. */
async function stencilled(page: PdfPage, painted: unknown): Promise<PaintedPicture[]> {
  const { width, height, data } = painted as { width: number; height: number; data?: unknown };
  if (typeof data === 'string') return (await decoded(page, data)).map((one) => ({ ...one, kind: ONE_BIT }));
  return data instanceof Uint8Array ? [{ width, height, data, kind: ONE_BIT }] : [];
}

/** Rotates as the page is shown: clockwise in quarter turns. */
function turned(picture: GreyPicture, degrees: number): GreyPicture {
  const { width, height, grey } = picture;
  const quarters = (((degrees / 90) % 4) + 4) % 4;
  if (quarters === 0 || !Number.isInteger(quarters)) return picture;
  if (quarters === 2) return { width, height, grey: Buffer.from(grey).reverse() };
  const made = Buffer.alloc(grey.length);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const [column, row] = quarters === 1 ? [height - 1 - y, x] : [y, width - 1 - x];
      made[row * height + column] = grey[y * width + x]!;
    }
  }
  return { width: height, height: width, grey: made };
}

const ONE_BIT = 1;
const RGB = 2;
const RGBA = 3;

function greyOf({ width, height, kind, data }: PaintedPicture): Buffer | null {
  if (!data) return null;
  if (kind === RGB || kind === RGBA) {
    return greyOfColours(data, { width, height, bytesPerPixel: kind === RGB ? 3 : 4 });
  }
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
  return null;
}
