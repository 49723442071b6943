import { mkdir, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makeDurableFolder, syncToDisk } from '../objects.ts';
import { filesBelow } from './files-below.ts';

/** Keys of objects that must still be deleted from the bucket. The list survives a power cut. */
export interface DeletionList {
  has(key: string): boolean;
  keys(): string[];
  add(key: string): Promise<void>;
  /** Idempotent. */
  remove(key: string): Promise<void>;
}

/** Subfolder of the objects' folder. No object can have this name. */
export const PENDING_DELETIONS = '.deleted';

export async function openDeletionList(objectsFolder: string): Promise<DeletionList> {
  const folder = join(objectsFolder, PENDING_DELETIONS);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const noted = new Set(await filesBelow(folder));
  return {
    has: (key) => noted.has(key),
    keys: () => [...noted],
    async add(key) {
      const path = join(folder, key);
      await makeDurableFolder(folder, dirname(path));
      await (await open(path, 'a', 0o600)).close();
      await syncToDisk(dirname(path));
      noted.add(key);
    },
    async remove(key) {
      if (!noted.has(key)) return;
      await rm(join(folder, key), { force: true });
      await syncToDisk(dirname(join(folder, key)));
      noted.delete(key);
    },
  };
}
