import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openOggOpusEncoder } from '../../../../speech/synthesis/output/ogg-opus-encoder.ts';
import { decodeOggOpus, oggPages } from './ogg-opus-reader.ts';
import { correlation, encodeAll, resampled, SAMPLE_RATES_HZ, speechAt } from './streams.ts';

const OPUSINFO = 'opusinfo';
const hasOpusTools = spawnSync(OPUSINFO, ['--version']).error === undefined;

async function encoded(sampleRateHz: number, samples: Int16Array): Promise<Buffer> {
  return encodeAll(await openOggOpusEncoder(sampleRateHz), samples);
}

describe('Ogg Opus encoder', () => {
  it.each(SAMPLE_RATES_HZ)('encodes %i Hz to the same speech, sample-exact', async (rateHz) => {
    const encoder = await openOggOpusEncoder(rateHz);
    const samples = speechAt(encoder.inputRateHz, 2).subarray(0, encoder.inputRateHz + 7);
    const { samples: decoded, originalRateHz, vendor } = await decodeOggOpus(encodeAll(encoder, samples));
    expect(decoded.length).toBe((samples.length * 48_000) / encoder.inputRateHz);
    expect(correlation(decoded, resampled(samples, encoder.inputRateHz, 48_000))).toBeGreaterThan(0.93);
    expect(originalRateHz).toBe(rateHz);
    expect(vendor).toMatch(/^libopus /);
  });

  it('selects the next rate that Opus supports', async () => {
    const rates = await Promise.all(
      SAMPLE_RATES_HZ.map(async (rateHz) => {
        const encoder = await openOggOpusEncoder(rateHz);
        encoder.close();
        return encoder.inputRateHz;
      }),
    );
    expect(rates).toEqual([8000, 12000, 16000, 24000, 24000, 48000, 48000, 48000]);
    await expect(openOggOpusEncoder(48_001)).rejects.toThrow(RangeError);
  });

  it('writes numbered pages of at most 200 ms with increasing positions and a last-page flag', async () => {
    const pages = oggPages(await encoded(16_000, speechAt(16_000, 3)));
    const [head, tags, ...audio] = pages;
    expect([head!.granulePosition, tags!.granulePosition]).toEqual([0, 0]);
    expect([head!.packets.length, tags!.packets.length]).toEqual([1, 1]);
    expect(pages.map(({ isFirst }) => isFirst)).toEqual(pages.map((_, index) => index === 0));
    expect(pages.map(({ isLast }) => isLast)).toEqual(pages.map((_, index) => index === pages.length - 1));
    expect(pages.map(({ sequence }) => sequence)).toEqual(pages.map((_, index) => index));
    expect(new Set(pages.map(({ serial }) => serial)).size).toBe(1);
    let granules = 0;
    for (const { packets, granulePosition, isLast } of audio) {
      expect(packets.length).toBeLessThanOrEqual(10);
      granules += packets.length * 960;
      if (!isLast) expect(granulePosition).toBe(granules);
    }
    expect(audio.at(-1)!.granulePosition).toBeLessThanOrEqual(granules);
    expect(audio.at(-1)!.granulePosition).toBeGreaterThan(granules - 960);
  });

  it('writes two header pages, then audio after 60 ms', async () => {
    const encoder = await openOggOpusEncoder(24_000);
    const samples = speechAt(24_000, 1);
    const begun = encoder.encode(samples.subarray(0, (24_000 * 60) / 1000));
    encoder.close();
    expect(oggPages(begun).map(({ packets }) => packets.length)).toEqual([1, 1, 2]);
  });

  it('writes an empty stream for no samples', async () => {
    for (const rateHz of SAMPLE_RATES_HZ) {
      const { samples } = await decodeOggOpus(await encoded(rateHz, new Int16Array(0)));
      expect(samples.length).toBe(0);
    }
  });

  it('keeps the exact length around frame boundaries and for single samples', async () => {
    for (const length of [1, 2, 319, 320, 321, 535, 536, 537, 640, 3200, 3201]) {
      const { samples } = await decodeOggOpus(await encoded(16_000, new Int16Array(length).fill(1000)));
      expect(samples.length).toBe(length * 3);
    }
  });

  it('assigns different stream serials, so that files can be concatenated', async () => {
    const speech = speechAt(16_000, 2);
    const [one] = oggPages(await encoded(16_000, speech.subarray(8000, 16_000)));
    const [other] = oggPages(await encoded(16_000, speech.subarray(16_000)));
    expect(one!.serial).not.toBe(other!.serial);
  });

  it.runIf(hasOpusTools)('passes opusinfo without warnings, with the right length', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tandem-opus-'));
    try {
      for (const [rateHz, seconds] of [
        [8000, 0],
        [8000, 1],
        [24_000, 2],
        [44_100, 1],
      ] as const) {
        const encoder = await openOggOpusEncoder(rateHz);
        const samples = speechAt(encoder.inputRateHz, seconds);
        const file = join(folder, 'speech.opus');
        await writeFile(file, encodeAll(encoder, samples));
        const { stdout, stderr, status } = spawnSync(OPUSINFO, [file], { encoding: 'utf8' });
        expect({ status, warnings: `${stdout}${stderr}`.match(/^.*(warning|error).*$/gim) }).toEqual({
          status: 0,
          warnings: null,
        });
        expect(stdout).toContain(`Playback length: 0m:0${seconds}.000s`);
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
