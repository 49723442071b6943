import { createWriteStream } from 'node:fs';
import { access, mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { WAV_HEADER_BYTES } from '../../media/wav.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { ObjectStore } from '../../storage/objects.ts';

/**
 * Keeps samples for cloning engines as local files, because the object store may be remote. Copies last as long as the
 * process. After their voice is deleted they stay for a while, for texts in progress.
 */
export interface ReferenceFiles {
  /** @throws TandemError `NOT_FOUND` when the store has no such object */
  pathOf(voiceId: string, objectKey: string): Promise<string>;
  drop(voiceId: string): void;
  close(): void;
}

/** Longer than the longest text takes. */
const KEPT_MS = 20 * 60_000;

export function createReferenceFiles({
  objects,
  folder,
  clock,
}: {
  objects: Pick<ObjectStore, 'read'>;
  folder: string;
  clock: Clock;
}): ReferenceFiles {
  const copying = new Map<string, Promise<string>>();
  const timers = new Set<unknown>();
  let copies = 0;

  async function copy(path: string, objectKey: string): Promise<string> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const unfinished = `${path}.${copies++}`;
    try {
      await copyReference(objects, { objectKey, path: unfinished });
      await rename(unfinished, path);
    } catch (error) {
      await rm(unfinished, { force: true });
      throw error;
    }
    return path;
  }

  const fileOf = (voiceId: string) => join(folder, `${voiceId}.wav`);

  return {
    async pathOf(voiceId, objectKey) {
      const path = fileOf(voiceId);
      const isThere = await access(path).then(
        () => true,
        () => false,
      );
      if (isThere) return path;
      const running = copying.get(voiceId) ?? copy(path, objectKey).finally(() => copying.delete(voiceId));
      copying.set(voiceId, running);
      return await running;
    },

    drop(voiceId) {
      const timer = clock.setTimeout(() => {
        timers.delete(timer);
        void rm(fileOf(voiceId), { force: true });
      }, KEPT_MS);
      timers.add(timer);
    },

    close() {
      for (const timer of timers) clock.clearTimeout(timer);
    },
  };
}

/**
 * Copies the start of a sample, as much as engines clone from, to a new file. Longer audio would only take time.
 * @throws TandemError `NOT_FOUND`; the signal's reason
 */
export async function copyReference(
  objects: Pick<ObjectStore, 'read'>,
  { objectKey, path, signal }: { objectKey: string; path: string; signal?: AbortSignal },
): Promise<void> {
  const header = await buffer(await objects.read({ key: objectKey, start: 0, end: WAV_HEADER_BYTES - 1 }));
  const end = WAV_HEADER_BYTES + header.readUInt32LE(BYTE_RATE_AT) * MOST_REFERENCE_S - 1;
  const sample = await objects.read({ key: objectKey, start: 0, end });
  await pipeline(sample, createWriteStream(path, { flags: 'wx', mode: 0o600 }), { signal });
}

const MOST_REFERENCE_S = 20;
/** Offset in the header of our WAV files. */
const BYTE_RATE_AT = 28;
