import { join, resolve } from 'node:path';
import type { Config } from '../config.ts';
import { bucketSettingsOf } from '../storage/s3/bucket-settings.ts';
import { checkBucket } from '../storage/s3/check-bucket.ts';
import { filesBelow } from '../storage/s3/files-below.ts';
import { type Finding, fail, ok, reasonOf } from './finding.ts';

/** Checks the store of recordings, voice samples and synthesised audio. */
export async function checkObjects(config: Config): Promise<Finding> {
  const check = 'objects';
  const folder = join(resolve(config.dataDir), 'objects');
  const settings = bucketSettingsOf(config);
  if (settings === null) return ok(check, `in ${folder}; S3_BUCKET moves them to an S3 store`);
  // The S3 client takes long to load.
  const { openBucket } = await import('../storage/s3/bucket.ts');
  const bucket = openBucket(settings);
  try {
    await checkBucket(bucket);
    const waiting = await filesBelow(folder).catch(() => []);
    return ok(
      check,
      `S3 bucket ${bucket.name}: can write, read and delete; files waiting for upload: ${waiting.length}`,
    );
  } catch (error) {
    return fail(check, reasonOf(error), 'The server does not start without it: docs/object-storage.md.');
  } finally {
    bucket.close();
  }
}
