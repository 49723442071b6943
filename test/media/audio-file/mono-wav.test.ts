import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AudioFormat } from '../../../machines/utterances.ts';
import { writeMonoWav } from '../../../media/audio-file/mono-wav.ts';
import { ALAW_TO_LINEAR, MULAW_TO_LINEAR } from '../../../media/codecs/g711.ts';
import { readWav } from '../../../media/wav.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-mono-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** Longer than the read buffer, and not a multiple of it. */
const FRAMES = 300_003;
const OFFSET = 7;

it.each<[AudioFormat['encoding'], AudioFormat['channels']]>([
  ['linear16', 1],
  ['linear16', 2],
  ['mulaw', 2],
  ['alaw', 1],
])('mixes %s of %i channels to their mean, sample by sample', async (encoding, channels) => {
  const sampleBytes = encoding === 'linear16' ? 2 : 1;
  const bytes = FRAMES * sampleBytes * channels;
  const file = Buffer.from(Uint8Array.from({ length: OFFSET + bytes + 5 }, (_, at) => (at * 2_654_435_761) >>> 24));
  const [filePath, wavPath] = [join(folder, 'in'), join(folder, 'out.wav')];
  await writeFile(filePath, file);
  const format = { encoding, channels, sampleRateHz: 8000 };
  const written = await writeMonoWav({ filePath, offset: OFFSET, bytes, format }, wavPath);

  const table = encoding === 'alaw' ? ALAW_TO_LINEAR : MULAW_TO_LINEAR;
  const sampleAt = (index: number) =>
    encoding === 'linear16' ? file.readInt16LE(OFFSET + 2 * index) : table[file[OFFSET + index]!]!;
  const expected = Int16Array.from({ length: FRAMES }, (_, frame) => {
    const given = Array.from({ length: channels }, (_, channel) => sampleAt(frame * channels + channel));
    return Math.round(given.reduce((sum, sample) => sum + sample, 0) / channels);
  });
  const octets = Buffer.from(expected.buffer);
  const { samples, sampleRateHz } = await readWav(wavPath);
  expect(sampleRateHz).toBe(8000);
  expect(Buffer.from(samples[0]!.buffer, samples[0]!.byteOffset, samples[0]!.byteLength).equals(octets)).toBe(true);
  expect(written).toEqual({
    durationMs: FRAMES / 8,
    bytes: 44 + octets.length,
    sha256: createHash('sha256').update(octets).digest(),
  });
});
