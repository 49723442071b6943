import { open, readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
  S3Client,
  type S3ClientConfig,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { TandemError } from '../../machines/errors.ts';
import { type ObjectStat, presentationOf } from '../objects.ts';
import { failureReason, hasStatus } from './bucket-failures.ts';
import type { BucketSettings } from './bucket-settings.ts';
import { Sha256 } from './sha256.ts';

/** One bucket, or its part below a prefix. All methods throw TandemError `STORAGE_UNAVAILABLE` on failure. */
export interface Bucket {
  /** Bucket and host for messages, without credentials. */
  readonly name: string;
  /** Resolves once the store has acknowledged the whole file. A cancelled upload leaves no parts behind. */
  upload(options: { key: string; sourcePath: string; sizeBytes: number; signal: AbortSignal }): Promise<void>;
  stat(key: string): Promise<ObjectStat | null>;
  /** @throws TandemError `NOT_FOUND` */
  read(options: { key: string; start?: number; end?: number }): Promise<Readable>;
  /** Also deletes the parts of unfinished uploads. Idempotent. */
  delete(key: string): Promise<void>;
  presign(options: { key: string; now: Date; expiresAt: Date }): Promise<string>;
  close(): void;
}

export interface BucketOptions extends BucketSettings {
  /** Attempts per request, with exponential backoff. Default 3. */
  maxAttempts?: number;
  /** Files above this length are uploaded in parts of it. Each part is in memory while it is sent. Default 5 MiB. */
  partBytes?: number;
}

/** The smallest part that S3 allows. */
const PART_BYTES = 5 * 1024 * 1024;
const MOST_PARTS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;
const IDLE_TIMEOUT_MS = 60_000;

/** Does not connect yet. */
export function openBucket(options: BucketOptions): Bucket {
  const { bucket, endpoint, publicEndpoint, prefix, partBytes = PART_BYTES } = options;
  const client = new S3Client(clientConfigOf(options, endpoint));
  const presigner = publicEndpoint === null ? client : new S3Client(clientConfigOf(options, publicEndpoint));
  const name = `${bucket} at ${endpoint === null ? `AWS ${options.region}` : new URL(endpoint).host}`;
  const addressOf = (key: string) => ({ Bucket: bucket, Key: `${prefix}${key}` });

  const closing = new AbortController();
  const sent = { abortSignal: closing.signal };

  function unavailable(error: unknown): TandemError {
    return new TandemError('STORAGE_UNAVAILABLE', `S3 bucket ${name}: ${failureReason(error, options)}`);
  }

  async function request<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      throw error instanceof TandemError ? error : unavailable(error);
    }
  }

  async function stat(key: string): Promise<ObjectStat | null> {
    return await request(async () => {
      try {
        const { ContentLength = 0, LastModified } = await client.send(new HeadObjectCommand(addressOf(key)), sent);
        return { key, sizeBytes: ContentLength, modifiedAt: LastModified ?? new Date(0) };
      } catch (error) {
        if (hasStatus(error, 404)) return null;
        throw error;
      }
    });
  }

  /**
   * Aborts uploads that a killed process or an outage cut off. Their parts cost money and appear in no object listing.
   * Without permission or support to list uploads, a lifecycle rule of the bucket must abort them.
   */
  async function abortUnfinishedUploads(key: string): Promise<void> {
    const { Bucket, Key } = addressOf(key);
    try {
      const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket, Prefix: Key }), sent);
      for (const { UploadId } of Uploads.filter((upload) => upload.Key === Key)) {
        await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }), sent);
      }
    } catch {
      // Listing or aborting them must not fail the request that needs the key.
    }
  }

  async function uploadWhole({ key, sourcePath, signal }: FileToUpload): Promise<void> {
    const Body = await readFile(sourcePath);
    const { contentType: ContentType } = presentationOf(key);
    await client.send(new PutObjectCommand({ ...addressOf(key), Body, ContentType }), { abortSignal: signal });
  }

  /** Uploads parts one by one, because several objects are uploaded at a time. */
  async function uploadInParts({ key, sourcePath, sizeBytes, signal }: FileToUpload): Promise<void> {
    await abortUnfinishedUploads(key);
    const cancellable = { abortSignal: signal };
    const { contentType: ContentType } = presentationOf(key);
    const creation = new CreateMultipartUploadCommand({ ...addressOf(key), ContentType });
    const upload = { ...addressOf(key), UploadId: (await client.send(creation, cancellable)).UploadId };
    const file = await open(sourcePath, 'r');
    try {
      const parts: CompletedPart[] = [];
      const bytes = Math.max(partBytes, Math.ceil(sizeBytes / MOST_PARTS));
      for (let start = 0; start < sizeBytes; start += bytes) {
        const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(bytes), 0, bytes, start);
        const part = { ...upload, PartNumber: parts.length + 1, Body: buffer.subarray(0, bytesRead) };
        const { ETag } = await client.send(new UploadPartCommand(part), cancellable);
        parts.push({ ETag, PartNumber: part.PartNumber });
      }
      const completion = new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts: parts } });
      await client.send(completion, cancellable);
    } catch (error) {
      await client.send(new AbortMultipartUploadCommand(upload), sent).catch(() => undefined);
      throw error;
    } finally {
      await file.close();
    }
  }

  return {
    name,
    stat,

    async upload({ key, sourcePath, sizeBytes, signal }) {
      const file = { key, sourcePath, sizeBytes, signal: AbortSignal.any([signal, closing.signal]) };
      await request(() => (sizeBytes <= partBytes ? uploadWhole(file) : uploadInParts(file)));
      const stored = await stat(key);
      if (stored?.sizeBytes === sizeBytes) return;
      const got = stored === null ? 'no object' : `${stored.sizeBytes} bytes`;
      throw unavailable(new Error(`the store acknowledged ${sizeBytes} bytes and then had ${got}`));
    },

    async read({ key, start = 0, end }) {
      return await request(async () => {
        try {
          const Range = start === 0 && end === undefined ? undefined : `bytes=${start}-${end ?? ''}`;
          const { Body } = await client.send(new GetObjectCommand({ ...addressOf(key), Range }), sent);
          // Always a Readable in Node.
          return Body as Readable;
        } catch (error) {
          if (hasStatus(error, 404)) throw new TandemError('NOT_FOUND', 'Object not found.');
          throw error;
        }
      });
    },

    async delete(key) {
      await request(() => client.send(new DeleteObjectCommand(addressOf(key)), sent));
      await abortUnfinishedUploads(key);
    },

    async presign({ key, now, expiresAt }) {
      const { contentType, contentDisposition } = presentationOf(key);
      const command = new GetObjectCommand({
        ...addressOf(key),
        ResponseContentType: contentType,
        ResponseContentDisposition: contentDisposition,
        ResponseCacheControl: 'private, no-cache',
      });
      const expiresIn = Math.floor(expiresAt.getTime() / 1000) - Math.floor(now.getTime() / 1000);
      return await request(() => getSignedUrl(presigner, command, { expiresIn, signingDate: now }));
    },

    close() {
      closing.abort();
      client.destroy();
      presigner.destroy();
    },
  };
}

interface FileToUpload {
  key: string;
  sourcePath: string;
  sizeBytes: number;
  signal: AbortSignal;
}

function clientConfigOf(options: BucketOptions, endpoint: string | null): S3ClientConfig {
  const { region, accessKeyId, secretAccessKey, pathStyle, maxAttempts = 3 } = options;
  return {
    region,
    forcePathStyle: pathStyle,
    sha256: Sha256,
    maxAttempts,
    ...(endpoint !== null && { endpoint }),
    // Otherwise the AWS chain applies: environment variables, profile or machine role.
    ...(accessKeyId !== null && secretAccessKey !== null && { credentials: { accessKeyId, secretAccessKey } }),
    // Every upload has a signed SHA-256, which all stores check. The client's newer trailing checksums make stores
    // other than AWS reject the request, or store the trailer as part of the object.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, socketTimeout: IDLE_TIMEOUT_MS },
  };
}
