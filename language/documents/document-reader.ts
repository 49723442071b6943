/** Reads the text of untrusted documents. Implemented by `confined-document-reader.ts`. */
export interface DocumentReader {
  /**
   * Reads in a separate process with limits of memory, time and output. The process is killed when the signal aborts.
   * @throws TandemError `DOCUMENT_UNSUPPORTED`, `DOCUMENT_ENCRYPTED`, `DOCUMENT_TOO_LARGE`, `DOCUMENT_NOT_READABLE`,
   * `DOCUMENT_EMPTY`; the signal's reason
   */
  read(document: GivenDocument, signal: AbortSignal): Promise<ReadDocument>;
  close(): Promise<void>;
}

export interface GivenDocument {
  path: string;
  /** The sender's file name. Trusted unless the bytes contradict it. */
  name: string | null;
  mediaType: string | null;
}

export type DocumentFormat = 'pdf' | 'docx' | 'xlsx' | 'image' | 'text' | 'markdown' | 'csv';

export interface ReadDocument {
  format: DocumentFormat;
  /** Title in the document's metadata; null if there is none. */
  title: string | null;
  /** In order, none empty. */
  sections: readonly DocumentSection[];
  /** Pages of a PDF, sheets of a workbook, 1 for an image; null for other formats. */
  pageCount: number | null;
  /** Whether text was recognised in pictures. */
  isOcr: boolean;
  /** Messages for people about skipped parts. */
  warnings: readonly string[];
}

/** Text in Markdown: `#` headings, `-` lists, `|` tables. */
export interface DocumentSection {
  /** Such as a sheet's name; null if there is none. */
  heading: string | null;
  /** From 1; null if the format has no pages. */
  page: number | null;
  text: string;
}
