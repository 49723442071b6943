import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { measureSamples } from '../../../actors/voices/measured-samples.ts';
import { wavFile } from '../../media/audio-file/wav-files.ts';
import { spokenUtterances } from '../../speech/spoken.ts';

const [SENTENCE, ANOTHER] = spokenUtterances().map(({ samples }) => samples) as [Int16Array, Int16Array];
const NOTHING = new Int16Array(16_000 * 6);

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-samples-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function analyse(...recordings: Int16Array[]) {
  const paths = recordings.map((_, index) => join(folder, `${index}.wav`));
  for (const [index, path] of paths.entries()) await writeFile(path, wavFile(recordings[index]!));
  return await measureSamples(paths);
}

it('voice analysis measures usable samples and ignores others', async () => {
  const profile = await analyse(NOTHING, SENTENCE, ANOTHER);
  expect(profile).toMatchObject({ isUsable: true, best: 1 });
  expect(profile).toEqual({ ...(await analyse(SENTENCE, ANOTHER)), best: 1 });
});

it('voice analysis combines samples that are too short individually', async () => {
  const pieces = [0, 1, 2, 3].map((piece) => SENTENCE.subarray(piece * 25_000, (piece + 1) * 25_000));
  expect(await analyse(pieces[0]!)).toMatchObject({
    isUsable: false,
    error: expect.stringContaining('seconds of speech'),
  });
  expect(await analyse(...pieces)).toMatchObject({ isUsable: true, best: 0 });
});

it('voice analysis explains what to do when no sample is usable', async () => {
  expect(await analyse(NOTHING)).toMatchObject({ isUsable: false, error: expect.stringContaining('No speech found') });
  expect(await analyse()).toMatchObject({ isUsable: false });
});
