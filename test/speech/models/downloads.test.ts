import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { CATALOGUE } from '../../../speech/models/catalogue.ts';
import { downloadPath, listDownloads } from '../../../speech/models/downloads.ts';

it('lists unfinished downloads with their models, and no other files', async () => {
  const modelsDir = await mkdtemp(join(tmpdir(), 'tandem-downloads-'));
  onTestFinished(() => rm(modelsDir, { recursive: true, force: true }));
  expect(await listDownloads(modelsDir)).toEqual([]);
  const known = CATALOGUE.find(({ downloadMb }) => downloadMb !== null)!;
  const paths = [known.url, 'https://models.example/mine.tar.gz'].map((url) => downloadPath(modelsDir, url));
  await mkdir(dirname(paths[0]!), { recursive: true });
  for (const path of paths) await writeFile(path, 'abc');
  await writeFile(`${paths[0]}.json`, '{}');
  const downloads = (await listDownloads(modelsDir)).sort((a, b) => (b.totalBytes ?? 0) - (a.totalBytes ?? 0));
  expect(downloads).toEqual([
    {
      ...{ model: known.name, kind: known.kind, bytes: 3, totalBytes: known.downloadMb! * 1e6 },
      updatedAt: expect.any(Date),
    },
    { model: null, kind: null, bytes: 3, totalBytes: null, updatedAt: expect.any(Date) },
  ]);
});
