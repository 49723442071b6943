import type { Config } from '../config.ts';
import { readMasterKey } from '../storage/data-folder.ts';
import type { Sql } from '../storage/database.ts';
import { countSecrets } from '../storage/reseal-secrets.ts';
import { type Finding, fail, ok } from './finding.ts';

const NONE = { total: 0, foreign: 0 };

/**
 * Compares the keys of this server with those of the secrets in use. Null without a key, a readable database or secrets;
 * other checks report the first two.
 */
export async function checkStoredSecrets(config: Config, sql: Sql | null): Promise<Finding | null> {
  const key = config.secretKey ?? (await readMasterKey(config.dataDir).catch(() => null));
  if (key === null || sql === null) return null;
  const { total, foreign: lost } = await countSecrets(sql, [key, ...config.previousSecretKeys]).catch(() => NONE);
  if (total === 0) return null;
  if (lost === 0) return ok('stored secrets', `the key decrypts all ${total}`);
  return fail(
    'stored secrets',
    `Another key encrypted ${lost} of ${total} trunk passwords, webhook secrets and callback secrets of numbers.`,
    'Set TANDEM_SECRET_KEY to that key, or add it to TANDEM_SECRET_KEY_PREVIOUS. If it is lost, set these secrets again.',
  );
}
