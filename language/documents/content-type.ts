import { fileTypeFromBuffer } from 'file-type';
import { TandemError } from '../../machines/errors.ts';
import type { DocumentFormat } from './document-reader.ts';
import { decodeText } from './plain-text.ts';

/** The kind of a document, detected from its bytes. The name only distinguishes kinds of text. */
export type Content =
  | { kind: 'pdf' }
  /** A ZIP archive, such as an Office file. */
  | { kind: 'package' }
  | { kind: 'picture'; type: PictureType }
  | { kind: 'text'; text: string; format: Extract<DocumentFormat, 'text' | 'markdown'> }
  /** `isTabbed`: only tabs separate cells. */
  | { kind: 'text'; text: string; format: Extract<DocumentFormat, 'csv'>; isTabbed: boolean };

export type PictureType = (typeof PICTURE_TYPES)[number];

const PICTURE_TYPES = ['png', 'jpg', 'webp', 'gif', 'tif'] as const;
const ACCEPTED = 'PDF, DOCX, XLSX, PNG, JPEG, WebP, GIF, TIFF, plain text, Markdown and CSV';

/** @throws TandemError `DOCUMENT_UNSUPPORTED`, `DOCUMENT_ENCRYPTED`, `DOCUMENT_EMPTY` */
export async function contentOf(
  bytes: Buffer,
  { name, mediaType }: { name: string | null; mediaType: string | null },
): Promise<Content> {
  if (bytes.length === 0) throw new TandemError('DOCUMENT_EMPTY', 'The file is empty.');
  if (bytes.subarray(0, 5).toString('latin1') === '%PDF-') return { kind: 'pdf' };
  if (PACKAGE_STARTS.some((start) => bytes.subarray(0, 4).equals(start))) return { kind: 'package' };
  if (bytes.subarray(0, COMPOUND_FILE.length).equals(COMPOUND_FILE)) throw refuseCompoundFile(bytes);

  const text = decodeText(bytes);
  if (text !== null) {
    const markup = MARKUP.find(([pattern]) => pattern.test(text.slice(0, 1024)));
    if (markup !== undefined) throw unsupported(markup[1]);
    return { kind: 'text', text, ...textFormatOf({ name, mediaType }) };
  }
  // Some programs put their own header before the PDF's, and readers accept that.
  if (bytes.subarray(0, 1024).includes('%PDF-')) return { kind: 'pdf' };

  const type = await fileTypeFromBuffer(bytes).catch(() => undefined);
  if (type === undefined) throw unsupported('data of no known kind');
  // Decoders without animation support show the first picture.
  if (type.ext === 'apng') return { kind: 'picture', type: 'png' };
  if (type.ext === 'webp' && isAnimated(bytes)) throw unsupported('an animated picture (WebP)');
  const picture = PICTURE_TYPES.find((each) => each === type.ext);
  if (picture !== undefined) return { kind: 'picture', type: picture };
  throw unsupported(`${type.mime} (.${type.ext})`);
}

/** The animation flag of the header (RFC 9649, 2.7). */
function isAnimated(webp: Buffer): boolean {
  return webp.toString('latin1', 12, 16) === 'VP8X' && ((webp[20] ?? 0) & 2) !== 0;
}

export function unsupported(seemsToBe: string): TandemError {
  const message = `The file seems to be ${seemsToBe}. ${ACCEPTED} are read.`;
  return new TandemError('DOCUMENT_UNSUPPORTED', message, { details: { seems_to_be: seemsToBe } });
}

/** Signature of the first entry, or of the end of an empty archive. */
const PACKAGE_STARTS = [Buffer.from('PK\x03\x04', 'latin1'), Buffer.from('PK\x05\x06', 'latin1')];
/** Office files before 2007, and newer ones with a password ([MS-CFB] 2.2; [MS-OFFCRYPTO] 2.3.1). */
const COMPOUND_FILE = Buffer.from('d0cf11e0a1b11ae1', 'hex');
const ENCRYPTED_PACKAGE = Buffer.from('EncryptedPackage', 'utf16le');

function refuseCompoundFile(bytes: Buffer): TandemError {
  if (bytes.includes(ENCRYPTED_PACKAGE)) {
    return new TandemError('DOCUMENT_ENCRYPTED', 'The document is password-protected. Save it without a password.');
  }
  return unsupported('an Office document of before 2007 (.doc, .xls, .ppt), or a message (.msg)');
}

/** Markup whose source would otherwise be read as text. */
const MARKUP: readonly (readonly [RegExp, string])[] = [
  [/^\s*(<\?xml[^>]*>\s*)?(<!--[\s\S]*?-->\s*)?(<!doctype\s+html|<html|<head|<body|<script)\b/i, 'a web page (HTML)'],
  [/^\s*(<\?xml[^>]*>\s*)?(<!--[\s\S]*?-->\s*)?(<!doctype\s+svg|<svg)\b/i, 'a drawing (SVG)'],
  [/^\{\\rtf/, 'rich text (RTF)'],
  [/^%!PS/, 'PostScript'],
];

function textFormatOf({ name, mediaType }: { name: string | null; mediaType: string | null }) {
  const extension = /\.([a-z0-9]+)$/i.exec(name ?? '')?.[1]?.toLowerCase() ?? '';
  const type = mediaType?.split(';')[0]?.trim().toLowerCase() ?? '';
  if (['md', 'markdown'].includes(extension) || type === 'text/markdown') return { format: 'markdown' } as const;
  const isTabbed = extension === 'tsv' || (extension !== 'csv' && type === 'text/tab-separated-values');
  if (isTabbed || extension === 'csv' || type === 'text/csv') return { format: 'csv', isTabbed } as const;
  return { format: 'text' } as const;
}
