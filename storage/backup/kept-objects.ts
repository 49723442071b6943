import { rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import type { TandemError } from '../../machines/errors.ts';
import type { SqlOrTx } from '../database.ts';
import { type ObjectStat, objectPath, openObjectStore } from '../objects.ts';
import type { Bucket } from '../s3/bucket.ts';
import { bucketSettingsOf, type S3Config } from '../s3/bucket-settings.ts';
import { PENDING_DELETIONS } from '../s3/deletion-list.ts';

/**
 * Objects of a server, for a tool that runs beside it. Unlike `openObjects` it starts no transfers. It reads objects
 * that are not yet in the bucket from the folder.
 */
export interface KeptObjects extends AsyncDisposable {
  stat(key: string): Promise<ObjectStat | null>;
  /** Reads an object; resumes after a failed read. @throws TandemError */
  read(object: ObjectStat): AsyncIterable<Uint8Array>;
  /** Moves the file into the bucket or the folder. @throws TandemError */
  put(options: { key: string; sourcePath: string }): Promise<void>;
}

const READ_ATTEMPTS = 4;

export async function openKeptObjects(config: S3Config, { folder }: { folder: string }): Promise<KeptObjects> {
  const local = await openObjectStore({ folder });
  const bucket = await openConfiguredBucket(config);

  const statOf = async (key: string) => (await local.stat(key)) ?? (await bucket?.stat(key)) ?? null;

  /** Reads from the folder if the object is there, which may change at any moment. */
  async function readFrom(key: string, start: number): Promise<Readable> {
    try {
      return await local.read({ key, start });
    } catch (error) {
      if (bucket === null || (error as TandemError).code !== 'NOT_FOUND') throw error;
      return await bucket.read({ key, start });
    }
  }

  return {
    stat: statOf,

    async *read({ key, sizeBytes }) {
      let position = 0;
      for (let attempt = 1; position < sizeBytes; attempt += 1) {
        try {
          for await (const chunk of await readFrom(key, position)) {
            position += (chunk as Buffer).length;
            yield chunk as Buffer;
          }
          return;
        } catch (error) {
          if (attempt === READ_ATTEMPTS || (error as TandemError).code === 'NOT_FOUND') throw error;
        }
      }
    },

    async put({ key, sourcePath }) {
      if (bucket === null) {
        await local.putFile({ key, sourcePath });
        return;
      }
      const { size: sizeBytes } = await stat(sourcePath);
      await bucket.upload({ key, sourcePath, sizeBytes, signal: new AbortController().signal });
      await rm(sourcePath, { force: true });
      // An older local object would take precedence.
      await rm(objectPath(folder, key), { force: true });
      // The next start would carry out a pending deletion.
      await rm(path.join(folder, PENDING_DELETIONS, key), { force: true });
    },

    async [Symbol.asyncDispose]() {
      bucket?.close();
      await local.close();
    },
  };
}

/** Keys of all objects in the database. Recordings in other formats are encoded again on demand. */
export async function* keptObjectKeys(tx: SqlOrTx): AsyncGenerator<string> {
  const rows = tx<{ key: string }[]>`
    select object_key as key from recordings where status = 'uploaded' and object_key is not null
    union all select object_key from voice_samples
    union all select sample_key from voices where sample_key is not null and deleted_at is null
    union all select audio_key from tts_streams where audio_key is not null and state = 'completed'`;
  for await (const page of rows.cursor(1_000)) for (const { key } of page) yield key;
}

async function openConfiguredBucket(config: S3Config): Promise<Bucket | null> {
  const settings = bucketSettingsOf(config);
  if (settings === null) return null;
  const [{ openBucket }, { checkBucket }] = await Promise.all([
    import('../s3/bucket.ts'),
    import('../s3/check-bucket.ts'),
  ]);
  const bucket = openBucket(settings);
  try {
    await checkBucket(bucket);
    return bucket;
  } catch (error) {
    bucket.close();
    throw error;
  }
}
