import type { ErrorCode } from '../../machines/errors.ts';
import type { ReadDocument } from './document-reader.ts';

/** What the process that reads tells, a line of JSON each. The last is `done`, `refused` or `broken`. */
export type ReadingMessage =
  | ({ type: 'document' } & Omit<ReadDocument, 'sections'>)
  | { type: 'section'; heading: string | null; page: number | null }
  /** A piece of the section's text: no line takes long to parse. */
  | { type: 'text'; text: string }
  | { type: 'done' }
  | { type: 'refused'; code: ErrorCode; message: string; details?: unknown }
  /** Whatever the document is: for whoever runs this, and nothing of the document. */
  | { type: 'broken'; message: string };

export const CHARACTERS_PER_MESSAGE = 32_768;
