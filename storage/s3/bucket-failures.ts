/** Describes a failure and its fix in one line, without secrets. */
export function failureReason(error: unknown, { region }: { region: string }): string {
  const { name, code, message } = error as { name?: string; code?: string; message?: string };
  const advice = ADVICE[name ?? ''] ?? ADVICE[code ?? ''];
  if (advice !== undefined) return advice.replace('{region}', region);
  if (hasStatus(error, 401) || hasStatus(error, 403)) return ADVICE.AccessDenied!;
  if (hasStatus(error, 404)) return ADVICE.NoSuchBucket!;
  if (hasStatus(error, 301)) return ADVICE.PermanentRedirect!.replace('{region}', region);
  const status = statusOf(error);
  if (status !== null && status >= 300) return `The store answered HTTP ${status} (${name}).`;
  const reason = [name === 'Error' ? undefined : name, code, message].filter(Boolean).join(' ');
  return `The store cannot be reached (${reason.replaceAll('\n', ' ').slice(0, 200)}). Check S3_ENDPOINT and the network.`;
}

export function hasStatus(error: unknown, status: number): boolean {
  return statusOf(error) === status;
}

function statusOf(error: unknown): number | null {
  return (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode ?? null;
}

const DENIED =
  'The store denies access. Check S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY, and allow s3:PutObject, s3:GetObject, ' +
  's3:DeleteObject and s3:ListBucket on the bucket.';
const WRONG_REGION = 'The bucket is in another region than {region}. Set S3_REGION.';

/** By error codes of S3 and of the AWS SDK. */
const ADVICE: Readonly<Record<string, string>> = {
  NoSuchBucket: 'The bucket does not exist. Create it, or correct S3_BUCKET.',
  InvalidBucketName: 'The bucket name is not valid. Correct S3_BUCKET.',
  InvalidAccessKeyId: 'The store does not know the access key. Correct S3_ACCESS_KEY_ID.',
  SignatureDoesNotMatch: 'The store rejects the signature. Correct S3_SECRET_ACCESS_KEY, or S3_ACCESS_KEY_ID.',
  AccessDenied: DENIED,
  AuthorizationHeaderMalformed: WRONG_REGION,
  PermanentRedirect: WRONG_REGION,
  RequestTimeTooSkewed: "This machine's clock is wrong. Synchronise it.",
  CredentialsProviderError: 'There are no credentials. Set S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY.',
};
