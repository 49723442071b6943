import { inTransaction, type Sql, type SqlOrTx, type StorageLogger } from './database.ts';
import {
  callbackSecretContext,
  idempotentRequestContext,
  signingKeyContext,
  trunkInboundPasswordContext,
  trunkPasswordContext,
  webhookSecretContext,
} from './secret-contexts.ts';
import { createSecretBox, type SecretBox, SecretBoxError } from './secrets.ts';

export interface ResealOptions {
  /** Default 500. */
  batchSize?: number;
  logger: StorageLogger;
}

export interface Resealed {
  /** Now sealed under the current key. */
  resealed: number;
  /** Unchanged, because no known key opens them. */
  unopened: number;
}

/**
 * Reseals secrets of earlier keys under the current key, so that the earlier keys can be deleted. It is repeatable, may
 * be interrupted, and runs beside active nodes, whose changes take precedence.
 */
export async function resealSecrets(sql: Sql, secrets: SecretBox, options: ResealOptions): Promise<Resealed> {
  const total: Resealed = { resealed: 0, unopened: 0 };
  for (const column of [...SEALED_COLUMNS, ...SEALED_FIELDS]) {
    const { resealed, unopened } = await resealColumn(sql, secrets, { ...options, ...column });
    total.resealed += resealed;
    total.unopened += unopened;
  }
  options.logger.info(total, 'secrets re-encrypted with the current key');
  return total;
}

interface SealedColumn {
  table: string;
  id: string;
  column: string;
  /** Top-level field of a `jsonb` column, in base64. Default: the column itself. */
  field?: string;
  /** Column that names the secret's owner, for the context. */
  owner: string;
  context: (owner: string) => string;
}

/** All columns with sealed secrets. A test finds missing ones. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { table: 'trunks', id: 'id', column: 'password_encrypted', owner: 'id', context: trunkPasswordContext },
  {
    table: 'trunks',
    id: 'id',
    column: 'inbound_password_encrypted',
    owner: 'id',
    context: trunkInboundPasswordContext,
  },
  {
    table: 'calls',
    id: 'call_id',
    column: 'callback_secret_encrypted',
    owner: 'workspace_id',
    context: callbackSecretContext,
  },
  {
    table: 'deliveries',
    id: 'id',
    column: 'secret_encrypted',
    owner: 'workspace_id',
    context: callbackSecretContext,
  },
  { table: 'signing_keys', id: 'id', column: 'private_key_encrypted', owner: 'id', context: signingKeyContext },
  {
    table: 'webhook_secrets',
    id: 'id',
    column: 'secret_encrypted',
    owner: 'subscription_id',
    context: webhookSecretContext,
  },
  {
    table: 'idempotent_requests',
    id: 'id',
    column: 'record_encrypted',
    owner: 'id',
    context: idempotentRequestContext,
  },
];

/** Secrets inside documents: rules for inbound calls. */
const SEALED_FIELDS: readonly SealedColumn[] = ['secretSealed', 'callbackSecretSealed'].map((field) => ({
  ...{ table: 'numbers', id: 'e164', column: 'inbound', field },
  ...{ owner: 'workspace_id', context: callbackSecretContext },
}));

interface SealedRow {
  id: string | bigint;
  owner: string;
  sealed: Buffer;
}

async function resealColumn(
  sql: Sql,
  secrets: SecretBox,
  { table, id, column, field, owner, context, batchSize = 500, logger }: SealedColumn & ResealOptions,
): Promise<Resealed> {
  const done: Resealed = { resealed: 0, unopened: 0 };
  const sealedIn = (within: SqlOrTx) =>
    field === undefined ? within`${within(column)}` : within`decode(${within(column)} ->> ${field}, 'base64')`;
  let after: SealedRow['id'] | null = null;
  for (;;) {
    const rows: SealedRow[] = await sql<SealedRow[]>`
      select ${sql(id)} as id, ${sql(owner)} as owner, ${sealedIn(sql)} as sealed from ${sql(table)}
      where ${sealedIn(sql)} is not null
        and substring(${sealedIn(sql)} from 1 for ${secrets.currentPrefix.length}) <> ${secrets.currentPrefix}
        ${after === null ? sql`` : sql`and ${sql(id)} > ${after}`}
      order by ${sql(id)} limit ${batchSize}`;
    const last = rows.at(-1);
    if (last === undefined) return done;
    after = last.id;
    const changes = rows.flatMap((row) => {
      const text = opened(secrets, row.sealed, context(row.owner));
      return text === null ? [] : [{ ...row, resealed: secrets.seal(text, context(row.owner)) }];
    });
    await inTransaction(sql, async (tx) => {
      for (const { id: rowId, sealed, resealed } of changes) {
        const changed =
          field === undefined
            ? tx`${resealed}`
            : tx`jsonb_set(${tx(column)}, array[${field}], to_jsonb(${resealed.toString('base64')}::text))`;
        await tx`
          update ${tx(table)} set ${tx(column)} = ${changed}
          where ${tx(id)} = ${rowId} and ${sealedIn(tx)} = ${sealed}`;
      }
    });
    done.resealed += changes.length;
    done.unopened += rows.length - changes.length;
    if (rows.length > changes.length) {
      logger.warn({ table, column, count: rows.length - changes.length }, 'skipped secrets that no key decrypts');
    }
    logger.info({ table, column, ...done }, 're-encrypting secrets with the current key');
  }
}

function opened(secrets: SecretBox, sealed: Buffer, context: string): string | null {
  try {
    return secrets.open(sealed, context);
  } catch (error) {
    if (error instanceof SecretBoxError) return null;
    throw error;
  }
}

/** Otherwise a key that was removed too early would show only when a callback or a registration fails. */
export async function warnOfUnknownKeys(
  sql: Sql,
  keys: readonly Buffer[],
  { logger }: Pick<ResealOptions, 'logger'>,
): Promise<void> {
  const { foreign: count } = await countSecrets(sql, keys);
  if (count > 0) logger.warn({ count }, 'no key decrypts some stored secrets: tandem doctor says what to do');
}

/**
 * Counts the secrets of trunks, webhooks and numbers, and those of them that none of these master keys encrypted. A lost
 * key makes these useless; the tables of the others are large.
 */
export async function countSecrets(sql: Sql, keys: readonly Buffer[]): Promise<{ total: number; foreign: number }> {
  // The prefix identifies the key. Another node may still encrypt with an earlier one.
  const known = keys.map((key) => createSecretBox(key).currentPrefix);
  const counts = await sql<{ prefix: Buffer; count: number }[]>`
    select substring(sealed from 1 for ${known[0]!.length}) as prefix, count(*)::int as count from (
      select password_encrypted as sealed from trunks where deleted_at is null
      union all select inbound_password_encrypted from trunks where deleted_at is null
      union all select s.secret_encrypted from webhook_secrets s
        join webhook_subscriptions w on w.id = s.subscription_id and w.deleted_at is null
        where s.expires_at is null or s.expires_at > now()
      union all select decode(inbound ->> 'secretSealed', 'base64') from numbers
      union all select decode(inbound ->> 'callbackSecretSealed', 'base64') from numbers
    ) secrets
    where sealed is not null group by prefix`;
  const sumOf = (secrets: readonly { count: number }[]) => secrets.reduce((sum, { count }) => sum + count, 0);
  const foreign = counts.filter(({ prefix }) => !known.some((each) => each.equals(prefix)));
  return { total: sumOf(counts), foreign: sumOf(foreign) };
}
