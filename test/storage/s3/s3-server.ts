import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { CreateBucketCommand, ListMultipartUploadsCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import type { BucketSettings } from '../../../storage/s3/bucket-settings.ts';

/** Other Python installations do not find Debian's packages. */
const PYTHON = '/usr/bin/python3';
const SECRET_ACCESS_KEY = 'a-secret-of-the-tests';

/** Without Debian's python3-swift, its tests are reported as skipped by name. */
export const hasS3Server = canImportSwift();

/** OpenStack Swift, whose S3 API verifies signatures and checksums as AWS does. */
export interface S3Server {
  readonly port: number;
  createBucket(): Promise<BucketSettings & { accessKeyId: string; secretAccessKey: string }>;
  keysIn(bucket: string): Promise<string[]>;
  unfinishedUploadsIn(bucket: string): Promise<string[]>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startS3Server(): Promise<S3Server> {
  const folder = await mkdtemp(join(tmpdir(), 'tandem-swift-'));
  const script = join(import.meta.dirname, 'swift-server.py');
  const child = spawn(PYTHON, [script, folder, SECRET_ACCESS_KEY], { stdio: ['pipe', 'pipe', 'pipe'] });
  const port = await portOf(child);
  const endpoint = `http://127.0.0.1:${port}`;
  const credentials = { accessKeyId: 'tandem:test', secretAccessKey: SECRET_ACCESS_KEY };
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials });
  let buckets = 0;
  return {
    port,
    async createBucket() {
      buckets += 1;
      const bucket = `bucket-${buckets}`;
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
      child.stdin.end();
      if (child.exitCode === null) await once(child, 'exit');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function portOf(child: ChildProcess): Promise<number> {
  let errors = '';
  child.stderr!.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  for await (const line of createInterface({ input: child.stdout! })) {
    const port = /^listening (\d+)$/.exec(line)?.[1];
    if (port !== undefined) return Number(port);
  }
  throw new Error(`Swift did not start: ${errors}`);
}

function canImportSwift(): boolean {
  try {
    execFileSync(PYTHON, ['-c', 'import swift.common.middleware.s3api'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
