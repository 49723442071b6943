import { buffer } from 'node:stream/consumers';
import {
  CHUNK_OVERHEAD_BYTES,
  chunkBytesOf,
  chunkOffset,
  damaged,
  type FileSeal,
  layoutOf,
  openChunk,
  SEALED_HEADER_BYTES,
} from './format.ts';

/** Source of a sealed file's bytes: a file, or an object in a store. */
export interface SealedSource {
  sizeBytes: number;
  /** Bytes `start` to `end`, inclusive. */
  read(range: { start: number; end: number }): Promise<AsyncIterable<Uint8Array>>;
}

/** An open sealed file. Its end was authenticated, so it is not truncated. */
export interface SealedReader {
  /** Size of the plaintext. */
  readonly sizeBytes: number;
  /**
   * Plaintext bytes `start` to `end`, inclusive. Each chunk is authenticated before any of it is returned.
   * @throws SealedFileError
   */
  read(range: { start: number; end: number }): AsyncGenerator<Buffer>;
}

/** @throws SealedFileError; what the source throws */
export async function openSealedFile(
  source: SealedSource,
  unlock: (header: Uint8Array) => FileSeal,
): Promise<SealedReader> {
  const { sizeBytes: fileBytes } = source;
  if (fileBytes < SEALED_HEADER_BYTES + CHUNK_OVERHEAD_BYTES) throw damaged('The file is too short.');
  const { key, header } = unlock(await buffer(await source.read({ start: 0, end: SEALED_HEADER_BYTES - 1 })));
  const chunkBytes = chunkBytesOf(header);
  const { fullChunks, restBytes } = layoutOf(fileBytes, chunkBytes);
  if (restBytes < CHUNK_OVERHEAD_BYTES) throw damaged('The file is cut off.');
  const lastIndex = fullChunks;
  const lastAt = chunkOffset(lastIndex, chunkBytes);
  const last = await buffer(await source.read({ start: lastAt, end: fileBytes - 1 }));
  const sizeBytes = fullChunks * chunkBytes + openChunk(key, last, { index: lastIndex, isLast: true }).length;

  return {
    sizeBytes,
    async *read({ start, end }) {
      if (start > end || start >= sizeBytes) return;
      const firstIndex = Math.floor(start / chunkBytes);
      const finalIndex = Math.floor(Math.min(end, sizeBytes - 1) / chunkBytes);
      const from = chunkOffset(firstIndex, chunkBytes);
      const to = Math.min(chunkOffset(finalIndex + 1, chunkBytes), fileBytes) - 1;
      const cut = regrouped(await source.read({ start: from, end: to }), chunkBytes + CHUNK_OVERHEAD_BYTES);
      let index = firstIndex;
      for await (const chunk of cut) {
        const plaintext = openChunk(key, chunk, { index, isLast: index === lastIndex });
        const at = index * chunkBytes;
        yield plaintext.subarray(Math.max(0, start - at), end + 1 - at);
        index += 1;
      }
      if (index <= finalIndex) throw damaged('The file is cut off.');
    },
  };
}

/** Regroups the bytes into pieces of one size; the last may be shorter. */
async function* regrouped(stream: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Buffer> {
  let waiting: Uint8Array[] = [];
  let waitingBytes = 0;
  for await (const part of stream) {
    waiting.push(part);
    waitingBytes += part.length;
    if (waitingBytes < size) continue;
    const joined = Buffer.concat(waiting);
    let at = 0;
    for (; joined.length - at >= size; at += size) yield joined.subarray(at, at + size);
    waiting = [joined.subarray(at)];
    waitingBytes = joined.length - at;
  }
  if (waitingBytes > 0) yield Buffer.concat(waiting);
}
