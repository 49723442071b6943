import { randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { TandemError } from '../../machines/errors.ts';
import { inTransaction, type Sql } from '../database.ts';
import { createSecretBox } from '../secrets.ts';
import { type ArchiveWriter, createArchive } from './archive-writer.ts';
import { BackupError, explainFullDisk, ROOM_FOR_BACKUP } from './backup-error.ts';
import { type DatabaseDump, dumpDatabase } from './dump-database.ts';
import { type KeptObjects, keptObjectKeys } from './kept-objects.ts';
import { type BackupManifest, OBJECTS_PREFIX, SECRET_KEY } from './manifest.ts';

export interface BackUpOptions {
  sql: Sql;
  objects: Pick<KeptObjects, 'stat' | 'read'>;
  /** Path of the archive; it must not exist. */
  file: string;
  node: string | null;
  /** Master key; null if unknown here. */
  secretKey: Buffer | null;
  withKey: boolean;
  tandemVersion: string;
  now: Date;
  onProgress: (text: string) => void;
}

export interface BackedUp {
  sizeBytes: number;
  manifest: Omit<BackupManifest, 'checksums'>;
}

/**
 * Writes database and objects to one archive. The database may be written to meanwhile, because it is read in one
 * snapshot. The snapshot also decides on the objects; those deleted since count as missing.
 * @throws BackupError
 */
export async function backUp(options: BackUpOptions): Promise<BackedUp> {
  const { sql, file, secretKey, withKey, now } = options;
  if (withKey && secretKey === null) {
    throw new BackupError('SECRET_KEY_REQUIRED', 'The master key is not known here. Set TANDEM_SECRET_KEY.');
  }
  await requireMigrated(sql);
  const archive = await createArchive(file, { now });
  const keysFile = `${file}.${randomUUID()}.keys`;
  try {
    const dump = await dumpSnapshot(options, { archive, keysFile });
    const objects = await addObjects(options, { archive, keysFile });
    if (withKey) await archive.addBuffer(SECRET_KEY, Buffer.from(`${secretKey!.toString('base64')}\n`));
    const manifest = {
      format: 'tandem-backup',
      version: 1,
      created_at: now.toISOString(),
      tandem_version: options.tandemVersion,
      node: options.node,
      ...dump,
      objects,
      secret_key: { id: secretKey === null ? null : keyIdOf(secretKey), included: withKey },
    } satisfies BackedUp['manifest'];
    return { sizeBytes: await archive.finish(manifest), manifest };
  } catch (error) {
    throw explainFullDisk(error, ROOM_FOR_BACKUP);
  } finally {
    await archive.abandon();
    await rm(keysFile, { force: true });
  }
}

/** Identifies a master key without revealing it. */
export function keyIdOf(masterKey: Buffer): string {
  return createSecretBox(masterKey).currentPrefix.toString('hex');
}

async function requireMigrated(sql: Sql): Promise<void> {
  const [row] = await sql<{ found: boolean }[]>`select to_regclass('public.schema_migrations') is not null as found`;
  if (row?.found) return;
  throw new BackupError('BACKUP_NOT_FOUND', 'The database is empty. Start the server once before you back it up.');
}

/** Writes the object keys to a file, so that the snapshot ends early, because it delays the clean-up of old rows. */
async function dumpSnapshot(
  { sql, onProgress }: BackUpOptions,
  { archive, keysFile }: { archive: ArchiveWriter; keysFile: string },
): Promise<DatabaseDump> {
  return await inTransaction(sql, async (tx) => {
    await tx`set transaction isolation level repeatable read, read only`;
    // A slow disk may keep the transaction waiting.
    await tx`set local idle_in_transaction_session_timeout = 0`;
    const dump = await dumpDatabase(tx, { archive, onTable: (name) => onProgress(`database: ${name}`) });
    await pipeline(Readable.from(linesOf(keptObjectKeys(tx))), createWriteStream(keysFile, { mode: 0o600 }));
    return dump;
  });
}

async function* linesOf(keys: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const key of keys) yield `${key}\n`;
}

async function addObjects(
  { objects, onProgress }: BackUpOptions,
  { archive, keysFile }: { archive: ArchiveWriter; keysFile: string },
): Promise<BackupManifest['objects']> {
  const total = { count: 0, bytes: 0, missing: 0 };
  for await (const key of createInterface({ input: createReadStream(keysFile) })) {
    const object = await objects.stat(key);
    const content = object === null ? null : await begun(objects.read(object));
    if (object === null || content === null) {
      total.missing += 1;
      continue;
    }
    await archive.add({ name: `${OBJECTS_PREFIX}${key}`, sizeBytes: object.sizeBytes, content });
    total.count += 1;
    total.bytes += object.sizeBytes;
    onProgress(`objects: ${total.count}, ${Math.round(total.bytes / 1e6)} MB`);
  }
  return total;
}

/**
 * Reads the first chunk. Null if the object was deleted since it was found: then the archive must not have its header
 * yet.
 */
async function begun(content: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array> | null> {
  const chunks = content[Symbol.asyncIterator]();
  try {
    const first = await chunks.next();
    return first.done ? content : resumed(first.value, chunks);
  } catch (error) {
    if ((error as TandemError).code !== 'NOT_FOUND') throw error;
    return null;
  }
}

async function* resumed(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  yield* { [Symbol.asyncIterator]: () => rest };
}
