import type { Config } from '../config.ts';
import { readMasterKey } from '../storage/data-folder.ts';
import type { Sql } from '../storage/database.ts';
import { secretsInUse } from '../storage/reseal-secrets.ts';
import { createSecretBox } from '../storage/secrets.ts';
import { type Finding, fail, ok } from './finding.ts';

/**
 * Compares the keys of this server with those of the secrets in use. Null without a key, a readable database or secrets;
 * other checks report the first two.
 */
export async function checkStoredSecrets(config: Config, sql: Sql | null): Promise<Finding | null> {
  const key = config.secretKey ?? (await readMasterKey(config.dataDir).catch(() => null));
  if (key === null || sql === null) return null;
  const known = [key, ...config.previousSecretKeys].map((each) => createSecretBox(each).currentPrefix);
  const secrets = await secretsInUse(sql, known[0]!.length).catch(() => []);
  const total = secrets.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return null;
  const foreign = secrets.filter(({ prefix }) => !known.some((each) => each.equals(prefix)));
  const lost = foreign.reduce((sum, { count }) => sum + count, 0);
  if (lost === 0) return ok('stored secrets', `the key decrypts all ${total}`);
  return fail(
    'stored secrets',
    `Another key encrypted ${lost} of ${total} trunk passwords, webhook secrets and callback secrets of numbers.`,
    'Set TANDEM_SECRET_KEY to that key, or add it to TANDEM_SECRET_KEY_PREVIOUS. If it is lost, set these secrets again.',
  );
}
