import type { StorageLogger } from './database.ts';
import { type ObjectStore, openObjectStore } from './objects.ts';
import { bucketSettingsOf, type S3Config } from './s3/bucket-settings.ts';

/**
 * Opens the store for recordings, voice samples and synthesised audio: a folder, or an S3 bucket if configured.
 * @throws TandemError `STORAGE_UNAVAILABLE` with one line if the bucket cannot be used
 */
export async function openObjects(
  config: S3Config,
  { folder, logger }: { folder: string; logger: StorageLogger },
): Promise<ObjectStore> {
  const settings = bucketSettingsOf(config);
  if (settings === null) return await openObjectStore({ folder });
  // Load the client only here, because it takes memory that a folder does not need.
  const [{ openBucket }, { checkBucket }, { openS3ObjectStore }] = await Promise.all([
    import('./s3/bucket.ts'),
    import('./s3/check-bucket.ts'),
    import('./s3/object-store.ts'),
  ]);
  const bucket = openBucket(settings);
  try {
    await checkBucket(bucket);
    return await openS3ObjectStore({ folder, bucket, logger });
  } catch (error) {
    bucket.close();
    throw error;
  }
}
