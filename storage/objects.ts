import { createReadStream } from 'node:fs';
import { copyFile, link, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { TandemError } from '../machines/errors.ts';
import { makeFolder } from '../runtime/make-folder.ts';

/** Stores files by key. A key has segments of `A-Z a-z 0-9 . _ -` joined by `/`, at most 512 characters. */
export interface ObjectStore {
  /** Whether all nodes see the same objects, as in a bucket. A folder belongs to its node. */
  readonly isShared: boolean;
  /**
   * Moves a complete file into the store. Afterwards the object survives a power cut. An object with the same key is
   * replaced atomically.
   */
  putFile(options: { key: string; sourcePath: string }): Promise<ObjectStat>;
  stat(key: string): Promise<ObjectStat | null>;
  /**
   * Reads bytes `start` to `end`, both included; default all. Destroying the stream closes the file.
   * @throws TandemError `NOT_FOUND`
   */
  read(options: { key: string; start?: number; end?: number }): Promise<Readable>;
  /**
   * Provides the object's content at a path. Do not write to it, because it may be a hard link to the object's file.
   * @throws TandemError `NOT_FOUND`
   */
  copyTo(options: { key: string; targetPath: string }): Promise<void>;
  /** Idempotent. */
  delete(key: string): Promise<void>;
  /**
   * Presigned URL, valid until `expiresAt`. Null: the object is on this server's disk; sign a URL of this server
   * instead.
   */
  presign(options: { key: string; now: Date; expiresAt: Date }): Promise<string | null>;
  /** The next start continues background work. */
  close(): Promise<void>;
}

export interface ObjectStat {
  key: string;
  sizeBytes: number;
  modifiedAt: Date;
}

/** By file extension. */
export const CONTENT_TYPES: Readonly<Record<string, string>> = {
  wav: 'audio/wav',
  mp3: 'audio/mpeg',
  ogg: 'audio/ogg',
  json: 'application/json',
};

/** Key suffix of encrypted objects, after the extension of their plaintext. Only this server can play these. */
export const SEALED_EXTENSION = '.sealed';

export function isSealedKey(key: string): boolean {
  return key.endsWith(SEALED_EXTENSION);
}

/** Response headers of an object, from this server or an S3 store. */
export function presentationOf(key: string): { contentType: string; contentDisposition: string } {
  const name = key.split('/').at(-1)!;
  const plainName = isSealedKey(name) ? name.slice(0, -SEALED_EXTENSION.length) : name;
  return {
    contentType: CONTENT_TYPES[plainName.split('.').at(-1)!] ?? 'application/octet-stream',
    contentDisposition: `inline; filename="${plainName}"`,
  };
}

const SEGMENT = /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/;
const MAX_KEY_LENGTH = 512;

/** Opens a store in a folder. Creates a missing folder (mode 0700). */
export async function openObjectStore({ folder }: { folder: string }): Promise<ObjectStore> {
  const root = path.resolve(folder);
  await makeFolder(root);

  async function statOf(key: string): Promise<ObjectStat | null> {
    try {
      const info = await stat(objectPath(root, key));
      return info.isFile() ? { key, sizeBytes: info.size, modifiedAt: info.mtime } : null;
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  return {
    isShared: false,
    stat: statOf,

    async putFile({ key, sourcePath }) {
      const target = objectPath(root, key);
      await makeDurableFolder(root, path.dirname(target));
      await syncToDisk(sourcePath);
      try {
        await rename(sourcePath, target);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
        await copyAcross(sourcePath, target);
      }
      await syncToDisk(path.dirname(target));
      return (await statOf(key))!;
    },

    async read({ key, start, end }) {
      const file = objectPath(root, key);
      const handle = await open(file, 'r').catch((error: unknown) => {
        throw isMissing(error) ? new TandemError('NOT_FOUND', 'Object not found.') : error;
      });
      return createReadStream(file, { fd: handle, start, end });
    },

    async copyTo({ key, targetPath }) {
      const file = objectPath(root, key);
      try {
        await link(file, targetPath).catch(() => copyFile(file, targetPath));
      } catch (error) {
        throw isMissing(error) ? new TandemError('NOT_FOUND', 'Object not found.') : error;
      }
    },

    async delete(key) {
      await rm(objectPath(root, key), { force: true });
    },

    async presign({ key }) {
      requireObjectKey(key);
      return null;
    },

    async close() {},
  };
}

export function isKeySegment(text: string): boolean {
  return SEGMENT.test(text);
}

/** @throws TandemError `NOT_FOUND` for an invalid key, so that nothing outside the folder is accessible */
export function requireObjectKey(key: string): void {
  const valid = key.length <= MAX_KEY_LENGTH && key.split('/').every(isKeySegment);
  if (!valid) throw new TandemError('NOT_FOUND', 'Object not found.');
}

/** @throws TandemError `NOT_FOUND` */
export function objectPath(root: string, key: string): string {
  requireObjectKey(key);
  return path.join(root, key);
}

/** Copies next to the target, then renames, because a rename cannot cross file systems. */
async function copyAcross(sourcePath: string, target: string): Promise<void> {
  const temporary = path.join(path.dirname(target), `.${path.basename(target)}.partial`);
  try {
    await copyFile(sourcePath, temporary);
    await syncToDisk(temporary);
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await rm(sourcePath, { force: true });
}

/** Creates missing folders and syncs the parents of new ones. */
export async function makeDurableFolder(root: string, folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let parent = path.dirname(folder); parent.startsWith(path.dirname(first)); parent = path.dirname(parent)) {
    await syncToDisk(parent);
    if (parent === root) break;
  }
}

export async function syncToDisk(target: string): Promise<void> {
  const handle = await open(target, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ENOTDIR';
}
