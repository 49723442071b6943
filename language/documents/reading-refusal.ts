import { TandemError } from '../../machines/errors.ts';

/** What whoever sent a document is told when reading it failed. */
export function refusalOf(error: unknown): TandemError {
  if (error instanceof TandemError) return error;
  if (isOutOfMemory(error)) return new TandemError('DOCUMENT_TOO_LARGE', 'Reading the document takes too much memory.');
  // What a library says of a document may quote it.
  return new TandemError('DOCUMENT_NOT_READABLE', 'Unsupported or damaged document. Send PDF, DOCX, XLSX or an image.');
}

/** What reads documents is broken or not installed, whatever the document is. */
export class ReaderBroken extends Error {}

export function isOurs(error: unknown): boolean {
  return error instanceof ReaderBroken || OF_THE_SYSTEM.includes((error as NodeJS.ErrnoException | null)?.code ?? '');
}

/** Nothing but the program and the document is opened, which are there. */
const OF_THE_SYSTEM = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND', 'ENOENT', 'EACCES', 'EMFILE', 'ENFILE'];

/** Whether it is that there was no memory left for a buffer: V8 and WebAssembly have no code for it. */
export function isOutOfMemory(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  if (code === 'ERR_MEMORY_ALLOCATION_FAILED') return true;
  return /allocation failed|out of memory|invalid array buffer length|invalid string length/i.test(message ?? '');
}
