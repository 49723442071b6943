import { TandemError } from '../../machines/errors.ts';

/** Converts a failure into the error for the sender of the document. */
export function refusalOf(error: unknown): TandemError {
  if (error instanceof TandemError) return error;
  if (isOutOfMemory(error)) return new TandemError('DOCUMENT_TOO_LARGE', 'Reading the document takes too much memory.');
  // The library's message may quote the document.
  return new TandemError('DOCUMENT_NOT_READABLE', 'Unsupported or damaged document. Send PDF, DOCX, XLSX or an image.');
}

/** The reader is broken or not installed. Independent of the document. */
export class ReaderBroken extends Error {}

export function isOurs(error: unknown): boolean {
  return error instanceof ReaderBroken || OF_THE_SYSTEM.includes((error as NodeJS.ErrnoException | null)?.code ?? '');
}

/** Codes that only a broken installation causes: nothing but the program and the document is opened. */
const OF_THE_SYSTEM = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND', 'ENOENT', 'EACCES', 'EMFILE', 'ENFILE'];

/** Whether an allocation failed. V8 and WebAssembly have no error code for it. */
export function isOutOfMemory(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  if (code === 'ERR_MEMORY_ALLOCATION_FAILED') return true;
  return /allocation failed|out of memory|invalid array buffer length|invalid string length/i.test(message ?? '');
}
