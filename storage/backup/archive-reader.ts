import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { BackupError } from './backup-error.ts';
import { type BackupManifest, CHECKSUMS, MANIFEST, MANIFEST_CHECKSUM } from './manifest.ts';
import { BLOCK_BYTES, decodeHeader, paddingOf, type TarEntry } from './tar-header.ts';

export interface ArchiveReader extends AsyncDisposable {
  readonly sizeBytes: number;
  /** All files in order. @throws BackupError `BACKUP_DAMAGED` */
  entries(): AsyncIterable<ArchivedFile>;
  read(file: ArchivedFile): Readable;
}

export interface ArchivedFile extends TarEntry {
  offset: number;
}

/** @throws BackupError `BACKUP_NOT_FOUND` */
export async function openArchive(file: string): Promise<ArchiveReader> {
  const handle = await open(file, 'r').catch((cause: unknown) => {
    throw new BackupError('BACKUP_NOT_FOUND', `${file} cannot be read: ${(cause as Error).message}`, { cause });
  });
  const status = await handle.stat();
  if (!status.isFile()) {
    await handle.close();
    throw new BackupError('BACKUP_NOT_FOUND', `${file} is not a file.`);
  }
  const sizeBytes = status.size;
  return {
    sizeBytes,
    entries: () => entriesOf(handle, sizeBytes),
    read: ({ offset, sizeBytes: length }) =>
      createReadStream(file, { start: offset, end: offset + length - 1, highWaterMark: 1 << 18 }),
    [Symbol.asyncDispose]: () => handle.close(),
  };
}

async function* entriesOf(handle: FileHandle, sizeBytes: number): AsyncGenerator<ArchivedFile> {
  for (let offset = 0; ; ) {
    const header = await bytesAt(handle, offset, BLOCK_BYTES);
    if (isEmpty(header)) {
      const end = await bytesAt(handle, offset + BLOCK_BYTES, BLOCK_BYTES);
      if (!isEmpty(end) || offset + 2 * BLOCK_BYTES !== sizeBytes) throw damaged('it has bytes after its end');
      return;
    }
    const entry = decodeHeader(header);
    if (entry === null) throw damaged(`the header at byte ${offset} is invalid`);
    offset += BLOCK_BYTES;
    yield { ...entry, offset };
    const padding = await bytesAt(handle, offset + entry.sizeBytes, paddingOf(entry.sizeBytes));
    if (!isEmpty(padding)) throw damaged(`it has bytes between ${entry.name} and the next file`);
    offset += entry.sizeBytes + padding.length;
  }
}

/** @throws BackupError if the file ends early */
async function bytesAt(handle: FileHandle, offset: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  const { bytesRead } = length === 0 ? { bytesRead: 0 } : await handle.read(bytes, 0, length, offset);
  if (bytesRead < length) throw damaged('it is cut off');
  return bytes;
}

function isEmpty(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0);
}

/**
 * Reads the whole backup and compares every file with its checksum. Keeps only the checksums since the last list in
 * memory.
 * @throws BackupError `BACKUP_DAMAGED`, `BACKUP_TOO_NEW`
 */
export async function verifyArchive(
  archive: ArchiveReader,
  onProgress: (bytes: number) => void,
): Promise<BackupManifest> {
  let pending: string[] = [];
  const checksums: BackupManifest['checksums'] = [];
  let manifest: { text: string; sha256: string } | null = null;
  let isComplete = false;
  for await (const file of archive.entries()) {
    onProgress(file.offset);
    if (isComplete) throw damaged(`${file.name} stands after its manifest`);
    if (file.name === MANIFEST) {
      manifest = await readText(archive, file);
    } else if (file.name === MANIFEST_CHECKSUM) {
      const { text } = await readText(archive, file);
      if (manifest === null || text !== `${manifest.sha256}  ${MANIFEST}\n`) throw damaged(`${MANIFEST} was changed`);
      isComplete = true;
    } else if (CHECKSUMS.test(file.name)) {
      const { text, sha256 } = await readText(archive, file);
      requireSame(text.split(/(?<=\n)/), pending, file.name);
      checksums.push({ name: file.name, sha256 });
      pending = [];
    } else {
      pending.push(`${await sha256Of(archive, file)}  ${file.name}\n`);
    }
  }
  if (manifest === null || !isComplete) throw damaged('its manifest is missing');
  const parsed = parse(manifest.text);
  if (pending.length > 0 || JSON.stringify(parsed.checksums) !== JSON.stringify(checksums)) {
    throw damaged('its lists of checksums do not match its manifest');
  }
  return parsed;
}

export function damaged(reason: string): BackupError {
  return new BackupError('BACKUP_DAMAGED', `The backup is damaged: ${reason}. Nothing was restored.`);
}

function requireSame(listed: readonly string[], found: readonly string[], list: string): void {
  for (let index = 0; index < Math.max(listed.length, found.length); index += 1) {
    if (listed[index] === found[index]) continue;
    const line = found[index] ?? listed[index] ?? '';
    throw damaged(`${line.slice(66).trim() || list} does not match its checksum in ${list}`);
  }
}

function parse(text: string): BackupManifest {
  const manifest = JSON.parse(text) as BackupManifest;
  if (manifest.format !== 'tandem-backup') throw damaged('it is not a backup of Tandem');
  if (manifest.version !== 1) {
    throw new BackupError(
      'BACKUP_TOO_NEW',
      'A newer version of Tandem wrote the backup. Restore it with that version.',
    );
  }
  return manifest;
}

async function sha256Of(archive: ArchiveReader, file: ArchivedFile): Promise<string> {
  const hash = createHash('sha256');
  if (file.sizeBytes > 0) for await (const chunk of archive.read(file)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** Reads the manifest or a list of checksums, which are small. */
async function readText(archive: ArchiveReader, file: ArchivedFile): Promise<{ text: string; sha256: string }> {
  if (file.sizeBytes > MOST_TEXT_BYTES) throw damaged(`${file.name} is too long`);
  const bytes = await readWhole(archive, file);
  return { text: bytes.toString(), sha256: createHash('sha256').update(bytes).digest('hex') };
}

export async function readWhole(archive: ArchiveReader, file: ArchivedFile): Promise<Buffer> {
  const chunks: Buffer[] = [];
  if (file.sizeBytes > 0) for await (const chunk of archive.read(file)) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

const MOST_TEXT_BYTES = 64 * 1024 * 1024;
