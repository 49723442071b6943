import { createHash, randomUUID } from 'node:crypto';
import { inTransaction, type Sql, type SqlOrTx } from '../database.ts';
import { idempotentRequestContext } from '../secret-contexts.ts';
import { type SecretBox, SecretBoxError } from '../secrets.ts';

const KEPT_HOURS = 24;
/** An attempt without renewal for this long counts as dead. */
export const ATTEMPT_LEASE_MS = 30_000;
/** Rows per sweep statement. */
const SWEEP_BATCH = 1_000;

export interface IdempotentRequest {
  workspaceId: string | null;
  /** Owner of the key. */
  owner: string;
  operation: string;
  /** Chosen by the client. */
  key: string;
  /** Digest of the relevant request parts. */
  fingerprint: string;
}

export interface StoredResponse {
  status: number;
  headers: Record<string, string>;
  /** Null: too large, or a stream. */
  body: string | null;
  requestId: string;
}

export interface Attempt {
  /** The same in every attempt of a request. */
  id: string;
  attempt: string;
}

export type Claim =
  | ({ outcome: 'run' } & Attempt)
  | { outcome: 'running' }
  /** The key was used with another request. */
  | { outcome: 'reused' }
  /** The record is sealed with another master key, so the request cannot be compared. */
  | { outcome: 'unreadable' }
  | { outcome: 'done'; response: StoredResponse };

interface Row {
  id: string;
  isDone: boolean;
  isLeased: boolean;
  isExpired: boolean;
  recordEncrypted: Buffer;
}

interface StoredRecord {
  fingerprint: string;
  response: StoredResponse | null;
}

type Deps = { secrets: SecretBox; leaseMs?: number };

/**
 * Reserves the key for one attempt, or returns the state of the earlier request. Uses the database's clock, so that
 * nodes agree.
 */
export async function claimIdempotentRequest(
  sql: Sql,
  request: IdempotentRequest,
  { secrets, leaseMs = ATTEMPT_LEASE_MS }: Deps,
): Promise<Claim> {
  const { workspaceId, owner, operation, fingerprint } = request;
  const keyHash = createHash('sha256').update(request.key).digest();
  const [id, attempt] = [randomUUID(), randomUUID()];
  const record = seal(secrets, id, { fingerprint, response: null });
  const fresh = sql`
    ${id}, ${attempt}, now() + ${leaseMs} * interval '1 ms', false, ${record}, now(), now() + ${KEPT_HOURS} * interval '1 h'`;
  return await inTransaction(sql, async (tx): Promise<Claim> => {
    const inserted = await tx`
      insert into idempotent_requests
        (workspace_id, owner, operation, key_hash, id, attempt, leased_until, is_done, record_encrypted, created_at, expires_at)
      values (${workspaceId}, ${owner}, ${operation}, ${keyHash}, ${fresh})
      on conflict do nothing`;
    if (inserted.count === 1) return { outcome: 'run', id, attempt };
    const mine = tx`owner = ${owner} and operation = ${operation} and key_hash = ${keyHash}`;
    const [row] = await tx<Row[]>`
      select id, is_done, coalesce(leased_until > now(), false) as is_leased, expires_at <= now() as is_expired,
        record_encrypted
      from idempotent_requests where ${mine} for update`;
    // Deleted by a sweep meanwhile: the client may repeat at once.
    if (row === undefined) return { outcome: 'running' };
    if (row.isExpired && !row.isLeased) {
      await tx`
        update idempotent_requests
        set (id, attempt, leased_until, is_done, record_encrypted, created_at, expires_at) = (${fresh}) where ${mine}`;
      return { outcome: 'run', id, attempt };
    }
    const stored = open(secrets, row.id, row.recordEncrypted);
    if (stored === null) return { outcome: 'unreadable' };
    if (stored.fingerprint !== fingerprint) return { outcome: 'reused' };
    if (stored.response !== null) return { outcome: 'done', response: stored.response };
    if (row.isLeased) return { outcome: 'running' };
    await tx`
      update idempotent_requests set attempt = ${attempt}, leased_until = now() + ${leaseMs} * interval '1 ms'
      where ${mine}`;
    return { outcome: 'run', id: row.id, attempt };
  });
}

/** Stores the response. False if another attempt has taken over. */
export async function completeIdempotentRequest(
  sql: SqlOrTx,
  { id, attempt, ...record }: Attempt & { fingerprint: string; response: StoredResponse },
  { secrets }: Deps,
): Promise<boolean> {
  const result = await sql`
    update idempotent_requests
    set attempt = null, leased_until = null, is_done = true, record_encrypted = ${seal(secrets, id, record)}
    where id = ${id} and attempt = ${attempt}`;
  return result.count === 1;
}

/** Allows the same request to run again. */
export async function releaseIdempotentRequest(sql: SqlOrTx, { id, attempt }: Attempt): Promise<void> {
  await sql`
    update idempotent_requests set attempt = null, leased_until = null where id = ${id} and attempt = ${attempt}`;
}

/** Frees the key after an invalid request. */
export async function forgetIdempotentRequest(sql: SqlOrTx, { id, attempt }: Attempt): Promise<void> {
  await sql`delete from idempotent_requests where id = ${id} and attempt = ${attempt}`;
}

export async function renewIdempotentRequests(
  sql: SqlOrTx,
  attempts: readonly string[],
  leaseMs = ATTEMPT_LEASE_MS,
): Promise<void> {
  await sql`
    update idempotent_requests set leased_until = now() + ${leaseMs} * interval '1 ms'
    where attempt = any(${[...attempts]}::uuid[])`;
}

/** Deletes expired rows and returns their number. */
export async function sweepIdempotentRequests(sql: SqlOrTx): Promise<number> {
  let deleted = 0;
  for (;;) {
    const { count } = await sql`
      delete from idempotent_requests where id in (
        select id from idempotent_requests
        where expires_at <= now() and (leased_until is null or leased_until <= now())
        limit ${SWEEP_BATCH} for update skip locked)`;
    deleted += count;
    if (count < SWEEP_BATCH) return deleted;
  }
}

function seal(secrets: SecretBox, id: string, record: StoredRecord): Buffer {
  return secrets.seal(JSON.stringify(record), idempotentRequestContext(id));
}

/** Null if it is sealed with another master key. */
function open(secrets: SecretBox, id: string, sealed: Buffer): StoredRecord | null {
  try {
    return JSON.parse(secrets.open(sealed, idempotentRequestContext(id))) as StoredRecord;
  } catch (error) {
    if (error instanceof SecretBoxError) return null;
    throw error;
  }
}
