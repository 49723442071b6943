import type { SqlOrTx, Tx } from '../database.ts';
import { boundedLeaseEnd, notLater } from './due-times.ts';
import type { MemoryRow, MemoryStage } from './memories.ts';
import { nextRevision } from './memory-collections.ts';
import { storableText } from './memory-text.ts';

/**
 * Identifies an attempt. A worker has the memory's lease and gives this with each step. After the lease has expired and
 * another attempt has begun, steps of the earlier one return false and change nothing.
 */
export interface MemoryAttempt {
  id: string;
  /** `attempts` in the row from `claimMemory`. */
  attempt: number;
}

/** Returns due memories without a lease, longest overdue first. A pending memory is always due. */
export async function dueMemories(
  sql: SqlOrTx,
  { now, limit }: { now: Date; limit: number },
): Promise<{ id: string; attempts: number; nextAttemptAt: Date }[]> {
  const at = notLater(sql, now);
  return await sql<{ id: string; attempts: number; nextAttemptAt: Date }[]>`
    select id, attempts, next_attempt_at from memories
    where next_attempt_at is not null and (next_attempt_at <= ${at} or status = 'pending')
      and (leased_until is null or leased_until <= ${at})
    order by next_attempt_at, id limit ${limit}`;
}

/**
 * Leases a memory for an attempt, until `now + leaseMs`. Null if it is final, not due, deleted or already leased. A
 * pending memory is always due.
 */
export async function claimMemory(
  sql: SqlOrTx,
  { id, now, leaseMs }: { id: string; now: Date; leaseMs: number },
): Promise<MemoryRow | null> {
  const at = notLater(sql, now);
  const [row] = await sql<MemoryRow[]>`
    update memories set status = 'processing', stage = null, attempts = attempts + 1,
      leased_until = ${boundedLeaseEnd(sql, { now, leaseMs })}, updated_at = ${now}
    where id = ${id} and next_attempt_at is not null and (next_attempt_at <= ${at} or status = 'pending')
      and (leased_until is null or leased_until <= ${at}) returning *`;
  return row ?? null;
}

/** Stores the stage and extends the lease. */
export async function setMemoryStage(
  sql: SqlOrTx,
  { id, attempt }: MemoryAttempt,
  { stage, now, leaseMs }: { stage: MemoryStage; now: Date; leaseMs: number },
): Promise<boolean> {
  const result = await sql`
    update memories set stage = ${stage}, leased_until = ${boundedLeaseEnd(sql, { now, leaseMs })}, updated_at = ${now}
    where id = ${id} and attempts = ${attempt} and status = 'processing' and leased_until is not null and deleted_at is null`;
  return result.count > 0;
}

export interface MemoryReady {
  processedAs: 'facts' | 'chunks';
  /** Memory with the same text; this one has no units then. Default: none. */
  deduplicatedInto?: string | null;
  now: Date;
}

/**
 * Marks a memory as ready, in the transaction that replaces its units and facts, after `lockAttempt`. False: another
 * attempt has it, and nothing changed.
 */
export async function finishMemory(tx: Tx, { id, attempt }: MemoryAttempt, ready: MemoryReady): Promise<boolean> {
  const { processedAs, deduplicatedInto = null, now } = ready;
  const result = await tx`
    update memories set status = 'ready', stage = null, processed_as = ${processedAs}, ready_at = ${now},
      deduplicated_into = ${deduplicatedInto}, next_attempt_at = null, leased_until = null, error_code = null,
      error = null, updated_at = ${now}
    where id = ${id} and attempts = ${attempt} and status = 'processing' and leased_until is not null and deleted_at is null`;
  return result.count > 0;
}

/** Marks a memory as failed until a requested retry. It is still found by keyword. */
export async function failMemory(
  tx: Tx,
  { id, attempt }: MemoryAttempt,
  { code, message, now }: { code: string; message: string; now: Date },
): Promise<MemoryRow | null> {
  const [row] = await tx<MemoryRow[]>`
    update memories set status = 'failed', error_code = ${code}, error = ${storableText(message)},
      next_attempt_at = null, leased_until = null, updated_at = ${now}
    where id = ${id} and attempts = ${attempt} and status = 'processing' and leased_until is not null and deleted_at is null
    returning *`;
  return row ?? null;
}

export async function postponeMemory(
  sql: SqlOrTx,
  { id, attempt }: MemoryAttempt,
  { code, message, nextAttemptAt, now }: { code: string; message: string; nextAttemptAt: Date; now: Date },
): Promise<boolean> {
  const due = notLater(sql, nextAttemptAt, nextAttemptAt.getTime() - now.getTime());
  const result = await sql`
    update memories set error_code = ${code}, error = ${storableText(message)}, next_attempt_at = ${due},
      leased_until = null, updated_at = ${now}
    where id = ${id} and attempts = ${attempt} and status = 'processing' and leased_until is not null and deleted_at is null`;
  return result.count > 0;
}

/** Resets `failed` to `pending`, due at once. Null: it has not failed, or is deleted. */
export async function retryMemory(tx: Tx, { id, now }: { id: string; now: Date }): Promise<MemoryRow | null> {
  const [row] = await tx<MemoryRow[]>`
    update memories set status = 'pending', stage = null, error_code = null, error = null, next_attempt_at = ${now},
      leased_until = null, updated_at = ${now}
    where id = ${id} and status = 'failed' and deleted_at is null returning *`;
  return row ?? null;
}

/**
 * Locks the collection, with its next revision, and the memory. Call it first to replace units and facts, so that all
 * transactions lock in one order; the wallet comes last. Null: another attempt has it.
 */
export async function lockAttempt(
  tx: Tx,
  { id, attempt }: MemoryAttempt,
): Promise<(MemoryRow & { revision: bigint }) | null> {
  const [where] = await tx<{ collectionId: string }[]>`select collection_id from memories where id = ${id}`;
  const revision = where ? await nextRevision(tx, where.collectionId) : null;
  if (revision === null) return null;
  const [memory] = await tx<MemoryRow[]>`
    select * from memories
    where id = ${id} and attempts = ${attempt} and status = 'processing' and leased_until is not null and deleted_at is null
    for no key update`;
  return memory ? { ...memory, revision } : null;
}
