import { readFile, stat } from 'node:fs/promises';
import { TandemError } from '../../machines/errors.ts';
import { type Content, contentOf } from './content-type.ts';
import { csvRows } from './csv.ts';
import type { GivenDocument, ReadDocument } from './document-reader.ts';
import { markdownTable } from './markdown-table.ts';
import { cleanText } from './plain-text.ts';
import { READING_LIMITS } from './reading-limits.ts';
import type { RecognitionEngine } from './text-recognition.ts';

/**
 * Reads a document in this process. Call it only in a process that may crash.
 * @param engine for the text in pictures; null: starts one when needed
 * @throws TandemError with a `DOCUMENT_` code; any Error if the document is damaged
 */
export async function readDocument(
  { path, name, mediaType }: GivenDocument,
  engine: RecognitionEngine | null = null,
): Promise<ReadDocument> {
  const { size } = await stat(path);
  if (size > READING_LIMITS.fileBytes) throw new TandemError('DOCUMENT_TOO_LARGE', 'The file is too large.');
  const bytes = await readFile(path);
  const document = await readContent(bytes, await contentOf(bytes, { name, mediaType }), engine);
  const sections = document.sections
    .map(({ heading, page, text }) => ({ heading: cleanTitle(heading), page, text: cleanText(text) }))
    .filter(({ text }) => text !== '');
  const characters = sections.reduce((sum, { text }) => sum + text.length, 0);
  if (characters > READING_LIMITS.characters) {
    throw new TandemError('DOCUMENT_TOO_LARGE', `The document has more than ${READING_LIMITS.characters} characters.`);
  }
  if (characters === 0) throw empty(document);
  return { ...document, title: cleanTitle(document.title), sections };
}

function empty({ warnings }: ReadDocument): TandemError {
  const message = 'There is no text in the document, or none that could be recognised.';
  return new TandemError('DOCUMENT_EMPTY', message, warnings.length === 0 ? {} : { details: { warnings } });
}

/** Loads the reader of a format on demand. */
async function readContent(bytes: Buffer, content: Content, engine: RecognitionEngine | null): Promise<ReadDocument> {
  if (content.kind === 'pdf') return (await import('./pdf.ts')).readPdf(bytes, engine);
  if (content.kind === 'picture') return (await import('./picture.ts')).readPicture(bytes, content.type, engine);
  if (content.kind === 'text') return readText(content);
  const { openOfficePackage } = await import('./office-package.ts');
  const office = await openOfficePackage(bytes);
  return office.format === 'docx'
    ? (await import('./docx.ts')).readDocx(office)
    : (await import('./xlsx.ts')).readXlsx(office);
}

function readText(content: Extract<Content, { kind: 'text' }>): ReadDocument {
  const { format, text } = content;
  const shown = format === 'csv' ? markdownTable(csvRows(text, content.isTabbed ? '\t' : undefined)) : text;
  const sections = [{ heading: null, page: null, text: shown }];
  return { format, title: null, sections, pageCount: null, isOcr: false, warnings: [] };
}

const MOST_TITLE_CHARACTERS = 200;

function cleanTitle(title: string | null): string | null {
  if (title === null) return null;
  return cleanText(title).replace(/\s+/g, ' ').slice(0, MOST_TITLE_CHARACTERS).toWellFormed().trim() || null;
}
