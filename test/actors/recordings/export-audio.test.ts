import { execFile } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ExportForm, exportAudio } from '../../../actors/recordings/export-audio.ts';
import { createRecordingExporter } from '../../../actors/recordings/recording-exporter.ts';
import { BUNDLED_FFMPEG } from '../../../media/audio-file/ffmpeg.ts';
import { tone } from '../../../media/dsp/tones.ts';
import { SealedWavWriter } from '../../../media/recording/sealed-wav.ts';
import { parseWav, wavHeader } from '../../../media/wav.ts';
import { createSealingKeys } from '../../../runtime/sealed-file/format.ts';
import { openSealedFile } from '../../../runtime/sealed-file/reader.ts';
import * as fc from '../../properties.ts';
import { toneLevelDbov } from '../../tone-level.ts';
import { createTestLogger } from '../fakes.ts';

const AGENT_HZ = 500;
const CUSTOMER_HZ = 1200;
const keys = createSealingKeys(Buffer.alloc(32, 4));

let folder: string;
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-export-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** Agent left, customer right, each with a different tone. */
function call(durationMs: number): Int16Array {
  const agent = tone({ frequenciesHz: [AGENT_HZ], durationMs, levelDbfs: -20 });
  const customer = tone({ frequenciesHz: [CUSTOMER_HZ], durationMs, levelDbfs: -20 });
  return interleaved(agent, customer);
}

function interleaved(left: Int16Array, right: Int16Array): Int16Array {
  return Int16Array.from({ length: 2 * left.length }, (_, i) => (i % 2 === 0 ? left : right)[i >> 1]!);
}

async function recordingOf(samples: Int16Array): Promise<string> {
  const path = join(folder, `${files++}.wav`);
  const data = Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);
  await writeFile(path, [wavHeader({ channels: 2, sampleRateHz: 8000 }, data.length), data]);
  return path;
}

async function exported(sourcePath: string, form: ExportForm): Promise<Buffer> {
  const targetPath = join(folder, String(files++));
  const bytes = await exportAudio({ sourcePath, sourceSeal: null, targetPath, targetSeal: null, form });
  const file = await readFile(targetPath);
  expect(file.length).toBe(bytes);
  expect((await stat(targetPath)).mode & 0o777).toBe(0o600);
  return file;
}

/** Decodes with ffmpeg, which shares no code with our encoders. */
async function decoded(file: Buffer) {
  const path = join(folder, 'decoded');
  await writeFile(path, file);
  const [program, ...first] = BUNDLED_FFMPEG.command;
  const args = [...first, '-loglevel', 'error', '-i', `file:${path}`, '-f', 'wav', '-c:a', 'pcm_s16le', 'pipe:1'];
  const { stdout } = await promisify(execFile)(program!, args, { encoding: 'buffer', maxBuffer: 2 ** 26 });
  return parseWav(stdout);
}

const middle = (samples: Int16Array) => samples.subarray(samples.length >> 2, 3 * (samples.length >> 2));
const level = (samples: Int16Array, hz: number, rateHz: number) => toneLevelDbov(middle(samples), hz, rateHz);

describe('recording export', () => {
  it.each([
    ['mp3', 'stereo'],
    ['mp3', 'mono'],
    ['opus', 'stereo'],
    ['opus', 'mono'],
    ['wav', 'mono'],
    ['wav', 'stereo'],
  ] as const)('writes %s in %s for any decoder, with each party in its channel', async (format, channels) => {
    const file = await exported(await recordingOf(call(3000)), { format, channels });
    const { samples, sampleRateHz, durationMs } = await decoded(file);
    expect(samples.length).toBe(channels === 'stereo' ? 2 : 1);
    expect(durationMs).toBeGreaterThanOrEqual(3000);
    // MP3 ends with a whole frame of 72 ms.
    expect(durationMs).toBeLessThan(format === 'mp3' ? 3145 : 3001);
    const [left, right = left] = samples;
    const found = [AGENT_HZ, CUSTOMER_HZ].map((hz) => [left!, right!].map((side) => level(side, hz, sampleRateHz)));
    if (channels === 'mono') {
      for (const side of found.flat()) expect(side).toBeGreaterThan(-25);
      return;
    }
    const [[agentLeft, agentRight], [customerLeft, customerRight]] = found as [[number, number], [number, number]];
    expect(Math.min(agentLeft, customerRight)).toBeGreaterThan(-25);
    expect(Math.max(agentRight, customerLeft)).toBeLessThan(-40);
  });

  it('limits the sum of two loud parties without overflow', async () => {
    const samples = Int16Array.of(30_000, 20_000, -30_000, -20_000, 100, -40, 7, 7);
    const { samples: mono } = parseWav(await exported(await recordingOf(samples), { format: 'wav', channels: 'mono' }));
    expect(mono).toEqual([Int16Array.of(32_767, -32_768, 60, 14)]);
  });

  it.each(['mp3', 'opus', 'wav'] as const)('writes an empty recording as %s', async (format) => {
    const file = await exported(await recordingOf(new Int16Array(0)), { format, channels: 'mono' });
    expect((await decoded(file)).durationMs).toBeLessThan(200);
  });

  it('computes the minimum and maximum of every 10 ms', async () => {
    await fc.assert(
      fc.asyncProperty(fc.int16Array({ maxLength: 900 }), async (drawn) => {
        const samples = drawn.subarray(0, drawn.length & ~1);
        const peaks = JSON.parse(String(await exported(await recordingOf(samples), { format: 'peaks' })));
        const points = Math.ceil(samples.length / 160);
        const expected: number[] = [];
        for (let point = 0; point < points; point++) {
          for (const channel of [0, 1]) {
            const part = samples.subarray(160 * point, 160 * (point + 1)).filter((_, i) => i % 2 === channel);
            expected.push(Math.min(...part) >> 8, Math.max(...part) >> 8);
          }
        }
        const head = { version: 2, channels: 2, sample_rate: 8000, samples_per_pixel: 80, bits: 8 };
        expect(peaks).toEqual({ ...head, length: points, data: expected });
      }),
      { numRuns: 30 },
    );
  });

  it('reads and writes encrypted files, without plaintext on disk', async () => {
    const name = 'call.wav';
    const sourcePath = join(folder, 'call.wav.sealed');
    const sourceSeal = keys.create(name)!;
    const writer = await SealedWavWriter.open(sourcePath, { channels: 2, sampleRateHz: 8000 }, sourceSeal);
    const samples = call(2000);
    await writer.append(Buffer.from(samples.buffer));
    await writer.finish();
    const exporter = createRecordingExporter({ keys, logger: createTestLogger() });
    const targetPath = join(folder, 'call.mono.wav.sealed');
    const job = { recordingKey: 'recordings/w/call.wav.sealed', sourcePath, targetKey: 'call.mono.wav.sealed' };
    try {
      const bytes = await exporter.export({ ...job, targetPath, form: { format: 'wav', channels: 'mono' } });
      expect(bytes).toBe(44 + samples.length);
      const file = await readFile(targetPath);
      expect(file.includes('RIFF')).toBe(false);
      const read = async (range: { start: number; end: number }) => createReadStream(targetPath, range);
      const source = { sizeBytes: file.length, read };
      const reader = await openSealedFile(source, (header) => keys.open(header, 'call.mono.wav'));
      const wav = parseWav(await buffer(reader.read({ start: 0, end: bytes - 1 })));
      expect(wav).toMatchObject({ channels: 1, durationMs: 2000 });
      expect(level(wav.samples[0]!, CUSTOMER_HZ, 8000)).toBeGreaterThan(-25);
    } finally {
      await exporter.close();
    }
  });

  it('reports a damaged recording and leaves no file', async () => {
    const exporter = createRecordingExporter({ keys, logger: createTestLogger() });
    const sourcePath = join(folder, 'broken.wav.sealed');
    const seal = keys.create('broken.wav')!;
    const writer = await SealedWavWriter.open(sourcePath, { channels: 2, sampleRateHz: 8000 }, seal);
    await writer.append(Buffer.alloc(100_000));
    await writer.finish();
    const bytes = await readFile(sourcePath);
    bytes[40_000]! ^= 1;
    await writeFile(sourcePath, bytes);
    const targetPath = join(folder, 'broken.mp3');
    const form = { format: 'mp3', channels: 'mono' } as const;
    const job = {
      recordingKey: 'broken.wav.sealed',
      sourcePath,
      targetKey: 'broken.mono.mp3.sealed',
      targetPath,
      form,
    };
    await expect(exporter.export(job)).rejects.toMatchObject({ code: 'SEALED_FILE_DAMAGED' });
    await exporter.close();
    expect(await readdir(folder)).not.toContain('broken.mp3');
  });
});
