import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { TandemError } from '../machines/errors.ts';
import { makeFolder } from '../runtime/make-folder.ts';
import { takeOwnership } from './embedded/owner-lock.ts';

/** Files of a server besides the database: its identity, master key, recordings and objects. */
export interface DataFolder {
  readonly path: string;
  /** Id of this node, stable over restarts. It owns calls. */
  readonly node: string;
  /** Id of this start. */
  readonly boot: string;
  /** 32 bytes: from the configuration, or generated once and stored here. */
  readonly masterKey: Buffer;
  /** Folder of recordings of live calls. */
  readonly recordingsDir: string;
  readonly objectsDir: string;
  /** For files of single requests. Emptied at the start. */
  readonly tempDir: string;
  close(): Promise<void>;
}

/**
 * Opens the folder for this process alone. A second process would take the first one's calls for orphans.
 * @throws TandemError `STORAGE_UNAVAILABLE` while another process owns it, or if this user cannot write it
 */
export async function openDataFolder(folder: string, configuredKey?: Buffer): Promise<DataFolder> {
  const root = path.resolve(folder);
  const recordingsDir = path.join(root, 'recordings');
  const tempDir = path.join(root, 'tmp');
  const own = async () => {
    for (const dir of [root, recordingsDir]) await makeFolder(dir);
    return await takeOwnership({ file: path.join(root, 'owner'), what: `The data folder ${root}` });
  };
  const ownership = await own().catch((cause: Error) => {
    throw cause instanceof TandemError ? cause : unusableFolder(root, cause);
  });
  await rm(tempDir, { recursive: true, force: true });
  await mkdir(tempDir, { mode: 0o700 });
  const node = (await keptIn(path.join(root, NODE_ID), () => randomUUID())).trim();
  const masterKey = configuredKey ?? (await keptKey(path.join(root, 'secret-key')));
  return {
    path: root,
    node,
    boot: randomUUID(),
    masterKey,
    recordingsDir,
    tempDir,
    objectsDir: path.join(root, 'objects'),
    close: () => ownership.release(),
  };
}

export function unusableFolder(folder: string, cause: Error): TandemError {
  const message = `The data folder ${folder} cannot be used (${cause.message}). Set TANDEM_DATA_DIR to a folder that this user can write.`;
  return new TandemError('STORAGE_UNAVAILABLE', message, { cause });
}

const NODE_ID = 'node-id';

/** Whether this process can use another node's recordings folder: on the same machine, or on a shared file system. */
export async function canReachRecordingsOf({
  node,
  recordingsDir,
}: {
  node: string;
  recordingsDir: string;
}): Promise<boolean> {
  const id = await readFile(path.join(recordingsDir, '..', NODE_ID), 'utf8').catch(() => null);
  return id?.trim() === node;
}

/** Reads the master key stored in the folder; null if it has none, because one is configured. */
export async function readMasterKey(folder: string): Promise<Buffer | null> {
  const file = path.join(path.resolve(folder), 'secret-key');
  return (await modifiedAt(file)) === null ? null : await keptKey(file);
}

async function keptKey(file: string): Promise<Buffer> {
  const key = Buffer.from(await keptIn(file, () => randomBytes(32).toString('base64')), 'base64');
  if (key.length !== 32) throw new Error(`${file} does not hold 32 bytes in base64: restore it from a backup`);
  return key;
}

/** Returns the file's content. Creates a missing file atomically. */
async function keptIn(file: string, make: () => string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const content = make();
  const unfinished = `${file}.${process.pid}`;
  const handle = await open(unfinished, 'w', 0o600);
  await handle.writeFile(`${content}\n`);
  await handle.sync();
  await handle.close();
  await rename(unfinished, file);
  return content;
}

async function modifiedAt(file: string): Promise<Date | null> {
  return await stat(file).then(
    ({ mtime }) => mtime,
    () => null,
  );
}
