import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readSampleLayout, type SampleLayout } from '../../../media/audio-file/sample-layout.ts';
import * as fc from '../../properties.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-layout-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function layoutOf(bytes: Buffer): Promise<SampleLayout | null> {
  const path = join(folder, 'file');
  await writeFile(path, bytes);
  await using handle = await open(path, 'r');
  return await readSampleLayout(handle, bytes.length);
}

interface WavOptions {
  tag?: number;
  bits?: number;
  channels?: number;
  rate?: number;
  claimedBytes?: number;
  before?: Buffer[];
}

function wav({ tag = 1, bits = 16, channels = 1, rate = 16_000, claimedBytes = 400, before = [] }: WavOptions): Buffer {
  const isExtensible = tag > 0xffff;
  const format = Buffer.alloc(isExtensible ? 40 : 16);
  format.writeUInt16LE(isExtensible ? 0xfffe : tag, 0);
  format.writeUInt16LE(channels, 2);
  format.writeUInt32LE(rate, 4);
  format.writeUInt32LE(rate * channels * (bits / 8), 8);
  format.writeUInt16LE(channels * (bits / 8), 12);
  format.writeUInt16LE(bits, 14);
  if (isExtensible) {
    format.writeUInt16LE(22, 16);
    Buffer.from('000000001000800000aa00389b71', 'hex').copy(format, 26);
    format.writeUInt16LE(tag & 0xffff, 24);
  }
  const data = Buffer.concat([chunkHeader('data', claimedBytes), Buffer.alloc(400, 1)]);
  return Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVE'), ...before, chunk('fmt ', format), data]);
}

function chunkHeader(id: string, bytes: number): Buffer {
  const header = Buffer.alloc(8);
  header.write(id, 'latin1');
  header.writeUInt32LE(bytes, 4);
  return header;
}

function chunk(id: string, body: Buffer): Buffer {
  return Buffer.concat([chunkHeader(id, body.length), body, Buffer.alloc(body.length & 1)]);
}

const EXTENSIBLE = 0x1_0000;

describe('WAV layout', () => {
  it.each([
    [1, 16, 'linear16'],
    [7, 8, 'mulaw'],
    [6, 8, 'alaw'],
    [EXTENSIBLE + 1, 16, 'linear16'],
    [EXTENSIBLE + 7, 8, 'mulaw'],
    [EXTENSIBLE + 6, 8, 'alaw'],
  ])('maps format %i of %i bits to %s', async (tag, bits, encoding) => {
    for (const channels of [1, 2]) {
      for (const rate of [8_000, 16_000, 24_000, 44_100, 48_000]) {
        const layout = await layoutOf(wav({ tag, bits, channels, rate }));
        expect(layout).toMatchObject({ format: { encoding, channels, sampleRateHz: rate }, bytes: 400 });
      }
    }
  });

  it.each<[string, WavOptions]>([
    ['24 bits', { bits: 24 }],
    ['floating point', { tag: 3, bits: 32 }],
    ['compression', { tag: 0x55, bits: 0 }],
    ['another GUID', { tag: EXTENSIBLE + 3, bits: 32 }],
    ['three channels', { channels: 3 }],
    ['no channel', { channels: 0 }],
    ['another rate', { rate: 22_050 }],
    ['8-bit PCM', { bits: 8 }],
  ])('leaves %s to ffmpeg', async (_what, options) => {
    expect(await layoutOf(wav(options))).toBeNull();
  });

  it('skips chunks before the samples, including odd lengths', async () => {
    const before = [chunk('LIST', Buffer.alloc(3)), chunk('bext', Buffer.alloc(602))];
    expect(await layoutOf(wav({ before }))).toMatchObject({ offset: 12 + 12 + 610 + 24 + 8, bytes: 400 });
  });

  it('treats an unknown length as the rest of the file, and a longer one as truncated', async () => {
    // SoX writes 0x7ffff000 to a pipe.
    for (const claimedBytes of [0, 0xffffffff, 0x7fffffff, 0x7ffff000]) {
      expect(await layoutOf(wav({ claimedBytes }))).toMatchObject({ bytes: 400, isTruncated: false });
    }
    expect(await layoutOf(wav({ claimedBytes: 100 }))).toMatchObject({ bytes: 100, isTruncated: false });
    expect(await layoutOf(wav({ claimedBytes: 500 }))).toMatchObject({ bytes: 400, isTruncated: true });
  });

  it('finds no samples in an empty file with another chunk behind them', async () => {
    const empty = wav({ claimedBytes: 0 }).subarray(0, 44);
    const info = chunk('LIST', Buffer.from('INFOISFT\x0e\0\0\0Lavf60.16.100\0'));
    expect(await layoutOf(empty)).toMatchObject({ bytes: 0 });
    expect(await layoutOf(Buffer.concat([empty, info]))).toMatchObject({ bytes: 0, isTruncated: false });
    // Samples that begin like a chunk longer than the file.
    const samples = Buffer.concat([Buffer.from('LIST'), Buffer.alloc(396, 1)]);
    expect(await layoutOf(Buffer.concat([empty, samples]))).toMatchObject({ bytes: 400 });
  });

  it('rejects endless chunks, samples before their format and truncated headers', async () => {
    const many = Array.from({ length: 1_000 }, () => chunk('JUNK', Buffer.alloc(0)));
    expect(await layoutOf(wav({ before: many }))).toBeNull();
    expect(await layoutOf(wav({ before: [chunk('data', Buffer.alloc(4))] }))).toBeNull();
    const whole = wav({});
    for (let length = 0; length < 44; length++) expect(await layoutOf(whole.subarray(0, length))).toBeNull();
  });
});

it('reads AU files with G.711 and leaves others to ffmpeg', async () => {
  const au = (encoding: number, offset = 28, bytes = 0xffffffff) => {
    const head = Buffer.alloc(28 + 400);
    head.write('.snd', 'latin1');
    [offset, bytes, encoding, 8_000, 1].forEach((value, index) => {
      head.writeUInt32BE(value, 4 + index * 4);
    });
    return head;
  };
  expect(await layoutOf(au(1))).toMatchObject({
    container: 'au',
    offset: 28,
    bytes: 400,
    format: { encoding: 'mulaw' },
  });
  expect(await layoutOf(au(27, 28, 100))).toMatchObject({ bytes: 100, format: { encoding: 'alaw' } });
  expect(await layoutOf(au(3))).toBeNull();
  expect(await layoutOf(au(1, 4))).toBeNull();
  expect(await layoutOf(au(1, 0xffffffff))).toBeNull();
});

it('locates the samples inside the file for any header', async () => {
  const seeds = [wav({}), wav({ tag: EXTENSIBLE + 7, bits: 8, channels: 2 }), Buffer.from('.snd'.padEnd(64, '\0'))];
  const edits = fc.array(fc.tuple(fc.nat(80), fc.integer({ min: 0, max: 255 })), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...seeds), edits, fc.nat(500), async (seed, changes, cut) => {
      const bytes = Buffer.from(seed.subarray(0, Math.max(0, seed.length - cut)));
      for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value;
      const layout = await layoutOf(bytes);
      if (layout === null) return;
      expect(layout.offset).toBeGreaterThanOrEqual(24);
      expect(layout.bytes).toBeGreaterThanOrEqual(0);
      expect(layout.offset + layout.bytes).toBeLessThanOrEqual(bytes.length);
    }),
    { numRuns: 500 },
  );
});
