import type { ErrorCode } from '../../machines/errors.ts';
import type { ReadDocument } from './document-reader.ts';

/** Output of the reading process, one line of JSON per message. The last is `done`, `refused` or `broken`. */
export type ReadingMessage =
  | ({ type: 'document' } & Omit<ReadDocument, 'sections'>)
  | { type: 'section'; heading: string | null; page: number | null }
  /** A chunk of the section's text, so that no line takes long to parse. */
  | { type: 'text'; text: string }
  | { type: 'done' }
  | { type: 'refused'; code: ErrorCode; message: string; details?: unknown }
  /** The reader itself is broken. A message for the operator, without content of the document. */
  | { type: 'broken'; message: string };

export const CHARACTERS_PER_MESSAGE = 32_768;
