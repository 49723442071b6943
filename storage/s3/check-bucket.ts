import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { TandemError } from '../../machines/errors.ts';
import type { Bucket } from './bucket.ts';

/**
 * Writes, reads and deletes a small object, so that a missing permission shows before the first recording.
 * @throws TandemError `STORAGE_UNAVAILABLE` with one line that names the problem
 */
export async function checkBucket(bucket: Bucket): Promise<void> {
  const key = `checks/${randomUUID()}`;
  const content = Buffer.from('Tandem checks that it can write, read and delete here.\n');
  const folder = await mkdtemp(join(tmpdir(), 'tandem-check-'));
  try {
    const sourcePath = join(folder, 'check');
    await writeFile(sourcePath, content);
    const signal = AbortSignal.timeout(CHECK_TIMEOUT_MS);
    await bucket.upload({ key, sourcePath, sizeBytes: content.length, signal });
    const same = (await buffer(await bucket.read({ key }))).equals(content);
    await bucket.delete(key);
    if (!same) throw unusable(bucket, 'The store returns other bytes than it was given.');
    // AWS responds with 403 for a missing object if listing the bucket is not allowed.
    if ((await bucket.stat(key)) !== null) throw unusable(bucket, 'The store still has an object after its deletion.');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const CHECK_TIMEOUT_MS = 30_000;

function unusable(bucket: Bucket, reason: string): TandemError {
  return new TandemError('STORAGE_UNAVAILABLE', `S3 bucket ${bucket.name}: ${reason}`);
}
