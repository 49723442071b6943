import { createWriteStream } from 'node:fs';
import { lstat, mkdir, readdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { exists } from '../../runtime/exists.ts';
import { isStorageOutage, type Sql } from '../database.ts';
import { migrate } from '../migrate.ts';
import { isKeySegment } from '../objects.ts';
import { PENDING_DELETIONS } from '../s3/deletion-list.ts';
import { type ArchiveReader, openArchive, readWhole, verifyArchive } from './archive-reader.ts';
import { keyIdOf } from './back-up.ts';
import { BackupError, explainFullDisk, explainOutage, ROOM_FOR_RESTORE } from './backup-error.ts';
import type { KeptObjects } from './kept-objects.ts';
import { hasRows, loadDatabase, requireKnownMigrations, requireKnownTarget } from './load-database.ts';
import { type BackupManifest, OBJECTS_PREFIX, SECRET_KEY } from './manifest.ts';

export interface RestoreOptions {
  file: string;
  /** Called once the backup is verified. */
  openTarget: () => Promise<RestoreTarget>;
  /** Deletes the target's existing data. */
  replace: boolean;
  /** Restores even without the master key. */
  withoutKey: boolean;
  newNode: () => string;
  onProgress: (text: string) => void;
}

export interface RestoreTarget extends AsyncDisposable {
  sql: Sql;
  objects: Pick<KeptObjects, 'put'>;
  /** Exists; no other process uses it. */
  dataDir: string;
  /** `TANDEM_SECRET_KEY`; null if the key is stored in the folder. */
  configuredKey: Buffer | null;
  previousKeys: readonly Buffer[];
  /** Why the database has ended all connections, in the words of its log; null if unknown here. */
  databaseCrash(): Promise<string | null>;
}

export interface Restored {
  manifest: BackupManifest;
  key: 'restored' | 'present' | 'missing';
}

/**
 * Verifies the whole backup, then restores the objects, then the database in one transaction, then master key and node.
 * Writes nothing before it is verified. If the restore fails before the database is committed, replaced objects return,
 * and database, key and node are unchanged. An interrupted restore can be repeated.
 * @throws BackupError
 */
export async function restore(options: RestoreOptions): Promise<Restored> {
  const { file, replace, onProgress } = options;
  await using archive = await openArchive(file);
  const percent = (bytes: number) => onProgress(`verifying: ${Math.floor((100 * bytes) / archive.sizeBytes)} %`);
  const manifest = await verifyArchive(archive, percent);
  await requireKnownMigrations(manifest);
  await using target = await options.openTarget();
  const { sql, dataDir } = target;
  await requireKnownTarget(sql);
  if (!replace && (await hasRows(sql))) {
    throw new BackupError('TARGET_NOT_EMPTY', 'The database is not empty. To delete what it has, add --replace.');
  }
  const key = await decideKey(options, { manifest, target });
  const node = (await nodeOf(dataDir)) ?? manifest.node ?? options.newNode();
  if (replace) {
    // An interrupted restore may have left them.
    await discardReplaced(dataDir);
    await setAside(dataDir);
  }
  try {
    await restoreObjects(options, { archive, target, total: manifest.objects.count });
    await loadDatabase(sql, { archive, manifest, node, onTable: (name) => onProgress(`database: ${name}`) }).catch(
      async (error: unknown) => {
        throw isStorageOutage(error) ? explainOutage(error, await target.databaseCrash()) : error;
      },
    );
  } catch (error) {
    if (replace) await putBack(dataDir);
    throw explainFullDisk(error, ROOM_FOR_RESTORE);
  }
  // A later restore must not take them for the objects of its own database.
  if (replace) await rename(path.join(dataDir, SET_ASIDE), path.join(dataDir, DISCARDED));
  if (key === 'restored') await placeKey(archive, dataDir);
  await placeNode(dataDir, manifest, node);
  if (replace) await discardReplaced(dataDir);
  await migrate(sql);
  return { manifest, key };
}

/** Folders whose objects `replace` deletes. They can be links or mount points. */
const foldersIn = (dataDir: string) => ['objects', 'recordings'].map((name) => path.join(dataDir, name));
/** Subfolder for replaced objects, on the disk of its folder. No object has this name. */
const ASIDE = '.replaced';
/** File in the data folder while all replaced objects are set aside. */
const SET_ASIDE = 'objects-set-aside';
/** File in the data folder once the database is loaded, until the objects set aside are deleted. */
const DISCARDED = 'objects-discarded';

/**
 * Moves the replaced objects away until the database is loaded. All of them or none.
 * @throws BackupError `NOT_WRITTEN` for a link or mount point among them
 */
async function setAside(dataDir: string): Promise<void> {
  const marker = path.join(dataDir, SET_ASIDE);
  // An interrupted restore has written the other objects.
  if (await exists(marker)) return await deleteObjects(dataDir);
  try {
    for (const folder of foldersIn(dataDir)) {
      for (const name of await objectsIn(folder)) await moveAside(folder, name);
    }
    await writeFile(marker, '', { mode: 0o600 });
  } catch (error) {
    await returnObjects(dataDir);
    throw error;
  }
}

async function moveAside(folder: string, name: string): Promise<void> {
  const place = path.join(folder, name);
  const refusal = `${place} is a link or mount point, which --replace cannot set aside. Nothing was restored. Empty it and the database, then restore without --replace.`;
  if ((await lstat(place)).isSymbolicLink()) throw new BackupError('NOT_WRITTEN', refusal);
  await mkdir(path.join(folder, ASIDE), { recursive: true, mode: 0o700 });
  await rename(place, path.join(folder, ASIDE, name)).catch((cause: NodeJS.ErrnoException) => {
    throw cause.code === 'EBUSY' ? new BackupError('NOT_WRITTEN', refusal, { cause }) : cause;
  });
}

async function putBack(dataDir: string): Promise<void> {
  await deleteObjects(dataDir);
  await returnObjects(dataDir);
}

async function deleteObjects(dataDir: string): Promise<void> {
  for (const folder of foldersIn(dataDir)) {
    for (const name of await objectsIn(folder)) await rm(path.join(folder, name), { recursive: true, force: true });
  }
}

/** The marker goes first: objects that have returned are not those of an interrupted restore. */
async function returnObjects(dataDir: string): Promise<void> {
  await rm(path.join(dataDir, SET_ASIDE), { force: true });
  for (const folder of foldersIn(dataDir)) {
    const aside = path.join(folder, ASIDE);
    for (const name of await objectsIn(aside)) await rename(path.join(aside, name), path.join(folder, name));
    await rm(aside, { recursive: true, force: true });
  }
}

async function discardReplaced(dataDir: string): Promise<void> {
  const marker = path.join(dataDir, DISCARDED);
  if (!(await exists(marker))) return;
  for (const folder of foldersIn(dataDir)) await rm(path.join(folder, ASIDE), { recursive: true, force: true });
  await rm(marker);
}

/** Objects and their pending deletions, but not `lost+found` of a disk. */
async function objectsIn(folder: string): Promise<string[]> {
  const names = (await exists(folder)) ? await readdir(folder) : [];
  return names.filter((name) => name === PENDING_DELETIONS || isKeySegment(name));
}

interface Restoring {
  archive: ArchiveReader;
  manifest: BackupManifest;
  target: RestoreTarget;
}

/** @throws BackupError `SECRET_KEY_REQUIRED`, `SECRET_KEY_DIFFERS` */
async function decideKey(
  { replace, withoutKey }: RestoreOptions,
  { manifest, target }: Pick<Restoring, 'manifest' | 'target'>,
): Promise<Restored['key']> {
  const { id, included } = manifest.secret_key;
  const keyFile = keyFileOf(target.dataDir);
  const kept = await readFile(keyFile, 'utf8').catch(() => null);
  const present = target.configuredKey ?? (kept === null ? null : Buffer.from(kept, 'base64'));
  const known = [...(present === null ? [] : [present]), ...target.previousKeys];
  if (id === null || known.some((each) => each.length === 32 && keyIdOf(each) === id)) return 'present';
  if (included && target.configuredKey === null && (kept === null || replace)) return 'restored';
  if (withoutKey) return 'missing';
  if (present === null) {
    throw new BackupError(
      'SECRET_KEY_REQUIRED',
      `The backup does not contain the master key. Copy the file secret-key of the old data folder to ${keyFile}, or set TANDEM_SECRET_KEY. Without the key, trunk passwords, callback and webhook secrets are lost: --without-key.`,
    );
  }
  const place = target.configuredKey === null ? keyFile : 'TANDEM_SECRET_KEY';
  throw new BackupError(
    'SECRET_KEY_DIFFERS',
    `${place} is not the master key of the backup. Replace it by the right one, or add that to TANDEM_SECRET_KEY_PREVIOUS.`,
  );
}

function keyFileOf(dataDir: string): string {
  return path.join(dataDir, 'secret-key');
}

async function placeKey(archive: ArchiveReader, dataDir: string): Promise<void> {
  for await (const file of archive.entries()) {
    if (file.name === SECRET_KEY) await writeFile(keyFileOf(dataDir), await readWhole(archive, file), { mode: 0o600 });
  }
}

async function restoreObjects(
  { onProgress }: RestoreOptions,
  { archive, target, total }: Pick<Restoring, 'archive' | 'target'> & { total: number },
): Promise<void> {
  const folder = path.join(target.dataDir, 'restore');
  // An interrupted restore may have left it.
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { mode: 0o700 });
  try {
    let count = 0;
    for await (const file of archive.entries()) {
      if (!file.name.startsWith(OBJECTS_PREFIX)) continue;
      count += 1;
      onProgress(`objects: ${count} of ${total}`);
      const sourcePath = path.join(folder, String(count));
      const content = file.sizeBytes === 0 ? Readable.from([]) : archive.read(file);
      await pipeline(content, createWriteStream(sourcePath, { mode: 0o600 }));
      await target.objects.put({ key: file.name.slice(OBJECTS_PREFIX.length), sourcePath });
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Gives a new folder the node of the backup. Its next start settles that node's calls; those that were live end at the
 * time of the backup. A folder that has a node keeps it.
 */
async function placeNode(dataDir: string, { created_at }: BackupManifest, node: string): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const heartbeat = path.join(dataDir, 'heartbeat');
  const alive = new Date(created_at);
  await writeFile(heartbeat, '', { mode: 0o600 });
  await utimes(heartbeat, alive, alive);
  if ((await nodeOf(dataDir)) === null) await writeFile(path.join(dataDir, 'node-id'), `${node}\n`, { mode: 0o600 });
}

/** Null for a new folder. */
async function nodeOf(dataDir: string): Promise<string | null> {
  const kept = await readFile(path.join(dataDir, 'node-id'), 'utf8').catch(() => null);
  return kept?.trim() ?? null;
}
