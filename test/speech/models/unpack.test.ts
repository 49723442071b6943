import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ModelError } from '../../../speech/models/model-error.ts';
import { unpack } from '../../../speech/models/unpack.ts';
import * as fc from '../../properties.ts';
import { type ArchivedEntry, tarOf } from './tar-archive.ts';

const LIMITS = { mostFiles: 10, mostBytes: 100_000 };
const CONTENT = 'x'.repeat(1000);

let home: string;
let folder: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'tandem-unpack-'));
  folder = join(home, 'inside');
  await mkdir(folder);
});
afterEach(() => rm(home, { recursive: true }));

async function unpackBytes(bytes: Uint8Array, limits = LIMITS) {
  const archive = join(home, 'archive');
  await writeFile(archive, bytes);
  return await unpack(archive, folder, limits);
}

const pipe = (program: string, bytes: Buffer) => spawnSync(program, ['-c'], { input: bytes }).stdout;

describe('model archive', () => {
  const entries: ArchivedEntry[] = [
    { name: 'model/', type: '5' },
    { name: './model/tokens.txt', content: CONTENT },
    { name: 'model/deep/er/file', content: 'y' },
    { name: 'model/empty' },
  ];
  const compressions = [
    { name: 'nothing', compress: (bytes: Buffer) => bytes },
    { name: 'gzip', compress: gzipSync },
    { name: 'bzip2', compress: (bytes: Buffer) => pipe('bzip2', bytes) },
    { name: 'xz', compress: (bytes: Buffer) => pipe('xz', bytes) },
  ];

  it.each(compressions)('compressed with $name unpacks with a list of files', async ({ compress }) => {
    const files = await unpackBytes(compress(tarOf(entries)));
    expect(Object.keys(files)).toEqual(['model/tokens.txt', 'model/deep/er/file', 'model/empty']);
    const sha256 = createHash('sha256').update(CONTENT).digest('hex');
    expect(files['model/tokens.txt']).toEqual({ bytes: 1000, sha256 });
    expect(await readFile(join(folder, 'model/tokens.txt'), 'utf8')).toBe(CONTENT);
    expect(await readFile(join(folder, 'model/deep/er/file'), 'utf8')).toBe('y');
  });

  it('written by tar may contain long names', async () => {
    const deep = `${'deep-'.repeat(12)}folder`;
    const name = `${'long-'.repeat(16)}name`;
    for (const format of ['gnu', 'pax', 'ustar']) {
      await mkdir(join(home, format, deep, deep), { recursive: true });
      await writeFile(join(home, format, deep, deep, name), format);
      const { stdout } = spawnSync('tar', ['-c', `--format=${format}`, '-C', home, format]);
      const path = `${format}/${deep}/${deep}/${name}`;
      expect(Object.keys(await unpackBytes(stdout))).toEqual([path]);
      expect(await readFile(join(folder, path), 'utf8')).toBe(format);
    }
  });
});

describe('hostile model archive', () => {
  const cases: { what: string; entries: ArchivedEntry[] }[] = [
    { what: 'climbs out of its folder', entries: [{ name: '../outside', content: 'x' }] },
    { what: 'climbs out from below', entries: [{ name: 'a/../../outside', content: 'x' }] },
    { what: 'names the root', entries: [{ name: '/tmp/outside', content: 'x' }] },
    { what: 'climbs out by a long name', entries: [{ name: 'x', type: 'L', content: '../outside\0' }, { name: 'x' }] },
    {
      what: 'climbs out by a name of pax',
      entries: [{ name: 'x', type: 'x', content: '19 path=../outside\n' }, { name: 'x' }],
    },
    {
      what: 'writes through a symbolic link',
      entries: [
        { name: 'way', type: '2', linkTo: '..' },
        { name: 'way/outside', content: 'x' },
      ],
    },
    { what: 'has a hard link', entries: [{ name: 'x', type: '1', linkTo: '/etc/passwd' }] },
    { what: 'has a device', entries: [{ name: 'x', type: '3' }] },
    { what: 'has backslashes', entries: [{ name: '..\\outside', content: 'x' }] },
    { what: 'has a file twice', entries: [{ name: 'x' }, { name: 'x' }] },
    { what: 'has too many files', entries: Array.from({ length: 11 }, (_, index) => ({ name: `${index}` })) },
    { what: 'is too large', entries: [{ name: 'x', content: 'x'.repeat(100_001) }] },
    { what: 'claims to be larger than it is', entries: [{ name: 'x', content: 'x', claimedBytes: 90_000 }] },
    { what: 'has a name without end', entries: [{ name: 'x', type: 'L', content: 'x'.repeat(70_000) }] },
    { what: 'is empty', entries: [] },
  ];

  it.each(cases)('fails if it $what', async ({ entries }) => {
    await expect(unpackBytes(gzipSync(tarOf(entries)))).rejects.toMatchObject({ code: 'BAD_ARCHIVE' });
    expect((await readdir(home)).sort()).toEqual(['archive', 'inside']);
  });
});

describe('invalid model archive', () => {
  const whole = tarOf([{ name: 'x', content: 'x'.repeat(5000) }]);
  it.each([
    { what: 'a web page', bytes: Buffer.from('<html>'.repeat(200)) },
    { what: 'half an archive', bytes: whole.subarray(0, 2000) },
    { what: 'half a gzip archive', bytes: gzipSync(whole).subarray(0, 40) },
    { what: 'half a bzip2 archive', bytes: pipe('bzip2', whole).subarray(0, 30) },
    { what: 'a zip file', bytes: Buffer.from('PK\x03\x04 and so on') },
  ])('fails: $what', async ({ bytes }) => {
    await expect(unpackBytes(bytes)).rejects.toMatchObject({ code: 'BAD_ARCHIVE' });
  });
});

it('yields an error or files inside the folder for any damage', async () => {
  const whole = tarOf([
    { name: 'long', type: 'L', content: 'folder/name\0' },
    { name: 'x', content: 'x'.repeat(600) },
    { name: 'pax', type: 'x', content: '18 path=other/name\n' },
    { name: 'y', content: 'y' },
  ]);
  const damage = fc.array(fc.record({ at: fc.nat(whole.length - 1), to: fc.nat(255) }), { minLength: 1, maxLength: 4 });
  const property = fc.asyncProperty(damage, fc.boolean(), async (changes, repairs) => {
    const bytes = Buffer.from(whole);
    for (const { at, to } of changes) bytes[at] = to;
    if (repairs) repairChecksums(bytes);
    await rm(folder, { recursive: true });
    await mkdir(folder);
    await unpackBytes(bytes).catch((error: unknown) => {
      if (!(error instanceof ModelError)) throw error;
    });
    expect((await readdir(home)).sort()).toEqual(['archive', 'inside']);
  });
  await fc.assert(property, { numRuns: 150 });
});

/** Fixes the checksum of anything like a header; otherwise the parser would stop there. */
function repairChecksums(bytes: Buffer): void {
  for (let start = 0; start + 512 <= bytes.length; start += 512) {
    const header = bytes.subarray(start, start + 512);
    if (header.toString('latin1', 257, 262) !== 'ustar') continue;
    header.write('        ', 148, 'latin1');
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  }
}

it('reports a missing program', async () => {
  const path = process.env.PATH;
  const bytes = pipe('bzip2', tarOf([{ name: 'x' }]));
  process.env.PATH = home;
  try {
    const failure = { code: 'MISSING_PROGRAM', message: expect.stringContaining('bzip2') };
    await expect(unpackBytes(bytes)).rejects.toMatchObject(failure);
  } finally {
    process.env.PATH = path;
  }
});
