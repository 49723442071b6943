import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

/**
 * Encrypted files that can grow, be read in ranges, and survive a kill: a header, then chunks of equal size, each
 * sealed with AES-256-GCM, and a shorter last one. Header: magic (8 bytes), key id (8), salt (32), plaintext bytes of a
 * chunk (4, big-endian), zeros (12). Chunk: nonce (12, random), ciphertext, tag (16). A chunk authenticates its index
 * and whether it is the last, so chunks cannot be moved, repeated or cut off. The file's key is derived (HKDF, RFC
 * 5869) from the owner's key, the salt, the header and the file's name, so files cannot be swapped.
 */

const MAGIC = Buffer.from('TNDMSEAL');
const KEY_ID_BYTES = 8;
const SALT_BYTES = 32;
export const SEALED_HEADER_BYTES = 64;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Bytes that sealing adds to a chunk. */
export const CHUNK_OVERHEAD_BYTES = NONCE_BYTES + TAG_BYTES;
const KEY_BYTES = 32;
const LEAST_CHUNK_BYTES = 64;
const MOST_CHUNK_BYTES = 1024 * 1024;

type SealedFileErrorCode =
  /** The key is not configured. */
  | 'SEALED_KEY_UNKNOWN'
  /** Not a sealed file, modified, truncated, or swapped with another file. */
  | 'SEALED_FILE_DAMAGED';

export class SealedFileError extends Error {
  override readonly name = 'SealedFileError';
  readonly code: SealedFileErrorCode;

  constructor(code: SealedFileErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Header and key of one file. May be passed to threads, which never see the owner's key. */
export interface FileSeal {
  header: Uint8Array;
  key: Uint8Array;
}

export interface SealingKeys {
  readonly isOn: boolean;
  /** Creates a seal for the file of this name, with the current key. Null without one. Default chunks: 16 KiB. */
  create(name: string, chunkBytes?: number): FileSeal | null;
  /** The seal of an existing file. @throws SealedFileError */
  open(header: Uint8Array, name: string): FileSeal;
  /**
   * Creates a seal with the key of an existing file, so that both stay readable equally long. @throws SealedFileError
   */
  createLike(header: Uint8Array, name: string): FileSeal;
}

/**
 * @param current 32 bytes; seals new files. Null: new files are not encrypted.
 * @param previous Earlier keys, which still open their files.
 */
export function createSealingKeys(current: Buffer | null, previous: readonly Buffer[] = []): SealingKeys {
  const sealing = current === null ? null : { id: keyIdOf(current), key: current };
  const known = [...(sealing ? [sealing] : []), ...previous.map((key) => ({ id: keyIdOf(key), key }))];

  function keyOf(header: Buffer): SealingKey {
    chunkBytesOf(header);
    const id = header.subarray(MAGIC.length, MAGIC.length + KEY_ID_BYTES);
    const found = known.find((each) => each.id.equals(id));
    if (found !== undefined) return found;
    throw new SealedFileError('SEALED_KEY_UNKNOWN', 'The file was encrypted with a key that is not configured.');
  }

  return {
    isOn: sealing !== null,
    create: (name, chunkBytes = CHUNK_BYTES) => (sealing === null ? null : newSeal(sealing, { name, chunkBytes })),
    open(bytes, name) {
      const header = Buffer.from(bytes);
      return { header, key: fileKeyOf(keyOf(header).key, { header, name }) };
    },
    createLike: (header, name) => newSeal(keyOf(Buffer.from(header)), { name, chunkBytes: CHUNK_BYTES }),
  };
}

interface SealingKey {
  id: Buffer;
  key: Buffer;
}

function newSeal({ id, key }: SealingKey, { name, chunkBytes }: { name: string; chunkBytes: number }): FileSeal {
  const header = Buffer.alloc(SEALED_HEADER_BYTES);
  MAGIC.copy(header);
  id.copy(header, MAGIC.length);
  randomBytes(SALT_BYTES).copy(header, MAGIC.length + KEY_ID_BYTES);
  header.writeUInt32BE(chunkBytes, CHUNK_BYTES_AT);
  return { header, key: fileKeyOf(key, { header, name }) };
}

/** Half a second of stereo G.711 as 16-bit samples, the most that a kill can lose. */
const CHUNK_BYTES = 16 * 1024;
const CHUNK_BYTES_AT = MAGIC.length + KEY_ID_BYTES + SALT_BYTES;

/** Plaintext bytes of every chunk but the last. @throws SealedFileError for an invalid header */
export function chunkBytesOf(header: Uint8Array): number {
  const bytes = Buffer.from(header.buffer, header.byteOffset, header.byteLength);
  const isOurs = bytes.length === SEALED_HEADER_BYTES && bytes.subarray(0, MAGIC.length).equals(MAGIC);
  const chunkBytes = isOurs ? bytes.readUInt32BE(CHUNK_BYTES_AT) : 0;
  if (chunkBytes < LEAST_CHUNK_BYTES || chunkBytes > MOST_CHUNK_BYTES) throw damaged('The header is invalid.');
  return chunkBytes;
}

export interface ChunkPlace {
  index: number;
  isLast: boolean;
}

export function sealChunk(key: Uint8Array, plaintext: Uint8Array, place: ChunkPlace): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(associatedData(place));
  return Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

/** @throws SealedFileError */
export function openChunk(key: Uint8Array, chunk: Uint8Array, place: ChunkPlace): Buffer {
  if (chunk.length < CHUNK_OVERHEAD_BYTES) throw damaged('A chunk is cut off.');
  const tagAt = chunk.length - TAG_BYTES;
  const nonce = chunk.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(associatedData(place)).setAuthTag(chunk.subarray(tagAt));
  try {
    return Buffer.concat([decipher.update(chunk.subarray(NONCE_BYTES, tagAt)), decipher.final()]);
  } catch (error) {
    throw damaged('A chunk was changed, or the file is cut off.', error);
  }
}

/** Chunks of a file of this size. */
export function layoutOf(fileBytes: number, chunkBytes: number): { fullChunks: number; restBytes: number } {
  const sealedBytes = chunkBytes + CHUNK_OVERHEAD_BYTES;
  const bodyBytes = Math.max(0, fileBytes - SEALED_HEADER_BYTES);
  return { fullChunks: Math.floor(bodyBytes / sealedBytes), restBytes: bodyBytes % sealedBytes };
}

export function chunkOffset(index: number, chunkBytes: number): number {
  return SEALED_HEADER_BYTES + index * (chunkBytes + CHUNK_OVERHEAD_BYTES);
}

export function damaged(message: string, cause?: unknown): SealedFileError {
  return new SealedFileError('SEALED_FILE_DAMAGED', message, cause === undefined ? undefined : { cause });
}

function associatedData({ index, isLast }: ChunkPlace): Buffer {
  const data = Buffer.alloc(9);
  data.writeBigUInt64BE(BigInt(index));
  data.writeUInt8(isLast ? 1 : 0, 8);
  return data;
}

function fileKeyOf(key: Buffer, { header, name }: { header: Buffer; name: string }): Buffer {
  const salt = header.subarray(MAGIC.length + KEY_ID_BYTES, CHUNK_BYTES_AT);
  const info = Buffer.concat([Buffer.from('tandem sealed file\0'), header, Buffer.from(name)]);
  return Buffer.from(hkdfSync('sha256', key, salt, info, KEY_BYTES));
}

function keyIdOf(key: Buffer): Buffer {
  if (key.length !== KEY_BYTES) throw new RangeError('a sealing key has 32 bytes');
  return Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), 'tandem sealed file key id', KEY_ID_BYTES));
}
