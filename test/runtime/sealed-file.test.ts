import { createReadStream } from 'node:fs';
import { copyFile, mkdtemp, open, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createSealingKeys,
  openChunk,
  SealedFileError,
  type SealingKeys,
  sealChunk,
} from '../../runtime/sealed-file/format.ts';
import { openSealedFile, type SealedReader } from '../../runtime/sealed-file/reader.ts';
import { repairSealedFile, SealedFileWriter } from '../../runtime/sealed-file/writer.ts';
import * as fc from '../properties.ts';

const NAME = 'call.wav';
const CHUNK = 64;
const HEADER = 64;
const SEALED_CHUNK = CHUNK + 28;
const keys = createSealingKeys(Buffer.alloc(32, 1));

let folder: string;
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-sealed-'));
});
afterAll(() => rm(folder, { recursive: true }));

const content = fc.uint8Array({ maxLength: 400 });

async function sealed(plaintext: Uint8Array, { cuts = [1000], finish = true, chunkBytes = CHUNK } = {}) {
  const filePath = join(folder, String(files++));
  const writer = await SealedFileWriter.open(filePath, keys.create(NAME, chunkBytes)!);
  for (let at = 0, i = 0; at < plaintext.length; i += 1) {
    const part = plaintext.subarray(at, at + cuts[i % cuts.length]!);
    await writer.append(part);
    at += part.length;
  }
  await (finish ? writer.finish() : writer.abandon());
  expect(writer.bytes).toBe(plaintext.length);
  return filePath;
}

async function opened(filePath: string, with_: SealingKeys = keys, name = NAME): Promise<SealedReader> {
  const { size } = await stat(filePath);
  const read = async (range: { start: number; end: number }) => createReadStream(filePath, range);
  return await openSealedFile({ sizeBytes: size, read }, (header) => with_.open(header, name));
}

async function contentOf(filePath: string): Promise<Buffer> {
  const reader = await opened(filePath);
  return await rangeOf(reader, { start: 0, end: reader.sizeBytes - 1 });
}

async function rangeOf(reader: SealedReader, range: { start: number; end: number }): Promise<Buffer> {
  return await buffer(reader.read(range));
}

const repaired = (filePath: string) => repairSealedFile(filePath, (header) => keys.open(header, NAME));
const DAMAGED = { code: 'SEALED_FILE_DAMAGED' };

describe('sealed files', () => {
  it('return the written bytes for any write sizes', async () => {
    const cuts = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(content, cuts, async (plaintext, sizes) => {
        expect(await contentOf(await sealed(plaintext, { cuts: sizes }))).toEqual(Buffer.from(plaintext));
      }),
      { numRuns: 60 },
    );
  });

  it('return any range', async () => {
    const plaintext = Buffer.from(Array.from({ length: 300 }, (_, i) => i % 251));
    const reader = await opened(await sealed(plaintext));
    expect(reader.sizeBytes).toBe(300);
    await fc.assert(
      fc.asyncProperty(fc.nat(320), fc.nat(320), async (start, end) => {
        expect(await rangeOf(reader, { start, end })).toEqual(plaintext.subarray(start, end + 1));
      }),
    );
  });

  it('contain no plaintext, and differ for equal content', async () => {
    const plaintext = Buffer.from('he was not an ill disposed young man '.repeat(8));
    const [one, other] = [await readFile(await sealed(plaintext)), await readFile(await sealed(plaintext))];
    expect(one.includes(plaintext.subarray(0, 8))).toBe(false);
    for (let at = HEADER; at + 16 <= one.length; at += 16)
      expect(other.includes(one.subarray(at, at + 16))).toBe(false);
    expect((await stat(await sealed(plaintext))).mode & 0o777).toBe(0o600);
  });

  it('reject every changed byte and every truncation', async () => {
    const plaintext = new Uint8Array(150).fill(7);
    const filePath = await sealed(plaintext);
    const whole = await readFile(filePath);
    const change = fc.oneof(
      fc.tuple(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 })).map(([at, flip]) => {
        const bytes = Buffer.from(whole);
        bytes[at]! ^= flip;
        return bytes;
      }),
      fc.nat(whole.length - 1).map((length) => whole.subarray(0, length)),
      fc.uint8Array({ minLength: 1, maxLength: 200 }).map((more) => Buffer.concat([whole, more])),
    );
    await fc.assert(
      fc.asyncProperty(change, async (bytes) => {
        const changed = `${filePath}-changed`;
        await writeFile(changed, bytes);
        await expect(contentOf(changed)).rejects.toBeInstanceOf(SealedFileError);
      }),
    );
  });

  it('reject moved, repeated and missing chunks', async () => {
    const whole = await readFile(await sealed(new Uint8Array(4 * CHUNK).fill(7)));
    const chunks = [0, 1, 2, 3].map((i) => whole.subarray(HEADER + i * SEALED_CHUNK, HEADER + (i + 1) * SEALED_CHUNK));
    const last = whole.subarray(HEADER + 4 * SEALED_CHUNK);
    const order = fc.array(fc.nat(3), { maxLength: 6 }).filter((picked) => picked.join() !== '0,1,2,3');
    await fc.assert(
      fc.asyncProperty(order, async (picked) => {
        const filePath = join(folder, 'reordered');
        await writeFile(filePath, [whole.subarray(0, HEADER), ...picked.map((i) => chunks[i]!), last]);
        await expect(contentOf(filePath)).rejects.toMatchObject(DAMAGED);
      }),
    );
  });

  it('reject another name and an exchanged header', async () => {
    const filePath = await sealed(new Uint8Array(10));
    await expect(opened(filePath, keys, 'other.wav')).rejects.toMatchObject(DAMAGED);
    const other = await readFile(await sealed(new Uint8Array(10)));
    const bytes = await readFile(filePath);
    other.copy(bytes, 0, 0, HEADER);
    await writeFile(filePath, bytes);
    await expect(opened(filePath)).rejects.toMatchObject(DAMAGED);
  });

  it('open with a previous key, and name a missing key', async () => {
    const filePath = await sealed(Buffer.from('kept'));
    const [previous, next] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
    const rotated = await opened(filePath, createSealingKeys(next, [previous]));
    expect(String(await rangeOf(rotated, { start: 0, end: 9 }))).toBe('kept');
    const retired = createSealingKeys(null, [previous]);
    expect([retired.isOn, retired.create(NAME)]).toEqual([false, null]);
    expect((await opened(filePath, retired)).sizeBytes).toBe(4);
    await expect(opened(filePath, createSealingKeys(next))).rejects.toMatchObject({ code: 'SEALED_KEY_UNKNOWN' });
  });

  it('have companions with the same key, even if it no longer seals new files', async () => {
    const previous = Buffer.alloc(32, 1);
    const retired = createSealingKeys(Buffer.alloc(32, 2), [previous]);
    const seal = retired.createLike(keys.create(NAME)!.header, 'companion');
    const filePath = join(folder, 'companion');
    const writer = await SealedFileWriter.open(filePath, seal);
    await writer.append(Buffer.from('mono'));
    await writer.finish();
    expect((await opened(filePath, createSealingKeys(null, [previous]), 'companion')).sizeBytes).toBe(4);
    await expect(opened(filePath, createSealingKeys(Buffer.alloc(32, 2)), 'companion')).rejects.toMatchObject({
      code: 'SEALED_KEY_UNKNOWN',
    });
  });

  it('reject hostile headers', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), fc.boolean(), async (bytes, isMagic) => {
        const filePath = join(folder, 'hostile');
        await writeFile(filePath, isMagic ? [Buffer.from('TNDMSEAL'), bytes] : bytes);
        await expect(opened(filePath)).rejects.toBeInstanceOf(SealedFileError);
        await expect(repaired(filePath)).rejects.toBeInstanceOf(SealedFileError);
      }),
    );
  });

  it('authenticate the index and the end of each chunk', () => {
    const key = new Uint8Array(32).fill(3);
    const chunk = sealChunk(key, Buffer.from('audio'), { index: 5, isLast: false });
    expect(openChunk(key, chunk, { index: 5, isLast: false }).toString()).toBe('audio');
    for (const place of [
      { index: 4, isLast: false },
      { index: 5, isLast: true },
    ]) {
      expect(() => openChunk(key, chunk, place)).toThrow(SealedFileError);
    }
  });
});

describe('repair of a sealed file', () => {
  it('keeps every whole chunk of a writer killed at any byte', async () => {
    await fc.assert(
      fc.asyncProperty(content, fc.nat(1000), async (plaintext, killedAt) => {
        const filePath = await sealed(plaintext, { finish: false });
        const { size } = await stat(filePath);
        const length = HEADER + Math.min(killedAt, size - HEADER);
        await truncate(filePath, length);
        const kept = CHUNK * Math.floor((length - HEADER) / SEALED_CHUNK);
        expect(await repaired(filePath)).toEqual({ bytes: kept, isRepaired: true });
        expect(await contentOf(filePath)).toEqual(Buffer.from(plaintext.subarray(0, kept)));
        expect(await repaired(filePath)).toEqual({ bytes: kept, isRepaired: false });
      }),
      { numRuns: 60 },
    );
  });

  it('leaves a finished file unchanged', async () => {
    await fc.assert(
      fc.asyncProperty(content, async (plaintext) => {
        const filePath = await sealed(plaintext);
        const before = await readFile(filePath);
        expect(await repaired(filePath)).toEqual({ bytes: plaintext.length, isRepaired: false });
        expect(await readFile(filePath)).toEqual(before);
      }),
      { numRuns: 30 },
    );
  });

  it('drops torn chunks after a power cut', async () => {
    const filePath = await sealed(new Uint8Array(5 * CHUNK).fill(9), { finish: false });
    const file = await open(filePath, 'r+');
    await file.write(Buffer.alloc(2 * SEALED_CHUNK), 0, 2 * SEALED_CHUNK, HEADER + 3 * SEALED_CHUNK);
    await file.close();
    expect(await repaired(filePath)).toEqual({ bytes: 3 * CHUNK, isRepaired: true });
    expect((await contentOf(filePath)).length).toBe(3 * CHUNK);
  });

  it('changes no file with another key, another name or no authentic chunk', async () => {
    const filePath = await sealed(new Uint8Array(3 * CHUNK), { finish: false });
    const before = await readFile(filePath);
    const other = createSealingKeys(Buffer.alloc(32, 2));
    await expect(repairSealedFile(filePath, (header) => other.open(header, NAME))).rejects.toMatchObject({
      code: 'SEALED_KEY_UNKNOWN',
    });
    await expect(repairSealedFile(filePath, (header) => keys.open(header, 'b'))).rejects.toMatchObject(DAMAGED);
    expect(await readFile(filePath)).toEqual(before);
    await copyFile(filePath, `${filePath}-torn`);
    const torn = await open(`${filePath}-torn`, 'r+');
    await torn.write(Buffer.alloc(3 * SEALED_CHUNK), 0, 3 * SEALED_CHUNK, HEADER);
    await torn.close();
    await expect(repaired(`${filePath}-torn`)).rejects.toMatchObject(DAMAGED);
  });
});
