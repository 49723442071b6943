import type { SqlOrTx, Tx } from '../database.ts';
import type { MemoryRow, MemoryStage } from './memories.ts';
import { nextRevision } from './memory-collections.ts';
import { storableText } from './memory-text.ts';

/**
 * Who processes a memory holds its lease, and says with each step which attempt theirs is: once the lease ran out and
 * somebody else began another attempt, every step of the first answers false and changes nothing.
 */
export interface MemoryAttempt {
  id: string;
  /** `attempts` of the row that `claimMemory` returned. */
  attempt: number;
}

/** Pending or being processed, whose time has come and that nobody is at: the longest overdue first. */
export async function dueMemories(
  sql: SqlOrTx,
  { now, limit }: { now: Date; limit: number },
): Promise<{ id: string; attempts: number; nextAttemptAt: Date }[]> {
  return await sql<{ id: string; attempts: number; nextAttemptAt: Date }[]>`
    select id, attempts, next_attempt_at from memories
    where next_attempt_at <= ${now} and (leased_until is null or leased_until <= ${now})
    order by next_attempt_at, id limit ${limit}`;
}

/** Takes one for an attempt until `now + leaseMs`. Null when it is final, not due yet, deleted, or already taken. */
export async function claimMemory(
  sql: SqlOrTx,
  { id, now, leaseMs }: { id: string; now: Date; leaseMs: number },
): Promise<MemoryRow | null> {
  const [row] = await sql<MemoryRow[]>`
    update memories set status = 'processing', stage = null, attempts = attempts + 1,
      leased_until = ${new Date(now.getTime() + leaseMs)}, updated_at = ${now}
    where id = ${id} and next_attempt_at <= ${now} and (leased_until is null or leased_until <= ${now}) returning *`;
  return row ?? null;
}

/** Says how far it is, and prolongs the lease. */
export async function setMemoryStage(
  sql: SqlOrTx,
  { id, attempt }: MemoryAttempt,
  { stage, now, leaseMs }: { stage: MemoryStage; now: Date; leaseMs: number },
): Promise<boolean> {
  const result = await sql`
    update memories set stage = ${stage}, leased_until = ${new Date(now.getTime() + leaseMs)}, updated_at = ${now}
    where id = ${id} and attempts = ${attempt} and status = 'processing' and leased_until is not null and deleted_at is null`;
  return result.count > 0;
}

export interface MemoryReady {
  processedAs: 'facts' | 'chunks';
  /** The memory that says the same: this one has no units of its own. Default: none. */
  deduplicatedInto?: string | null;
  now: Date;
}

/**
 * Ready. Belongs into the transaction that replaces its units and facts, after `lockAttempt`. False: the attempt is not
 * theirs any more, and nothing changed.
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

/** Failed for good, until somebody asks for a retry. Its words are found all the same. */
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

/** This attempt failed and another is due at `nextAttemptAt`; until then nobody has it. */
export async function postponeMemory(
  sql: SqlOrTx,
  { id, attempt }: MemoryAttempt,
  { code, message, nextAttemptAt, now }: { code: string; message: string; nextAttemptAt: Date; now: Date },
): Promise<boolean> {
  const result = await sql`
    update memories set error_code = ${code}, error = ${storableText(message)}, next_attempt_at = ${nextAttemptAt},
      leased_until = null, updated_at = ${now}
    where id = ${id} and attempts = ${attempt} and status = 'processing' and leased_until is not null and deleted_at is null`;
  return result.count > 0;
}

/** From `failed` to `pending`, due at once. Null: it has not failed, or is gone. */
export async function retryMemory(tx: Tx, { id, now }: { id: string; now: Date }): Promise<MemoryRow | null> {
  const [row] = await tx<MemoryRow[]>`
    update memories set status = 'pending', stage = null, error_code = null, error = null, next_attempt_at = ${now},
      leased_until = null, updated_at = ${now}
    where id = ${id} and status = 'failed' and deleted_at is null returning *`;
  return row ?? null;
}

/**
 * The memory with the next revision of its collection, both locked in the order in which everybody locks them: who
 * replaces units and facts begins with it, the wallet aside. Null: the attempt is not theirs any more.
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
