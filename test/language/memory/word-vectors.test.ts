import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { loadWordVectors } from '../../../language/memory/word-vectors/load-word-vectors.ts';
import { encodeWordVectors, type WordVector, WordVectors } from '../../../language/memory/word-vectors/word-vectors.ts';
import * as fc from '../../properties.ts';

const DIMENSIONS = 3;
const word = fc.string({ unit: fc.constantFrom(...'abcz019'), minLength: 1, maxLength: 6 });
const entry = fc.record({
  word,
  information: fc.float({ min: 0, max: 20, noNaN: true }),
  vector: fc.int8Array({ min: -127, minLength: DIMENSIONS, maxLength: DIMENSIONS }),
});
const entries = fc.uniqueArray(entry, { selector: (one) => one.word, minLength: 1, maxLength: 40 });

describe('word vector file', () => {
  it('finds every word with its vector and information, and no other word', () => {
    fc.assert(
      fc.property(entries, fc.string(), (given, other) => {
        const vectors = new WordVectors(encoded(given));
        expect(vectors).toMatchObject({ size: given.length, dimensions: DIMENSIONS });
        for (const { word, information, vector } of given) {
          const row = vectors.find(word);
          expect(vectors.information(row)).toBe(information);
          const sum = new Float32Array(DIMENSIONS + 1);
          vectors.addTo(sum, row, 1);
          expect([...sum]).toEqual([...Float32Array.from(vector), 0]);
        }
        const isKnown = given.some(({ word }) => word === other);
        expect(vectors.find(other) === -1).toBe(!isKnown);
      }),
    );
  });

  it('contains the same bytes for any word order', () => {
    fc.assert(
      fc.property(entries, (given) => {
        expect(encoded(given.toReversed())).toEqual(encoded(given));
      }),
    );
  });

  it('works at an odd offset of a larger buffer', () => {
    const file = encoded([entryOf('lift'), entryOf('elevator')]);
    const larger = new Uint8Array(file.length + 1);
    larger.set(file, 1);
    expect(new WordVectors(larger.subarray(1)).find('lift')).toBe(1);
  });

  it('rejects truncated files and trailing bytes', () => {
    fc.assert(
      fc.property(entries, fc.nat(), (given, at) => {
        const file = encoded(given);
        expect(() => new WordVectors(file.subarray(0, at % file.length))).toThrow('damaged');
        expect(() => new WordVectors(Buffer.concat([file, Buffer.of(0)]))).toThrow('damaged');
      }),
    );
  });

  it('rejects a file with a changed bit', () => {
    fc.assert(
      fc.property(entries, fc.nat(), fc.nat(7), (given, at, bit) => {
        const file = encoded(given);
        file[at % file.length]! ^= 1 << bit;
        expect(() => new WordVectors(file)).toThrow('damaged');
      }),
    );
  });

  it('rejects other content with a valid checksum', () => {
    fc.assert(
      fc.property(entries, fc.nat(), fc.uint8Array({ minLength: 1, maxLength: 8 }), (given, at, hostile) => {
        const file = encoded(given);
        const start = HEADER_BYTES + (at % (8 * given.length));
        file.set(hostile.subarray(0, file.length - start), start);
        file.writeUInt32LE(crc32(file.subarray(HEADER_BYTES)), HEADER_BYTES - 4);
        let vectors: WordVectors;
        try {
          vectors = new WordVectors(file);
        } catch (error) {
          expect((error as Error).message).toContain('damaged');
          return;
        }
        for (const { word } of given) expect(vectors.find(word)).toBeLessThan(given.length);
      }),
    );
  });

  it.each([
    ['words that are not in order', [entryOf('b'), entryOf('a')]],
    ['a word that occurs twice', [entryOf('a'), entryOf('a')]],
  ])('rejects %s', (_, given) => {
    const file = encoded([entryOf('x'), entryOf('y')]);
    file.write(given.map(({ word }) => word).join(''), HEADER_BYTES + 8 * given.length, 'latin1');
    file.writeUInt32LE(crc32(file.subarray(HEADER_BYTES)), HEADER_BYTES - 4);
    expect(() => new WordVectors(file)).toThrow('not in order');
  });
});

describe('bundled word vectors', () => {
  it('contain English words in lower case, without numbers', async () => {
    const vectors = await loadWordVectors();
    expect(vectors).toMatchObject({ size: 60_000, dimensions: 100 });
    for (const known of ['the', 'refund', 'elevator', 'mumbai', 'mp3']) expect(vectors.find(known), known).not.toBe(-1);
    for (const unknown of ['', 'The', '2015', 'refnud', 'नमस्ते']) expect(vectors.find(unknown), unknown).toBe(-1);
  });

  it('give rare words more information than frequent ones', async () => {
    const vectors = await loadWordVectors();
    const information = (word: string) => vectors.information(vectors.find(word));
    expect(information('the')).toBeLessThan(0.1);
    expect(information('company')).toBeGreaterThan(information('the') + 1);
    expect(information('refund')).toBeGreaterThan(information('company') + 1);
  });

  it('place synonyms near each other', async () => {
    const vectors = await loadWordVectors();
    const cosine = (a: string, b: string) => {
      const [first, second] = [a, b].map((word) => {
        const sum = new Float32Array(vectors.dimensions);
        vectors.addTo(sum, vectors.find(word), 1);
        return sum;
      }) as [Float32Array, Float32Array];
      return (
        first.reduce((dot, value, at) => dot + value * second[at]!, 0) / (Math.hypot(...first) * Math.hypot(...second))
      );
    };
    for (const [a, b, other] of [
      ['doctor', 'physician', 'bicycle'],
      ['rent', 'lease', 'banana'],
      ['car', 'automobile', 'opera'],
    ] as const) {
      expect(cosine(a, b), `${a} and ${b}`).toBeGreaterThan(cosine(a, other) + 0.3);
    }
  });

  it('load once', () => {
    expect(loadWordVectors()).toBe(loadWordVectors());
  });
});

const HEADER_BYTES = 20;

function encoded(given: readonly WordVector[]): Buffer {
  return encodeWordVectors(given, { dimensions: DIMENSIONS }) as Buffer;
}

function entryOf(word: string): WordVector {
  return { word, information: 1, vector: Int8Array.of(1, 2, 3) };
}
