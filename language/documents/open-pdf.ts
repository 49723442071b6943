import { getDocumentProxy } from 'unpdf';
import { TandemError } from '../../machines/errors.ts';
import { READING_LIMITS } from './reading-limits.ts';

export type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>;

/** @throws TandemError `DOCUMENT_ENCRYPTED`; Error if the file is damaged */
export async function openPdf(bytes: Buffer): Promise<Pdf> {
  try {
    // A copy, because pdf.js keeps the buffer.
    return await getDocumentProxy(new Uint8Array(bytes), {
      verbosity: 0,
      isEvalSupported: false,
      useSystemFonts: false,
      disableFontFace: true,
      enableXfa: false,
      useWorkerFetch: false,
      isOffscreenCanvasSupported: false,
      isImageDecoderSupported: false,
      maxImageSize: READING_LIMITS.picturePixels,
    });
  } catch (error) {
    if ((error as Error).name === 'PasswordException') {
      throw new TandemError('DOCUMENT_ENCRYPTED', 'The document is password-protected. Save it without a password.');
    }
    throw error;
  }
}
