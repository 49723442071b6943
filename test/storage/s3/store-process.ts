import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openBucket } from '../../../storage/s3/bucket.ts';
import { openS3ObjectStore } from '../../../storage/s3/object-store.ts';

/**
 * Stores one object, deletes another, reports it and continues the transfers until killed.
 * Usage: store-process.ts FOLDER SETTINGS, with the bucket settings as JSON
 */
const [folder = '', settings = '{}'] = process.argv.slice(2);
const logger = { info() {}, warn() {}, error() {} };
const store = await openS3ObjectStore({ folder, bucket: openBucket(JSON.parse(settings)), logger });
await writeFile(join(folder, '.source'), Buffer.alloc(12_000_000, 'recording'));
await store.putFile({ key: 'call.wav', sourcePath: join(folder, '.source') });
await store.delete('expired.wav');
process.stdout.write('stored\n');
