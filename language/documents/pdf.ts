import { TandemError } from '../../machines/errors.ts';
import type { DocumentSection, ReadDocument } from './document-reader.ts';
import { openPdf, type Pdf } from './open-pdf.ts';
import { type PdfPage, picturesOf } from './pdf-pictures.ts';
import { READING_LIMITS } from './reading-limits.ts';
import { isOurs, isOutOfMemory } from './reading-refusal.ts';
import { pageText, type TextRun } from './text-lines.ts';
import { createTextRecognition, type RecognitionEngine, type TextRecognition } from './text-recognition.ts';

/**
 * Reads the text of a PDF by page. Pages without text go through text recognition. Scripts never run, and nothing is
 * fetched.
 * @throws TandemError `DOCUMENT_ENCRYPTED`, `DOCUMENT_TOO_LARGE`, `DOCUMENT_NOT_READABLE`
 */
export async function readPdf(bytes: Buffer, engine: RecognitionEngine | null): Promise<ReadDocument> {
  const missingEncodings = new Set<string>();
  const pdf = await openPdf(bytes, (name) => missingEncodings.add(name));
  if (pdf.numPages > READING_LIMITS.pages) {
    throw new TandemError(
      'DOCUMENT_TOO_LARGE',
      `The document has ${pdf.numPages} pages; the limit is ${READING_LIMITS.pages}.`,
    );
  }
  const recognition = createTextRecognition(engine);
  const reading = new PdfReading(pdf, { recognition, missingEncodings });
  try {
    for (let number = 1; number <= pdf.numPages; number += 1) await reading.readPage(number);
    return await reading.conclude();
  } finally {
    await recognition.close();
  }
}

class PdfReading {
  readonly #pdf: Pdf;
  readonly #recognition: TextRecognition;
  readonly #missingEncodings: ReadonlySet<string>;
  readonly #sections: DocumentSection[] = [];
  #characters = 0;
  #recognisedPages = 0;
  #unreadPages: number[] = [];
  #pagesNotRecognised: number[] = [];

  constructor(
    pdf: Pdf,
    { recognition, missingEncodings }: { recognition: TextRecognition; missingEncodings: ReadonlySet<string> },
  ) {
    this.#pdf = pdf;
    this.#recognition = recognition;
    this.#missingEncodings = missingEncodings;
  }

  /** A damaged page does not affect the others. */
  async readPage(number: number): Promise<void> {
    try {
      const page = await this.#pdf.getPage(number);
      const text = pageText(await runsOf(page)) || (await this.#recognise(page, number));
      page.cleanup();
      this.#characters += text.length;
      if (text !== '') this.#sections.push({ heading: null, page: number, text });
    } catch (error) {
      if (isOutOfMemory(error) || isOurs(error)) throw error;
      this.#unreadPages.push(number);
    }
    if (this.#characters > READING_LIMITS.characters) {
      throw new TandemError('DOCUMENT_TOO_LARGE', 'The document has too much text.');
    }
  }

  async #recognise(page: PdfPage, number: number): Promise<string> {
    const texts: string[] = [];
    for await (const picture of picturesOf(page)) {
      const isLeftOut = picture === 'left out' || this.#recognition.isExhausted;
      if (isLeftOut && this.#pagesNotRecognised.at(-1) !== number) this.#pagesNotRecognised.push(number);
      if (this.#recognition.isExhausted) break;
      if (picture === 'left out') continue;
      texts.push(await this.#recognition.recognise(picture));
    }
    const text = texts.filter((one) => one !== '').join('\n\n');
    if (text !== '') this.#recognisedPages += 1;
    return text;
  }

  async conclude(): Promise<ReadDocument> {
    const { numPages } = this.#pdf;
    if (this.#unreadPages.length === numPages) {
      throw new TandemError('DOCUMENT_NOT_READABLE', 'No page of the document can be read.');
    }
    const warnings: string[] = [];
    if (this.#unreadPages.length > 0) warnings.push(`Skipped damaged pages: ${pagesOf(this.#unreadPages)}.`);
    if (this.#pagesNotRecognised.length > 0) {
      warnings.push(
        `Pictures that were too many, too large, damaged or JPEG 2000, and not looked at for text: ${pagesOf(this.#pagesNotRecognised)}.`,
      );
    }
    if (this.#missingEncodings.size > 0) {
      const names = [...this.#missingEncodings].sort().join(', ');
      warnings.push(`Text in fonts whose encoding is not in the file was left out: ${names}.`);
    }
    return {
      format: 'pdf',
      title: await titleOf(this.#pdf),
      sections: this.#sections,
      pageCount: numPages,
      isOcr: this.#recognisedPages > 0,
      warnings,
    };
  }
}

async function runsOf(page: PdfPage): Promise<TextRun[]> {
  const { items } = await page.getTextContent();
  const runs: TextRun[] = [];
  for (const item of items) {
    if (!('str' in item)) continue;
    const [, , c = 0, d = 0, x = 0, y = 0] = item.transform as number[];
    const size = Math.hypot(c, d) || item.height || 1;
    runs.push({ text: item.str, x, y, width: item.width, size, endsLine: item.hasEOL, font: item.fontName });
  }
  return runs;
}

/** Null for an invalid title, which must not make the document unreadable. */
async function titleOf(pdf: Pdf): Promise<string | null> {
  const { info } = await pdf.getMetadata().catch(() => ({ info: null }));
  const title = (info as { Title?: unknown } | null)?.Title;
  return typeof title === 'string' && title.trim() !== '' ? title.trim() : null;
}

function pagesOf(numbers: readonly number[]): string {
  const first = numbers.slice(0, 10).join(', ');
  return `${numbers.length === 1 ? 'page' : 'pages'} ${first}${numbers.length > 10 ? ` and ${numbers.length - 10} more` : ''}`;
}
