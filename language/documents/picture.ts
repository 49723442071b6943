import { TandemError } from '../../machines/errors.ts';
import type { PictureType } from './content-type.ts';
import type { ReadDocument } from './document-reader.ts';
import { pictureSize } from './picture-size.ts';
import { READING_LIMITS } from './reading-limits.ts';
import { createTextRecognition } from './text-recognition.ts';

/** @throws TandemError `DOCUMENT_TOO_LARGE`, `DOCUMENT_NOT_READABLE`; Error when the picture is damaged */
export async function readPicture(bytes: Buffer, type: PictureType): Promise<ReadDocument> {
  const size = pictureSize(bytes, type);
  if (size === null) throw new TandemError('DOCUMENT_NOT_READABLE', 'The image is damaged or truncated.');
  const { width, height } = size;
  const { pictureSide, picturePixels } = READING_LIMITS;
  if (Math.max(width, height) > pictureSide || width * height > picturePixels) {
    throw new TandemError('DOCUMENT_TOO_LARGE', `The picture is ${width} by ${height} pixels. Send a smaller one.`);
  }
  const recognition = createTextRecognition();
  try {
    const text = await recognition.recognise(bytes);
    return {
      format: 'image',
      title: null,
      sections: [{ heading: null, page: 1, text }],
      pageCount: 1,
      isOcr: true,
      warnings: [],
    };
  } finally {
    await recognition.close();
  }
}
