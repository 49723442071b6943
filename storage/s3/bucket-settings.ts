export interface BucketSettings {
  /** Null: AWS. */
  endpoint: string | null;
  /** Endpoint for clients, in presigned URLs. Null: `endpoint`. */
  publicEndpoint: string | null;
  region: string;
  bucket: string;
  prefix: string;
  /** `https://host/bucket/key` instead of `https://bucket.host/key`. */
  pathStyle: boolean;
  /** Null together with the secret: the AWS SDK's credential chain. */
  accessKeyId: string | null;
  secretAccessKey: string | null;
}

/** The settings `S3_*`. */
export interface S3Config {
  readonly s3Endpoint: string | null;
  readonly s3PublicEndpoint: string | null;
  readonly s3Region: string;
  readonly s3Bucket: string | null;
  readonly s3Prefix: string;
  readonly s3PathStyle: 'auto' | 'true' | 'false';
  readonly s3AccessKeyId: string | null;
  readonly s3SecretAccessKey: string | null;
}

/** Null: objects stay in a folder. */
export function bucketSettingsOf(config: S3Config): BucketSettings | null {
  if (config.s3Bucket === null) return null;
  return {
    endpoint: config.s3Endpoint,
    publicEndpoint: config.s3PublicEndpoint,
    region: config.s3Region,
    bucket: config.s3Bucket,
    prefix: config.s3Prefix,
    // Few stores other than AWS have a host name per bucket.
    pathStyle: config.s3PathStyle === 'auto' ? config.s3Endpoint !== null : config.s3PathStyle === 'true',
    accessKeyId: config.s3AccessKeyId,
    secretAccessKey: config.s3SecretAccessKey,
  };
}
