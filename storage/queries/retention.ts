import { inTransaction, type Sql, type Tx } from '../database.ts';
import { callIsFinal } from './call-row.ts';
import { notLater } from './due-times.ts';

/** Rows deleted some days after their end. Ledger entries, live calls and pending deliveries are never deleted. */
export const RETAINED_KINDS = ['deliveries', 'call_events', 'transcripts', 'sip_messages', 'quality'] as const;

export type RetainedKind = (typeof RETAINED_KINDS)[number];

/** Any constant that all nodes share. */
const RETENTION_LOCK = 7_264_332;

/**
 * Deletes a batch of rows older than `keptMs`. Returns their number; null while another node deletes rows of this kind.
 */
export async function deleteOldRows(
  sql: Sql,
  { kind, now, keptMs, limit }: { kind: RetainedKind; now: Date; keptMs: number; limit: number },
): Promise<number | null> {
  return await inTransaction(sql, async (tx) => {
    const [lock] = await tx<{ isMine: boolean; before: Date }[]>`
      select pg_try_advisory_xact_lock(${RETENTION_LOCK}::int, ${RETAINED_KINDS.indexOf(kind)}::int) as is_mine,
        ${notLater(tx, new Date(now.getTime() - keptMs), -keptMs)} as before`;
    return lock!.isMine ? await DELETE[kind](tx, lock!.before, limit) : null;
  });
}

export async function deleteDeliveries(tx: Tx, ids: readonly string[]): Promise<number> {
  // Storing an attempt locks its delivery.
  const locked = await tx<
    { id: string }[]
  >`select id from deliveries where id = any(${ids}::uuid[]) order by id for update`;
  const all = locked.map(({ id }) => id);
  await tx`delete from delivery_attempts where delivery_id = any(${all}::uuid[])`;
  await tx`update deliveries set replay_of = null where replay_of = any(${all}::uuid[])`;
  const { count } = await tx`delete from deliveries where id = any(${all}::uuid[])`;
  return count;
}

const DELETE: Record<RetainedKind, (tx: Tx, before: Date, limit: number) => Promise<number>> = {
  async deliveries(tx, before, limit) {
    const old = await tx<{ id: string }[]>`
      select id from deliveries where created_at < ${before} and status <> 'pending' limit ${limit}`;
    return await deleteDeliveries(
      tx,
      old.map(({ id }) => id),
    );
  },

  async call_events(tx, before, limit) {
    const { count } = await tx`
      delete from call_events where (call_id, sequence) in (
        select e.call_id, e.sequence from call_events e join calls on calls.call_id = e.call_id
        where e.at < ${before} and ${callIsFinal(tx)}
          and coalesce(calls.end_time, calls.created_at) < ${before}
        limit ${limit})`;
    return count;
  },

  async transcripts(tx, before, limit) {
    const old = await tx<{ callId: string }[]>`
      select t.call_id from call_transcripts t join calls on calls.call_id = t.call_id
      where t.updated_at < ${before} and t.status <> 'in_progress' and ${callIsFinal(tx)}
      limit ${limit} for update of t`;
    const callIds = old.map(({ callId }) => callId);
    await tx`delete from call_transcript_segments where call_id = any(${callIds})`;
    const { count } = await tx`delete from call_transcripts where call_id = any(${callIds})`;
    return count;
  },

  async sip_messages(tx, before, limit) {
    const { count } = await tx`
      delete from sip_messages where id in (select id from sip_messages where at < ${before} order by at limit ${limit})`;
    return count;
  },

  async quality(tx, before, limit) {
    const { count } = await tx`
      delete from call_quality_samples where (call_id, leg, at) in (
        select call_id, leg, at from call_quality_samples where at < ${before} limit ${limit})`;
    return count;
  },
};
