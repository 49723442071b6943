/** Reads the text of documents that strangers send. Implemented by `confined-document-reader.ts`. */
export interface DocumentReader {
  /**
   * Reads in a process of its own that has limits of memory, time and output, and is killed when the signal aborts.
   * @throws TandemError `DOCUMENT_UNSUPPORTED`, `DOCUMENT_ENCRYPTED`, `DOCUMENT_TOO_LARGE`, `DOCUMENT_NOT_READABLE`,
   * `DOCUMENT_EMPTY`; the signal's reason
   */
  read(document: GivenDocument, signal: AbortSignal): Promise<ReadDocument>;
  close(): Promise<void>;
}

export interface GivenDocument {
  path: string;
  /** As its sender calls it. Believed where the bytes do not say otherwise. */
  name: string | null;
  mediaType: string | null;
}

export type DocumentFormat = 'pdf' | 'docx' | 'xlsx' | 'image' | 'text' | 'markdown' | 'csv';

export interface ReadDocument {
  format: DocumentFormat;
  /** What the document calls itself; null when it does not. */
  title: string | null;
  /** In order, none empty. */
  sections: readonly DocumentSection[];
  /** Pages of a PDF, sheets of a workbook, 1 for an image; null where there are none. */
  pageCount: number | null;
  /** Whether text was recognised in pictures. */
  isOcr: boolean;
  /** What was left out, for a person. */
  warnings: readonly string[];
}

/** Plain text in Markdown: `#` headings, `-` lists, `|` tables. */
export interface DocumentSection {
  /** Such as a sheet's name; null where there is none. */
  heading: string | null;
  /** From 1; null where there are none. */
  page: number | null;
  text: string;
}
