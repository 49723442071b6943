import { createHash, randomUUID } from 'node:crypto';
import { lstat, open, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { isDiskFull } from '../../runtime/disk-full.ts';
import { syncToDisk } from '../objects.ts';
import { BackupError, explainFullDisk, ROOM_FOR_BACKUP } from './backup-error.ts';
import { type BackupManifest, checksumsName, MANIFEST, MANIFEST_CHECKSUM } from './manifest.ts';
import { BLOCK_BYTES, encodeHeader, paddingOf } from './tar-header.ts';

/** Writes a backup to a file, which gets its final name when complete. */
export interface ArchiveWriter {
  /** @throws BackupError `OBJECT_CHANGED` if the content has another size, `NOT_WRITTEN` */
  add(file: { name: string; sizeBytes: number; content: AsyncIterable<Uint8Array> }): Promise<void>;
  addBuffer(name: string, content: Buffer): Promise<void>;
  /** Adds the manifest with the checksums of all files. Returns the archive's size. */
  finish(manifest: Omit<BackupManifest, 'checksums'>): Promise<number>;
  /** Deletes the incomplete file. Does nothing after a successful `finish`. */
  abandon(): Promise<void>;
}

/** Few enough to keep one file's checksums in memory. */
const CHECKSUMS_PER_FILE = 10_000;

/** @throws BackupError `BACKUP_EXISTS`, `NOT_WRITTEN` */
export async function createArchive(file: string, { now }: { now: Date }): Promise<ArchiveWriter> {
  await requireUnused(file);
  // Two nodes can start a backup to one folder in the same second.
  const draft = `${file}.${randomUUID()}.partial`;
  const notWritten = (cause: Error): never => {
    if (isDiskFull(cause)) throw explainFullDisk(cause, ROOM_FOR_BACKUP);
    throw new BackupError('NOT_WRITTEN', `${file} cannot be written: ${cause.message}`, { cause });
  };
  const handle = await open(draft, 'w', 0o600).catch(notWritten);
  let sizeBytes = 0;
  let isOpen = true;
  let lines: string[] = [];
  const checksums: BackupManifest['checksums'] = [];

  async function write(bytes: Uint8Array): Promise<void> {
    let rest = bytes;
    while (rest.length > 0) rest = rest.subarray((await handle.write(rest).catch(notWritten)).bytesWritten);
    sizeBytes += bytes.length;
  }

  async function writeFile(name: string, content: AsyncIterable<Uint8Array>, size: number): Promise<string> {
    await write(encodeHeader({ name, sizeBytes: size }, now));
    const hash = createHash('sha256');
    let written = 0;
    for await (const chunk of content) {
      written += chunk.length;
      if (written > size) break;
      hash.update(chunk);
      await write(chunk);
    }
    if (written !== size) {
      throw new BackupError('OBJECT_CHANGED', `${name} changed while it was read. Run the backup again.`);
    }
    await write(Buffer.alloc(paddingOf(size)));
    return hash.digest('hex');
  }

  const writeBuffer = (name: string, content: Buffer) => writeFile(name, once(content), content.length);

  async function writeChecksums(): Promise<void> {
    const name = checksumsName(checksums.length + 1);
    const sha256 = await writeBuffer(name, Buffer.from(lines.join('')));
    checksums.push({ name, sha256 });
    lines = [];
  }

  async function add(file: Parameters<ArchiveWriter['add']>[0]): Promise<void> {
    const sha256 = await writeFile(file.name, file.content, file.sizeBytes);
    lines.push(`${sha256}  ${file.name}\n`);
    if (lines.length === CHECKSUMS_PER_FILE) await writeChecksums();
  }

  async function close(): Promise<void> {
    if (isOpen) await handle.close();
    isOpen = false;
  }

  return {
    add,
    addBuffer: (name, content) => add({ name, sizeBytes: content.length, content: once(content) }),
    async finish(manifest) {
      if (lines.length > 0) await writeChecksums();
      const text = Buffer.from(`${JSON.stringify({ ...manifest, checksums }, null, 2)}\n`);
      const sha256 = await writeBuffer(MANIFEST, text);
      await writeBuffer(MANIFEST_CHECKSUM, Buffer.from(`${sha256}  ${MANIFEST}\n`));
      await write(Buffer.alloc(2 * BLOCK_BYTES));
      await handle.sync().catch(notWritten);
      await close();
      await requireUnused(file);
      await rename(draft, file);
      await syncToDisk(path.dirname(file));
      return sizeBytes;
    },
    async abandon() {
      await close();
      await rm(draft, { force: true });
    },
  };
}

async function requireUnused(file: string): Promise<void> {
  // A link counts, even one that leads nowhere: the backup would replace it.
  if ((await lstat(file).catch(() => null)) === null) return;
  throw new BackupError('BACKUP_EXISTS', `${file} exists. Choose another file name.`);
}

async function* once(content: Buffer): AsyncGenerator<Buffer> {
  yield content;
}
