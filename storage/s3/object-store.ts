import { createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { TandemError } from '../../machines/errors.ts';
import type { StorageLogger } from '../database.ts';
import { type ObjectStore, objectPath, openObjectStore, requireObjectKey } from '../objects.ts';
import type { Bucket } from './bucket.ts';
import { openDeletionList } from './deletion-list.ts';
import { filesBelow } from './files-below.ts';
import { createTransfers } from './transfers.ts';

export interface S3ObjectStoreOptions {
  /** Holds each object until the bucket has acknowledged it. */
  folder: string;
  bucket: Bucket;
  logger: StorageLogger;
  /** Delay after a transfer's first failure; doubles up to a minute. Default 1 000. */
  firstRetryMs?: number;
}

export interface S3ObjectStore extends ObjectStore {
  /** Resolves when the bucket matches the folder. */
  settled(): Promise<void>;
}

/**
 * Stores objects in an S3 bucket through a folder. A file stays in the folder until the bucket has acknowledged it. A
 * deletion stays listed there until the bucket has carried it out. So no request waits for the store, and nothing is
 * lost while it is down. The next start transfers everything left in the folder, including objects from before S3.
 */
export async function openS3ObjectStore(options: S3ObjectStoreOptions): Promise<S3ObjectStore> {
  const { folder, bucket, logger, firstRetryMs } = options;
  const local = await openObjectStore({ folder });
  const deletions = await openDeletionList(folder);
  const locks = createKeyLocks();
  const transfers = createTransfers({ transfer, logger, firstRetryMs });

  /** Updates one key of the bucket to match the folder. */
  async function transfer(key: string, signal: AbortSignal): Promise<void> {
    if (deletions.has(key)) {
      await bucket.delete(key);
      await locks.run(key, () => deletions.remove(key));
    }
    const sourcePath = objectPath(folder, key);
    const before = await identityOf(sourcePath);
    if (before === null) return;
    await bucket.upload({ key, sourcePath, sizeBytes: before.sizeBytes, signal });
    await locks.run(key, async () => {
      // A replaced file has its own transfer.
      const now = await identityOf(sourcePath);
      if (now?.version === before.version && !deletions.has(key)) await rm(sourcePath, { force: true });
    });
  }

  for (const key of [...deletions.keys(), ...(await filesBelow(folder))]) transfers.add(key);

  return {
    isShared: true,

    async putFile({ key, sourcePath }) {
      requireObjectKey(key);
      return await locks.run(key, async () => {
        await deletions.remove(key);
        const stored = await local.putFile({ key, sourcePath });
        transfers.add(key);
        return stored;
      });
    },

    async stat(key) {
      requireObjectKey(key);
      if (deletions.has(key)) return null;
      return (await local.stat(key)) ?? (await bucket.stat(key));
    },

    async read({ key, start, end }) {
      requireObjectKey(key);
      if (deletions.has(key)) throw new TandemError('NOT_FOUND', 'Object not found.');
      try {
        return await local.read({ key, start, end });
      } catch (error) {
        if ((error as TandemError).code !== 'NOT_FOUND') throw error;
        return await bucket.read({ key, start, end });
      }
    },

    async copyTo({ key, targetPath }) {
      requireObjectKey(key);
      if (deletions.has(key)) throw new TandemError('NOT_FOUND', 'Object not found.');
      try {
        await local.copyTo({ key, targetPath });
      } catch (error) {
        if ((error as TandemError).code !== 'NOT_FOUND') throw error;
        await pipeline(await bucket.read({ key }), createWriteStream(targetPath, { mode: 0o600 }));
      }
    },

    async delete(key) {
      requireObjectKey(key);
      await locks.run(key, async () => {
        await deletions.add(key);
        await local.delete(key);
        transfers.add(key);
        transfers.cancel(key);
      });
    },

    async presign({ key, now, expiresAt }) {
      requireObjectKey(key);
      if (deletions.has(key) || (await local.stat(key)) !== null) return null;
      return await bucket.presign({ key, now, expiresAt });
    },

    settled: () => transfers.settled(),

    async close() {
      const ended = transfers.close();
      bucket.close();
      await ended;
    },
  };
}

async function identityOf(path: string): Promise<{ sizeBytes: number; version: string } | null> {
  try {
    const { size, ino, mtimeMs, ctimeMs } = await stat(path);
    return { sizeBytes: size, version: [ino, size, mtimeMs, ctimeMs].join() };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

function createKeyLocks(): { run<Result>(key: string, work: () => Promise<Result>): Promise<Result> } {
  const last = new Map<string, Promise<unknown>>();
  return {
    async run(key, work) {
      const done = (last.get(key) ?? Promise.resolve()).then(work);
      const settled = done.catch(() => undefined);
      last.set(key, settled);
      try {
        return await done;
      } finally {
        if (last.get(key) === settled) last.delete(key);
      }
    },
  };
}
