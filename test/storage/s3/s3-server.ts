import { randomUUID } from 'node:crypto';
import { CreateBucketCommand, ListMultipartUploadsCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import type { BucketSettings } from '../../../storage/s3/bucket-settings.ts';
import { askTestRun } from '../../test-run.ts';
import { isSwiftInstalled, SWIFT_CREDENTIALS } from './swift-process.ts';

/** Without Debian's python3-swift, its tests are reported as skipped by name. */
export const hasS3Server = isSwiftInstalled();

/** OpenStack Swift, whose S3 API verifies signatures and checksums as AWS does. All test files share it. */
export interface S3Server {
  readonly port: number;
  createBucket(): Promise<BucketSettings & { accessKeyId: string; secretAccessKey: string }>;
  keysIn(bucket: string): Promise<string[]>;
  unfinishedUploadsIn(bucket: string): Promise<string[]>;
  /** Disconnects. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts it for the first test file of a run (`test/global-setup.ts`). */
export async function startS3Server(): Promise<S3Server> {
  const port = Number(await askTestRun('/s3'));
  const endpoint = `http://127.0.0.1:${port}`;
  const credentials = SWIFT_CREDENTIALS;
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials });
  return {
    port,
    async createBucket() {
      const bucket = `bucket-${randomUUID()}`;
      await client.send(new CreateBucketCommand({ Bucket: bucket }));
      const rest = { publicEndpoint: null, region: 'us-east-1', prefix: '', pathStyle: true };
      return { endpoint, bucket, ...rest, ...credentials };
    },
    async keysIn(bucket) {
      const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: bucket }));
      return Contents.map(({ Key }) => Key!);
    },
    async unfinishedUploadsIn(bucket) {
      const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket }));
      return Uploads.map(({ Key }) => Key!);
    },
    async [Symbol.asyncDispose]() {
      client.destroy();
    },
  };
}
