import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createGunzip } from 'node:zlib';
import { ModelError } from './model-error.ts';
import { readTar, type TarEntry } from './tar.ts';

export interface UnpackLimits {
  mostFiles: number;
  mostBytes: number;
}

/** By path relative to the folder, with forward slashes. */
export type UnpackedFiles = Record<string, { bytes: number; sha256: string }>;

/**
 * Unpacks a tar archive, compressed with gzip, bzip2, xz or not at all, into an empty folder. Rejects links, devices
 * and paths outside of the folder.
 * @throws ModelError `BAD_ARCHIVE`, `MISSING_PROGRAM`
 */
export async function unpack(archive: string, folder: string, limits: UnpackLimits): Promise<UnpackedFiles> {
  const files: UnpackedFiles = Object.create(null);
  let count = 0;
  let bytes = 0;
  for await (const entry of readTar(await decompress(archive))) {
    const path = safePath(entry);
    count += 1;
    bytes += entry.bytes;
    if (count > limits.mostFiles || bytes > limits.mostBytes) {
      throw new ModelError('BAD_ARCHIVE', 'the archive is larger than a model can be');
    }
    if (path === '') continue;
    try {
      if (entry.kind === 'folder') await mkdir(join(folder, path), { recursive: true });
      else files[path] = await writeEntry(entry, join(folder, path));
    } catch (error) {
      if (!IMPOSSIBLE_NAME.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
      throw new ModelError('BAD_ARCHIVE', 'the archive has a name twice, or one that no file can have', {
        cause: error,
      });
    }
  }
  if (count === 0) throw new ModelError('BAD_ARCHIVE', 'there is nothing in the archive');
  return files;
}

const IMPOSSIBLE_NAME: ReadonlySet<string> = new Set(['EEXIST', 'EISDIR', 'ENOTDIR', 'ENAMETOOLONG', 'EINVAL']);

/** Signatures. */
const COMPRESSIONS = [
  { name: 'gzip', magic: Buffer.from([0x1f, 0x8b]) },
  { name: 'bzip2', magic: Buffer.from('BZh') },
  { name: 'xz', magic: Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]) },
] as const;

async function decompress(archive: string): Promise<AsyncIterable<Buffer>> {
  const head = await readHead(archive);
  if (head.subarray(0, 2).toString('latin1') === 'PK') {
    throw new ModelError(
      'BAD_ARCHIVE',
      'zip archives are not unpacked: unpack it yourself into a folder of the models',
    );
  }
  const compression = COMPRESSIONS.find(({ magic }) => head.subarray(0, magic.length).equals(magic));
  if (compression === undefined) return createReadStream(archive);
  if (compression.name === 'gzip') return gunzip(archive);
  return runDecompressor(compression.name, archive);
}

async function readHead(archive: string): Promise<Buffer> {
  await using file = await open(archive);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(8), 0, 8, 0);
  return buffer.subarray(0, bytesRead);
}

async function* gunzip(archive: string): AsyncGenerator<Buffer> {
  const source = createReadStream(archive);
  const gunzipped = createGunzip();
  source.on('error', (error) => gunzipped.destroy(error)).pipe(gunzipped);
  try {
    yield* gunzipped;
  } catch (error) {
    throw new ModelError('BAD_ARCHIVE', 'the archive is damaged', { cause: error });
  } finally {
    source.destroy();
  }
}

/** Node lacks bzip2 and xz, which every system has. */
async function* runDecompressor(program: 'bzip2' | 'xz', archive: string): AsyncGenerator<Buffer> {
  await using file = await open(archive);
  const child = spawn(program, ['-dc'], { stdio: [file.fd, 'pipe', 'ignore'] });
  const ended = new Promise<void>((resolve, reject) => {
    child.on('error', (error: NodeJS.ErrnoException) => {
      const message = `${program} is needed to unpack the model, and is not installed (Debian: apt install ${PACKAGES[program]})`;
      reject(error.code === 'ENOENT' ? new ModelError('MISSING_PROGRAM', message, { cause: error }) : error);
    });
    child.on('close', (exitCode) => {
      if (exitCode === 0) resolve();
      else reject(new ModelError('BAD_ARCHIVE', 'the archive is damaged'));
    });
  });
  // Avoids an unhandled rejection when the reader stops early.
  ended.catch(() => {});
  try {
    yield* child.stdout!;
    await ended;
  } finally {
    child.kill();
  }
}

const PACKAGES = { bzip2: 'bzip2', xz: 'xz-utils' } as const;

/** '' for the folder itself. */
function safePath({ name, kind }: TarEntry): string {
  if (kind === 'other') {
    throw new ModelError('BAD_ARCHIVE', `the archive has a link or a device in it: ${JSON.stringify(name)}`);
  }
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  const isOutside = name.startsWith('/') || parts.includes('..');
  if (isOutside || /[\0\\]/.test(name) || name.length > 4096) {
    throw new ModelError('BAD_ARCHIVE', `the archive reaches outside of its folder: ${JSON.stringify(name)}`);
  }
  return parts.join('/');
}

async function writeEntry(entry: TarEntry, path: string): Promise<{ bytes: number; sha256: string }> {
  await mkdir(dirname(path), { recursive: true });
  const hash = createHash('sha256');
  // Exclusive, so that a duplicate name cannot overwrite the first file.
  await using file = await open(path, 'wx', 0o644);
  for await (const chunk of entry.content) {
    await file.writeFile(chunk);
    hash.update(chunk);
  }
  return { bytes: entry.bytes, sha256: hash.digest('hex') };
}
