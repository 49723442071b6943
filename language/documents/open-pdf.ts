import { getDocumentProxy } from 'unpdf';
import { TandemError } from '../../machines/errors.ts';
import { READING_LIMITS } from './reading-limits.ts';

export type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>;

/**
 * @param onEncodingMissing called with the name of a predefined encoding of Chinese, Japanese or Korean text (ISO
 * 32000-1, 9.7.5.2). Their tables are not installed, so the text in such a font cannot be read.
 * @throws TandemError `DOCUMENT_ENCRYPTED`; Error if the file is damaged
 */
export async function openPdf(bytes: Buffer, onEncodingMissing: (name: string) => void = () => {}): Promise<Pdf> {
  class NoFiles {
    async fetch({ kind, filename }: { kind: string; filename: string }): Promise<never> {
      if (kind === 'cMapUrl') onEncodingMissing(filename.replace(/\.bcmap$/, ''));
      throw new Error('Only the document is read.');
    }
  }
  try {
    // A copy, because pdf.js keeps the buffer.
    return await getDocumentProxy(new Uint8Array(bytes), {
      verbosity: 0,
      isEvalSupported: false,
      useSystemFonts: false,
      disableFontFace: true,
      enableXfa: false,
      useWorkerFetch: false,
      BinaryDataFactory: NoFiles,
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
