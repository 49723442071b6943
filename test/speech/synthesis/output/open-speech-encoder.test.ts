import { describe, expect, it } from 'vitest';
import { ALAW_TO_LINEAR, MULAW_TO_LINEAR } from '../../../../media/codecs/g711.ts';
import { SPEECH_ENCODINGS, type SpeechEncoding } from '../../../../speech/speech-synthesis.ts';
import { openSpeechEncoder } from '../../../../speech/synthesis/output/open-speech-encoder.ts';
import * as fc from '../../../properties.ts';
import { blockSizes, correlation, cut, encodeAll, SAMPLE_RATES_HZ, speechAt } from './streams.ts';

async function encoded(encoding: SpeechEncoding, samples: Int16Array, sampleRateHz = 16_000): Promise<Buffer> {
  return encodeAll(await openSpeechEncoder({ encoding, sampleRateHz }), samples);
}

describe.each(SPEECH_ENCODINGS)('%s encoder', (encoding) => {
  it('returns the same bytes for any block sizes', async () => {
    const samples = speechAt(16_000, 2).subarray(4000, 16_000);
    const expected = await encoded(encoding, samples);
    await fc.assert(
      fc.asyncProperty(blockSizes, async (sizes) => {
        const encoder = await openSpeechEncoder({ encoding, sampleRateHz: 16_000 });
        const parts = cut(samples, sizes).map((block) => encoder.encode(block));
        parts.push(encoder.finish());
        encoder.close();
        expect(Buffer.concat(parts).equals(expected)).toBe(true);
      }),
      { numRuns: 25 },
    );
  });

  it('returns buffers of its own, which may be transferred', async () => {
    const encoder = await openSpeechEncoder({ encoding, sampleRateHz: 8000 });
    const samples = speechAt(8000, 1);
    const first = encoder.encode(samples.subarray(0, 4000));
    const copy = Buffer.from(first);
    structuredClone(first, { transfer: [first.buffer] });
    expect(first.length).toBe(0);
    const rest = [encoder.encode(samples.subarray(4000)), encoder.finish()];
    encoder.close();
    expect(Buffer.concat([copy, ...rest]).equals(await encoded(encoding, samples, 8000))).toBe(true);
  });

  it('keeps parallel streams independent', async () => {
    const samples = speechAt(16_000, 2);
    const halves = [samples.subarray(0, 16_000), samples.subarray(16_000)] as const;
    const alone = [await encoded(encoding, halves[0]), await encoded(encoding, halves[1])];
    const format = { encoding, sampleRateHz: 16_000 };
    const encoders = [await openSpeechEncoder(format), await openSpeechEncoder(format)] as const;
    const parts: [Uint8Array[], Uint8Array[]] = [[], []];
    for (let at = 0; at < 16_000; at += 500) {
      for (const side of [0, 1] as const) parts[side].push(encoders[side].encode(halves[side].subarray(at, at + 500)));
    }
    for (const side of [0, 1] as const) {
      parts[side].push(encoders[side].finish());
      encoders[side].close();
    }
    expect(parts.map((side) => Buffer.concat(side))).toEqual(alone);
  });

  it('tolerates an early and a repeated close, and leaves the next stream alone', async () => {
    const samples = speechAt(16_000, 1);
    const expected = await encoded(encoding, samples);
    const encoder = await openSpeechEncoder({ encoding, sampleRateHz: 16_000 });
    encoder.encode(samples.subarray(0, 5000));
    encoder.close();
    encoder.close();
    const next = await openSpeechEncoder({ encoding, sampleRateHz: 16_000 });
    encoder.close();
    expect(encodeAll(next, samples).equals(expected)).toBe(true);
  });

  it('releases the memory of closed streams', async () => {
    const samples = new Int16Array(1000);
    const streams = async (count: number) => {
      for (let i = 0; i < count; i++) {
        const encoder = await openSpeechEncoder({ encoding, sampleRateHz: 24_000 });
        encoder.encode(samples);
        if (i % 2 === 0) encoder.finish();
        encoder.close();
      }
    };
    await streams(200);
    const before = process.memoryUsage.rss();
    // Three times what the limit below allows: an Opus encoder takes 30 kB; LAME 200 kB of 16 MB.
    await streams(encoding === 'MP3' ? 750 : 5_000);
    expect(process.memoryUsage.rss() - before).toBeLessThan(50_000_000);
  });
});

describe('headerless encodings', () => {
  it('write little-endian samples at every rate as LINEAR16', async () => {
    for (const sampleRateHz of SAMPLE_RATES_HZ) {
      const encoder = await openSpeechEncoder({ encoding: 'LINEAR16', sampleRateHz });
      expect(encoder.inputRateHz).toBe(sampleRateHz);
      expect([...encoder.encode(Int16Array.of(1, -2, 0x1234))]).toEqual([1, 0, 0xfe, 0xff, 0x34, 0x12]);
      expect(encoder.finish().length).toBe(0);
    }
  });

  it('write one G.711 octet per sample', async () => {
    const samples = speechAt(8000, 2);
    for (const [encoding, table] of [
      ['MULAW', MULAW_TO_LINEAR],
      ['ALAW', ALAW_TO_LINEAR],
    ] as const) {
      const octets = await encoded(encoding, samples, 8000);
      expect(octets.length).toBe(samples.length);
      expect(
        correlation(
          Int16Array.from(octets, (octet) => table[octet]!),
          samples,
        ),
      ).toBeGreaterThan(0.999);
    }
  });
});

it('rejects samples after close', async () => {
  for (const encoding of ['MP3', 'OGG_OPUS'] as const) {
    const encoder = await openSpeechEncoder({ encoding, sampleRateHz: 8000 });
    encoder.close();
    expect(() => encoder.encode(new Int16Array(1000))).toThrow('closed');
    expect(() => encoder.finish()).toThrow('closed');
  }
});
