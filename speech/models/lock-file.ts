import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Static } from 'typebox';
import { schemaCheck } from '../../runtime/schema-check.ts';
import { ModelError } from './model-error.ts';

const Sha256 = { type: 'string', pattern: '^[0-9a-f]{64}$' } as const;

const LockedModelSchema = {
  type: 'object',
  required: ['url', 'sha256', 'fetchedAt', 'files'],
  properties: {
    url: { type: 'string' },
    /** Checksum of the archive. */
    sha256: Sha256,
    /** ISO 8601. */
    fetchedAt: { type: 'string' },
    files: {
      type: 'object',
      additionalProperties: {
        type: 'object',
        required: ['bytes', 'sha256'],
        properties: { bytes: { type: 'integer', minimum: 0 }, sha256: Sha256 },
      },
    },
  },
} as const;

/** Checksums of fetched models, to detect later changes. By folder, such as `stt/whisper-tiny`. */
export type LockedModel = Static<typeof LockedModelSchema>;
export type LockFile = Record<string, LockedModel>;

const LockFileSchema = schemaCheck({ type: 'object', additionalProperties: LockedModelSchema });

export const LOCK_FILE_NAME = 'models.lock.json';

/** Empty if there is no file. @throws ModelError `BAD_LOCK_FILE` */
export async function readLockFile(modelsDir: string): Promise<LockFile> {
  const path = join(modelsDir, LOCK_FILE_NAME);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
  try {
    const value: unknown = JSON.parse(text);
    if (LockFileSchema.matches(value)) return value;
  } catch {}
  throw new ModelError('BAD_LOCK_FILE', `${path} is damaged: remove it, and fetch the models anew`);
}

/** Writes the file atomically. */
export async function writeLockFile(modelsDir: string, lock: LockFile): Promise<void> {
  const path = join(modelsDir, LOCK_FILE_NAME);
  await writeFile(`${path}.new`, `${JSON.stringify(lock, null, 2)}\n`);
  await rename(`${path}.new`, path);
}
