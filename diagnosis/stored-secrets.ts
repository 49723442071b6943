import type { Config } from '../config.ts';
import { readMasterKey } from '../storage/data-folder.ts';
import type { Sql } from '../storage/database.ts';
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
  const secrets = await prefixesInUse(sql, known[0]!.length).catch(() => []);
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

/** The prefix of a sealed value identifies its key. */
async function prefixesInUse(sql: Sql, length: number): Promise<{ prefix: Buffer; count: number }[]> {
  return await sql<{ prefix: Buffer; count: number }[]>`
    select substring(sealed from 1 for ${length}) as prefix, count(*)::int as count from (
      select password_encrypted as sealed from trunks where deleted_at is null
      union all select inbound_password_encrypted from trunks where deleted_at is null
      union all select s.secret_encrypted from webhook_secrets s
        join webhook_subscriptions w on w.id = s.subscription_id and w.deleted_at is null
        where s.expires_at is null or s.expires_at > now()
      union all select decode(inbound ->> 'secretSealed', 'base64') from numbers
      union all select decode(inbound ->> 'callbackSecretSealed', 'base64') from numbers
    ) secrets
    where sealed is not null group by prefix`;
}
