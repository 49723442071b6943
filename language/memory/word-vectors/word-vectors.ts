import { crc32 } from 'node:zlib';

/** A word with its vector, before it is stored. */
export interface WordVector {
  /** ASCII. */
  word: string;
  /** How much the word says, 0 or more: the rarer it is, the higher. */
  information: number;
  /** One value from -127 to 127 per dimension. All words share one scale. */
  vector: Int8Array;
}

/**
 * Vectors of words, read from a file that `encodeWordVectors` wrote. A lookup is a binary search in the bytes of the
 * file: the words take no memory besides these bytes, and a lookup allocates nothing.
 */
export class WordVectors {
  readonly size: number;
  readonly dimensions: number;
  readonly #wordEnds: Uint32Array;
  readonly #information: Float32Array;
  readonly #words: Uint8Array;
  readonly #vectors: Int8Array;

  /** @throws Error if the file is cut or damaged */
  constructor(file: Uint8Array) {
    const { size, dimensions, wordBytes } = readHeader(file);
    // Views of 32-bit numbers need an aligned start.
    const { buffer, byteOffset } = file.byteOffset % 4 === 0 ? file : file.slice();
    this.size = size;
    this.dimensions = dimensions;
    let at = byteOffset + HEADER_BYTES;
    this.#wordEnds = new Uint32Array(buffer, at, size);
    at += 4 * size;
    this.#information = new Float32Array(buffer, at, size);
    at += 4 * size;
    this.#words = new Uint8Array(buffer, at, wordBytes);
    at += wordBytes;
    this.#vectors = new Int8Array(buffer, at, size * dimensions);
    this.#check();
  }

  /** The row of a word; -1 if the word is unknown. */
  find(word: string): number {
    let low = 0;
    let high = this.size - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const order = this.#compare(middle, word);
      if (order === 0) return middle;
      if (order < 0) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  information(row: number): number {
    return this.#information[row]!;
  }

  /** Adds the vector of a row, times `weight`, to the first values of `sum`. */
  addTo(sum: Float32Array, row: number, weight: number): void {
    const start = row * this.dimensions;
    for (let at = 0; at < this.dimensions; at++) sum[at]! += weight * this.#vectors[start + at]!;
  }

  /** Below 0 if the word of the row sorts before `word`, above 0 if after. */
  #compare(row: number, word: string): number {
    const start = row === 0 ? 0 : this.#wordEnds[row - 1]!;
    const length = this.#wordEnds[row]! - start;
    const shorter = Math.min(length, word.length);
    for (let at = 0; at < shorter; at++) {
      const difference = this.#words[start + at]! - word.charCodeAt(at);
      if (difference !== 0) return difference;
    }
    return length - word.length;
  }

  /** The checksum detects damage. This detects a file that was written wrongly, which would break the search. */
  #check(): void {
    let end = 0;
    for (let row = 0; row < this.size; row++) {
      const isInOrder = this.#wordEnds[row]! > end && this.#wordEnds[row]! <= this.#words.length;
      if (!isInOrder || !(this.#information[row]! >= 0 && this.#information[row]! < Number.POSITIVE_INFINITY)) {
        throw damaged(`word ${row} is invalid`);
      }
      if (row > 0 && !this.#isSorted(row)) throw damaged(`word ${row} is not in order`);
      end = this.#wordEnds[row]!;
    }
    if (end !== this.#words.length) throw damaged('the words do not fill their section');
  }

  #isSorted(row: number): boolean {
    const before = row < 2 ? 0 : this.#wordEnds[row - 2]!;
    const start = this.#wordEnds[row - 1]!;
    const [beforeLength, length] = [start - before, this.#wordEnds[row]! - start];
    for (let at = 0; at < Math.min(beforeLength, length); at++) {
      const difference = this.#words[before + at]! - this.#words[start + at]!;
      if (difference !== 0) return difference < 0;
    }
    return beforeLength < length;
  }
}

/**
 * The file of these words, which may come in any order: a header, the end of each word, its information, all words, all
 * vectors. Numbers are little-endian. The same words always give the same bytes.
 */
export function encodeWordVectors(given: readonly WordVector[], { dimensions }: { dimensions: number }): Uint8Array {
  const sorted = given.toSorted((a, b) => (a.word < b.word ? -1 : 1));
  const words = Buffer.from(sorted.map(({ word }) => word).join(''), 'latin1');
  const file = Buffer.alloc(HEADER_BYTES + (8 + dimensions) * sorted.length + words.length);
  let end = 0;
  for (const [row, { word, information, vector }] of sorted.entries()) {
    end += word.length;
    file.writeUInt32LE(end, HEADER_BYTES + 4 * row);
    file.writeFloatLE(information, HEADER_BYTES + 4 * (sorted.length + row));
    file.set(
      new Uint8Array(vector.buffer, vector.byteOffset, dimensions),
      HEADER_BYTES + 8 * sorted.length + words.length + row * dimensions,
    );
  }
  file.set(words, HEADER_BYTES + 8 * sorted.length);
  file.write(MAGIC, 'latin1');
  for (const [index, value] of [sorted.length, dimensions, words.length].entries()) {
    file.writeUInt32LE(value, 4 + 4 * index);
  }
  file.writeUInt32LE(crc32(file.subarray(HEADER_BYTES)), HEADER_BYTES - 4);
  return file;
}

/** Word vectors, format 1. */
const MAGIC = 'TWV1';
/** The magic, the number of words, of dimensions and of bytes of words, and the CRC-32 of what follows. */
const HEADER_BYTES = 20;
const MOST_DIMENSIONS = 4_096;

function readHeader(file: Uint8Array): { size: number; dimensions: number; wordBytes: number } {
  if (file.length < HEADER_BYTES) throw damaged('it is shorter than its header');
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (Buffer.from(file.subarray(0, 4)).toString('latin1') !== MAGIC) throw damaged('it has another format');
  const [size, dimensions, wordBytes] = [4, 8, 12].map((at) => view.getUint32(at, true)) as [number, number, number];
  if (size === 0 || dimensions === 0 || dimensions > MOST_DIMENSIONS) throw damaged('its header is invalid');
  if (file.length !== HEADER_BYTES + size * (8 + dimensions) + wordBytes) throw damaged('its length is wrong');
  if (view.getUint32(16, true) !== crc32(file.subarray(HEADER_BYTES))) throw damaged('its checksum is wrong');
  return { size, dimensions, wordBytes };
}

function damaged(reason: string): Error {
  return new Error(`The file of word vectors is damaged: ${reason}. Install the program again.`);
}
