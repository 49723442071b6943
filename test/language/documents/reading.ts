import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createDocumentReader,
  type DocumentReaderOptions,
} from '../../../language/documents/confined-document-reader.ts';
import type { ReadDocument } from '../../../language/documents/document-reader.ts';
import { readDocument } from '../../../language/documents/read-document.ts';
import { refusalOf } from '../../../language/documents/reading-refusal.ts';
import type { RecognitionEngine } from '../../../language/documents/text-recognition.ts';
import type { ErrorCode, TandemError } from '../../../machines/errors.ts';

/** Pictures of "THE TRAINS ARE LATE" and "AND THE ROUTE IS CLOSED", created with netpbm and tiffcp on Debian. */
export const FILES = join(import.meta.dirname, 'files');

interface Called {
  name?: string;
  mediaType?: string;
}

interface Reading extends Called {
  /** For documents with pictures: starting one for each costs more than most of them. */
  engine?: RecognitionEngine;
}

/** Reads a document in this process. @throws TandemError */
export async function read(bytes: Buffer | string, { name, mediaType, engine }: Reading = {}): Promise<ReadDocument> {
  return await asFile(bytes, async (path) => {
    try {
      return await readDocument({ path, name: name ?? null, mediaType: mediaType ?? null }, engine);
    } catch (error) {
      throw refusalOf(error);
    }
  });
}

export async function textIn(bytes: Buffer | string, called?: Called): Promise<string> {
  return (await read(bytes, called)).sections.map(({ text }) => text).join('\n\n');
}

export async function codeOf(reading: Promise<unknown>): Promise<ErrorCode | 'read'> {
  return await reading.then(
    () => 'read' as const,
    (error: TandemError) => error.code ?? Promise.reject(error),
  );
}

/** Reads a document in a confined process. @throws TandemError */
export async function readConfined(bytes: Buffer | string, limits: DocumentReaderOptions = {}): Promise<ReadDocument> {
  const reader = createDocumentReader(limits);
  return await asFile(bytes, (path) =>
    reader.read({ path, name: null, mediaType: null }, new AbortController().signal),
  );
}

async function asFile<Result>(bytes: Buffer | string, work: (path: string) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'tandem-reading-'));
  try {
    const path = join(folder, 'document');
    await writeFile(path, bytes);
    return await work(path);
  } finally {
    await rm(folder, { recursive: true });
  }
}
