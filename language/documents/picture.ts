import { TandemError } from '../../machines/errors.ts';
import type { PictureType } from './content-type.ts';
import type { DocumentSection, ReadDocument } from './document-reader.ts';
import { pnmOf } from './grey-picture.ts';
import { type PictureSize, pictureSize } from './picture-size.ts';
import { READING_LIMITS } from './reading-limits.ts';
import { createTextRecognition, type RecognitionEngine } from './text-recognition.ts';

/** @throws TandemError `DOCUMENT_TOO_LARGE`, `DOCUMENT_NOT_READABLE`; Error if the picture is damaged */
export async function readPicture(
  bytes: Buffer,
  type: PictureType,
  engine: RecognitionEngine | null,
): Promise<ReadDocument> {
  const pages = await pagesOf(bytes, type);
  if (pages.length === 0) throw new TandemError('DOCUMENT_NOT_READABLE', 'The image is damaged or truncated.');
  for (const page of pages) requireSize(page);
  const recognition = createTextRecognition(engine);
  const sections: DocumentSection[] = [];
  try {
    for (const [index, { picture }] of pages.entries()) {
      if (recognition.isExhausted) break;
      sections.push({ heading: null, page: index + 1, text: await recognition.recognise(await picture()) });
    }
  } finally {
    await recognition.close();
  }
  const leftOut = pages.length - sections.length;
  const warnings = leftOut === 0 ? [] : [`Skipped the last ${leftOut} of ${pages.length} pages: too many pictures.`];
  return { format: 'image', title: null, sections, pageCount: pages.length, isOcr: true, warnings };
}

interface PicturePage extends PictureSize {
  /** A file that text recognition accepts. @throws Error if the picture is damaged */
  picture: () => Buffer | Promise<Buffer>;
}

/** Returns the pages of a picture file, not decoded yet. @throws Error if the file is damaged */
export async function pagesOf(bytes: Buffer, type: PictureType): Promise<PicturePage[]> {
  if (type === 'tif') {
    const { pagesOfTiff } = await import('./tiff.ts');
    const { decodeTiffPage } = await import('./tiff-picture.ts');
    return pagesOfTiff(bytes).map((page) => ({ ...page, picture: async () => pnmOf(await decodeTiffPage(page)) }));
  }
  if (type === 'gif') {
    const { firstPictureOfGif } = await import('./gif.ts');
    const { width, height, decode } = firstPictureOfGif(bytes);
    return [{ width, height, picture: () => pnmOf(decode()) }];
  }
  const size = pictureSize(bytes, type);
  return size === null ? [] : [{ ...size, picture: () => bytes }];
}

function requireSize({ width, height }: PictureSize): void {
  const { pictureSide, picturePixels } = READING_LIMITS;
  if (Math.max(width, height) <= pictureSide && width * height <= picturePixels) return;
  throw new TandemError('DOCUMENT_TOO_LARGE', `The picture is ${width} by ${height} pixels. Send a smaller one.`);
}
