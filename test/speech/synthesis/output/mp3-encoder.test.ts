import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFfmpeg } from '../../../../media/audio-file/ffmpeg.ts';
import { openMp3Encoder } from '../../../../speech/synthesis/output/mp3-encoder.ts';
import { correlation, encodeAll, SAMPLE_RATES_HZ, speechAt } from './streams.ts';

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-mp3-'));
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** Decodes with ffmpeg, installed or bundled; returns samples at the rate of the file and warnings. */
async function decoded(file: Uint8Array): Promise<{ samples: Int16Array; complaints: string }> {
  const path = join(folder, 'speech.mp3');
  await writeFile(path, file);
  const [program, ...first] = (await findFfmpeg()).command;
  const args = [...first, '-loglevel', 'error', '-i', `file:${path}`, '-f', 's16le', '-c:a', 'pcm_s16le', 'pipe:1'];
  const { stdout, stderr } = await promisify(execFile)(program!, args, { encoding: 'buffer', maxBuffer: 2 ** 26 });
  // The WebAssembly build prints this at every exit.
  const complaints = stderr.toString().replace(/^Aborted\(\)\n$/, '');
  return { samples: new Int16Array(new Uint8Array(stdout).buffer), complaints };
}

/** Size and rate of each frame, from the headers (ISO/IEC 11172-3 2.4.2.3). */
function framesOf(file: Buffer): { bytes: number; rateHz: number; samples: number; channelMode: number }[] {
  const frames = [];
  for (let at = 0; at < file.length; ) {
    const header = file.readUInt32BE(at);
    if (header >>> 21 !== 0x7ff || ((header >> 17) & 3) !== 1) throw new Error(`no frame at ${at}`);
    const version = (header >> 19) & 3;
    const isMpeg1 = version === 3;
    const rateHz = [44_100, 48_000, 32_000][(header >> 10) & 3]! / (isMpeg1 ? 1 : version === 2 ? 2 : 4);
    const bitRates = isMpeg1
      ? [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
      : [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
    const bitsPerSecond = bitRates[((header >> 12) & 15) - 1]! * 1000;
    const samples = isMpeg1 ? 1152 : 576;
    const bytes = Math.floor(((samples / 8) * bitsPerSecond) / rateHz) + ((header >> 9) & 1);
    frames.push({ bytes, rateHz, samples, channelMode: (header >> 6) & 3 });
    at += bytes;
  }
  return frames;
}

describe('MP3 encoder', () => {
  it.each(SAMPLE_RATES_HZ)('encodes %i Hz so that ffmpeg decodes the same speech', async (rateHz) => {
    const encoder = await openMp3Encoder(rateHz);
    expect(encoder.inputRateHz).toBe(rateHz);
    const samples = speechAt(rateHz, 2);
    const { samples: output, complaints } = await decoded(encodeAll(encoder, samples));
    expect(complaints).toBe('');
    expect(output.length).toBeGreaterThanOrEqual(samples.length);
    expect(output.length).toBeLessThan(samples.length + 1152);
    expect(correlation(output, samples)).toBeGreaterThan(0.97);
  });

  it('writes whole mono frames at the input rate', async () => {
    for (const rateHz of SAMPLE_RATES_HZ) {
      for (const seconds of [0, 1]) {
        const samples = speechAt(rateHz, seconds);
        const frames = framesOf(encodeAll(await openMp3Encoder(rateHz), samples));
        expect(new Set(frames.map((frame) => frame.rateHz))).toEqual(new Set([rateHz]));
        expect(new Set(frames.map(({ channelMode }) => channelMode))).toEqual(new Set([3]));
        const played = frames.slice(1).reduce((sum, frame) => sum + frame.samples, 0);
        expect(played).toBeGreaterThanOrEqual(samples.length + 1105);
      }
    }
  });

  it('returns its first frames within 140 ms of speech', async () => {
    for (const rateHz of SAMPLE_RATES_HZ) {
      const encoder = await openMp3Encoder(rateHz);
      const begun = encoder.encode(speechAt(rateHz, 1).subarray(0, Math.round(0.14 * rateHz)));
      encoder.close();
      expect(framesOf(Buffer.from(begun)).length).toBeGreaterThanOrEqual(2);
    }
  });

  it('writes a playable file for an empty or single-sample input', async () => {
    for (const rateHz of [8000, 24_000, 48_000]) {
      for (const length of [0, 1]) {
        const { samples, complaints } = await decoded(encodeAll(await openMp3Encoder(rateHz), new Int16Array(length)));
        expect(complaints).toBe('');
        expect(samples.length).toBeLessThanOrEqual(2 * 1152);
      }
    }
  });

  it('selects the next rate that MP3 supports', async () => {
    const encoder = await openMp3Encoder(11_500);
    encoder.close();
    expect(encoder.inputRateHz).toBe(12_000);
    await expect(openMp3Encoder(48_001)).rejects.toThrow(RangeError);
  });
});
