import { readFile } from 'node:fs/promises';
import { WordVectors } from './word-vectors.ts';

/** Part of the program, so that it needs no download. */
export const WORD_VECTORS_FILE = new URL('./glove-english.vectors', import.meta.url);

let loading: Promise<WordVectors> | null = null;

/**
 * The word vectors, about 7 MB. The first call reads them, so that a server without memories does not keep them. A
 * failed read is tried again by the next call.
 * @throws Error if the file is missing or damaged
 */
export function loadWordVectors(): Promise<WordVectors> {
  loading ??= read().catch((error: unknown) => {
    loading = null;
    throw error;
  });
  return loading;
}

async function read(): Promise<WordVectors> {
  return new WordVectors(await readFile(WORD_VECTORS_FILE));
}
