import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, readFile, readlink, realpath, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { exists } from '../../runtime/exists.ts';
import { isStorageOutage, type Sql } from '../database.ts';
import { migrate } from '../migrate.ts';
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
  if (replace) await rename(path.join(dataDir, 'replaced'), path.join(dataDir, DISCARDED));
  if (key === 'restored') await placeKey(archive, dataDir);
  await placeNode(dataDir, manifest, node);
  if (replace) await discardReplaced(dataDir);
  await migrate(sql);
  return { manifest, key };
}

/** Folders of objects that `replace` deletes. */
const REPLACED = ['objects', 'recordings'] as const;
/** Folder of replaced objects once the database is loaded. */
const DISCARDED = 'replaced-discarded';

/**
 * Moves the replaced objects away until the database is loaded. All of them or none.
 * @throws BackupError `NOT_WRITTEN` for a mount point
 */
async function setAside(dataDir: string): Promise<void> {
  const aside = path.join(dataDir, 'replaced');
  const isRepeated = await exists(aside);
  await mkdir(aside, { recursive: true, mode: 0o700 });
  try {
    for (const name of REPLACED) {
      const folder = path.join(dataDir, name);
      const kept = path.join(aside, name);
      const target = await targetOf(folder);
      // An interrupted restore has written these.
      if (isRepeated && (await exists(kept))) await rm(target, { recursive: true, force: true });
      else if (target === folder && (await exists(folder))) await rename(folder, kept);
      else if (await exists(folder)) await setLinkedAside(target, kept);
      if (target !== folder) await mkdir(target, { recursive: true, mode: 0o700 });
    }
  } catch (error) {
    await returnKept(dataDir);
    throw explainMountPoint(error);
  }
}

function explainMountPoint(error: unknown): unknown {
  const { code, path: folder } = error as NodeJS.ErrnoException;
  if (code !== 'EBUSY') return error;
  const message = `${folder} is a mount point, which --replace cannot set aside. Nothing was restored. Empty it and the database, then restore without --replace.`;
  return new BackupError('NOT_WRITTEN', message, { cause: error });
}

/** A link to a folder of another disk stays, with what it leads to on that disk. */
async function setLinkedAside(target: string, kept: string): Promise<void> {
  const moved = `${target}.replaced`;
  // A restore may have been interrupted between these steps.
  await rm(kept, { force: true });
  await symlink(moved, kept);
  await rename(target, moved);
}

async function putBack(dataDir: string): Promise<void> {
  for (const name of REPLACED) await rm(await targetOf(path.join(dataDir, name)), { recursive: true, force: true });
  await returnKept(dataDir);
}

/** Moves what was set aside to its place, where nothing or an empty folder is. */
async function returnKept(dataDir: string): Promise<void> {
  const aside = path.join(dataDir, 'replaced');
  for (const name of REPLACED) {
    const kept = path.join(aside, name);
    if (await exists(kept)) await rename(await targetOf(kept), await targetOf(path.join(dataDir, name)));
  }
  await rm(aside, { recursive: true, force: true });
}

async function discardReplaced(dataDir: string): Promise<void> {
  const discarded = path.join(dataDir, DISCARDED);
  for (const name of REPLACED) {
    await rm(await targetOf(path.join(discarded, name)), { recursive: true, force: true });
  }
  await rm(discarded, { recursive: true, force: true });
}

/** The folder that a link leads to, even if it is set aside at the moment; otherwise the path itself. */
async function targetOf(folder: string): Promise<string> {
  const link = await readlink(folder).catch(() => null);
  if (link === null) return folder;
  return await realpath(folder).catch(() => path.resolve(path.dirname(folder), link));
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
  const folder = await mkdtemp(path.join(target.dataDir, 'restore-'));
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
