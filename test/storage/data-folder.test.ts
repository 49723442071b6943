import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeFolder } from '../../runtime/make-folder.ts';
import { openDataFolder } from '../../storage/data-folder.ts';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'tandem-data-'));
});
afterAll(() => rm(root, { recursive: true }));

it('opening a data folder deletes temporary files of a killed process, and no others', async () => {
  const first = await openDataFolder(root);
  await mkdir(join(first.tempDir, 'upload-1'));
  await writeFile(join(first.tempDir, 'upload-1', 'upload'), 'what a client sent');
  await writeFile(join(first.recordingsDir, 'call.wav'), 'what a call left');
  await first.close();
  const second = await openDataFolder(root);
  expect(await readdir(second.tempDir)).toEqual([]);
  expect((await stat(second.tempDir)).mode & 0o777).toBe(0o700);
  expect(await readdir(second.recordingsDir)).toEqual(['call.wav']);
  await second.close();
});

it.each(['/proc/tandem', '/proc/tandem/data', '/dev/null/data', '/dev/null'])(
  'rejects %s as a data folder',
  async (folder) => {
    await expect(openDataFolder(folder)).rejects.toMatchObject({
      code: 'STORAGE_UNAVAILABLE',
      message: expect.stringContaining(`The data folder ${folder} cannot be used`),
    });
  },
);

it('two processes can create folders with the same missing parents at once', async () => {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const parents = [join(root, `${attempt}`), join(root, `${attempt}/a`), join(root, `${attempt}/a/b`)];
    await Promise.all([...parents.toReversed(), ...parents].map(makeFolder));
    expect(await readdir(parents[1]!)).toEqual(['b']);
  }
});
