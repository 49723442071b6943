import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import path from 'node:path';
import { takeOwnership } from './embedded/owner-lock.ts';

/** What an installation keeps on its disk beside the database: who it is, its master key, and when it last lived. */
export interface DataFolder {
  readonly path: string;
  /** Stable over restarts: the owner of calls. */
  readonly node: string;
  /** New with every start. */
  readonly boot: string;
  /** The last heartbeat of the boot before this one; null on the first start. */
  readonly lastAlive: Date | null;
  /** 32 bytes: from the configuration, else made once and kept here. */
  readonly masterKey: Buffer;
  /** Where recordings grow while their call runs. */
  readonly recordingsDir: string;
  readonly objectsDir: string;
  /** For what lives as long as a request. Empty at the start, whatever a killed process left in it. */
  readonly tempDir: string;
  /** Notes every second that this boot lives. The returned function stops it. */
  beat(): () => void;
  /** Gives the folder up, so that the next owner may have it. Idempotent. */
  close(): Promise<void>;
}

const HEARTBEAT_MS = 1_000;

/**
 * Takes the folder for this process alone: a second one on it would take the first one's calls for orphans.
 * @throws TandemError `STORAGE_UNAVAILABLE` while another process owns it.
 */
export async function openDataFolder(folder: string, configuredKey?: Buffer): Promise<DataFolder> {
  const root = path.resolve(folder);
  const recordingsDir = path.join(root, 'recordings');
  const tempDir = path.join(root, 'tmp');
  const heartbeat = path.join(root, 'heartbeat');
  for (const dir of [root, recordingsDir]) await mkdir(dir, { recursive: true, mode: 0o700 });
  const ownership = await takeOwnership({ file: path.join(root, 'owner'), what: `The data folder ${root}` });
  await rm(tempDir, { recursive: true, force: true });
  await mkdir(tempDir, { mode: 0o700 });
  const lastAlive = await modifiedAt(heartbeat);
  const node = (await keptIn(path.join(root, 'node-id'), () => randomUUID())).trim();
  const masterKey = configuredKey ?? (await keptKey(path.join(root, 'secret-key')));
  return {
    path: root,
    node,
    boot: randomUUID(),
    lastAlive,
    masterKey,
    recordingsDir,
    tempDir,
    objectsDir: path.join(root, 'objects'),
    beat() {
      const touch = () => void touchFile(heartbeat).catch(() => {});
      touch();
      const timer = setInterval(touch, HEARTBEAT_MS);
      return () => clearInterval(timer);
    },
    close: () => ownership.release(),
  };
}

/** The master key that a server keeps in its folder; null if it has none, because one is configured. */
export async function readMasterKey(folder: string): Promise<Buffer | null> {
  const file = path.join(path.resolve(folder), 'secret-key');
  return (await modifiedAt(file)) === null ? null : await keptKey(file);
}

async function keptKey(file: string): Promise<Buffer> {
  const key = Buffer.from(await keptIn(file, () => randomBytes(32).toString('base64')), 'base64');
  if (key.length !== 32) throw new Error(`${file} does not hold 32 bytes in base64: restore it from a backup`);
  return key;
}

/** The file's content; made first when there is none, whole or not at all. */
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

async function touchFile(file: string): Promise<void> {
  const now = new Date();
  try {
    await utimes(file, now, now);
  } catch {
    await (await open(file, 'a', 0o600)).close();
  }
}
