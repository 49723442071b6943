import { type FileHandle, open } from 'node:fs/promises';
import { isDiskFull } from '../disk-full.ts';
import { writeFully } from '../write-fully.ts';
import {
  CHUNK_OVERHEAD_BYTES,
  chunkBytesOf,
  chunkOffset,
  damaged,
  type FileSeal,
  layoutOf,
  openChunk,
  SEALED_HEADER_BYTES,
  sealChunk,
} from './format.ts';

/**
 * Writes a growing sealed file. Plaintext never reaches the disk; a chunk is written once it is full. Wait for each
 * promise before the next call.
 */
export class SealedFileWriter {
  readonly #handle: FileHandle;
  readonly #seal: FileSeal;
  readonly #chunkBytes: number;
  readonly #pending: Buffer;
  #pendingBytes = 0;
  #chunks = 0;
  #bytes = 0;

  private constructor(handle: FileHandle, seal: FileSeal) {
    this.#handle = handle;
    this.#seal = seal;
    this.#chunkBytes = chunkBytesOf(seal.header);
    this.#pending = Buffer.alloc(this.#chunkBytes);
  }

  /** Creates or truncates the file, readable only by its owner. @throws the file system's error */
  static async open(filePath: string, seal: FileSeal): Promise<SealedFileWriter> {
    const handle = await open(filePath, 'w', 0o600);
    try {
      await writeFully(handle, seal.header, 0);
    } catch (error) {
      await handle.close().catch(() => {});
      throw error;
    }
    return new SealedFileWriter(handle, seal);
  }

  get bytes(): number {
    return this.#bytes;
  }

  async append(bytes: Uint8Array): Promise<void> {
    for (let taken = 0; taken < bytes.length; ) {
      const part = bytes.subarray(taken, taken + this.#chunkBytes - this.#pendingBytes);
      this.#pending.set(part, this.#pendingBytes);
      this.#pendingBytes += part.length;
      this.#bytes += part.length;
      taken += part.length;
      if (this.#pendingBytes === this.#chunkBytes) await this.#writeChunk({ isLast: false });
    }
  }

  /** Writes the last chunk and closes the file, even if writing fails. */
  async finish(): Promise<void> {
    try {
      await this.#writeChunk({ isLast: true });
    } finally {
      await this.#handle.close();
    }
  }

  /** Closes without a last chunk, as a killed process does: `repairSealedFile` completes the file. */
  async abandon(): Promise<void> {
    await this.#handle.close();
  }

  async #writeChunk({ isLast }: { isLast: boolean }): Promise<void> {
    const index = this.#chunks;
    const chunk = sealChunk(this.#seal.key, this.#pending.subarray(0, this.#pendingBytes), { index, isLast });
    await writeFully(this.#handle, chunk, chunkOffset(index, this.#chunkBytes));
    this.#chunks += 1;
    this.#pendingBytes = 0;
  }
}

/**
 * Completes a file whose writer was killed or ran out of disk: cuts incomplete or unauthentic chunks off its end and
 * marks the end. On a full disk the marker replaces the end of the last chunk. Without an authentic chunk nothing
 * changes. Idempotent.
 * @throws SealedFileError; the file system's error
 */
export async function repairSealedFile(
  filePath: string,
  unlock: (header: Uint8Array) => FileSeal,
): Promise<{ bytes: number; isRepaired: boolean }> {
  const handle = await open(filePath, 'r+');
  try {
    const { size } = await handle.stat();
    const { key, header } = unlock(await readFully(handle, 0, Math.min(size, SEALED_HEADER_BYTES)));
    const chunkBytes = chunkBytesOf(header);
    const { fullChunks, restBytes } = layoutOf(size, chunkBytes);
    const chunkAt = async (index: number, bytes: number) =>
      await readFully(handle, chunkOffset(index, chunkBytes), bytes);
    if (restBytes >= CHUNK_OVERHEAD_BYTES) {
      const last = opened(key, await chunkAt(fullChunks, restBytes), { index: fullChunks, isLast: true });
      if (last !== null) return { bytes: fullChunks * chunkBytes + last.length, isRepaired: false };
    }
    let chunks = fullChunks;
    let tail: Buffer | null = null;
    for (; chunks > 0; chunks -= 1) {
      const place = { index: chunks - 1, isLast: false };
      tail = opened(key, await chunkAt(chunks - 1, chunkBytes + CHUNK_OVERHEAD_BYTES), place);
      if (tail !== null) break;
    }
    if (chunks === 0 && fullChunks > 0) throw damaged('No chunk of the file is authentic.');
    await handle.truncate(chunkOffset(chunks, chunkBytes));
    try {
      const marker = sealChunk(key, Buffer.alloc(0), { index: chunks, isLast: true });
      await writeFully(handle, marker, chunkOffset(chunks, chunkBytes));
      return { bytes: chunks * chunkBytes, isRepaired: true };
    } catch (error) {
      if (tail === null || !isFull(error)) throw error;
      const shorter = tail.subarray(0, chunkBytes - CHUNK_OVERHEAD_BYTES);
      const place = { index: chunks - 1, isLast: true };
      const offset = chunkOffset(chunks - 1, chunkBytes);
      const last = sealChunk(key, shorter, place);
      await writeFully(handle, last, offset);
      await handle.truncate(offset + last.length);
      return { bytes: (chunks - 1) * chunkBytes + shorter.length, isRepaired: true };
    }
  } finally {
    await handle.close();
  }
}

function opened(key: Uint8Array, chunk: Buffer, place: { index: number; isLast: boolean }): Buffer | null {
  try {
    return openChunk(key, chunk, place);
  } catch {
    return null;
  }
}

function isFull(error: unknown): boolean {
  return isDiskFull(error) || (error as NodeJS.ErrnoException).code === 'EFBIG';
}

async function readFully(handle: FileHandle, position: number, bytes: number): Promise<Buffer> {
  const target = Buffer.alloc(bytes);
  let filled = 0;
  while (filled < bytes) {
    const { bytesRead } = await handle.read(target, filled, bytes - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return target.subarray(0, filled);
}
