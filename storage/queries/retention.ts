import { inTransaction, type Sql, type Tx } from '../database.ts';

/** Rows that are deleted some days after they ended. Ledger entries, live calls and pending deliveries never are. */
export const RETAINED_KINDS = ['deliveries', 'call_events', 'transcripts', 'sip_messages'] as const;

export type RetainedKind = (typeof RETAINED_KINDS)[number];

/** Any constant; the same for all nodes. */
const RETENTION_LOCK = 7_264_332;

/** Deletes some rows from before that time. Returns how many; null while another node deletes rows of this kind. */
export async function deleteOldRows(
  sql: Sql,
  { kind, before, limit }: { kind: RetainedKind; before: Date; limit: number },
): Promise<number | null> {
  return await inTransaction(sql, async (tx) => {
    const [lock] = await tx<{ isMine: boolean }[]>`
      select pg_try_advisory_xact_lock(${RETENTION_LOCK}::int, ${RETAINED_KINDS.indexOf(kind)}::int) as is_mine`;
    return lock!.isMine ? await DELETE[kind](tx, before, limit) : null;
  });
}

/** Deletes these deliveries with the log of their attempts, in the caller's transaction. */
export async function deleteDeliveries(tx: Tx, ids: readonly string[]): Promise<number> {
  // An attempt that is being logged holds the lock of its delivery.
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
        select e.call_id, e.sequence from call_events e join calls c on c.call_id = e.call_id
        where e.at < ${before} and c.state in ('completed', 'failed', 'rejected')
          and coalesce(c.end_time, c.created_at) < ${before}
        limit ${limit})`;
    return count;
  },

  async transcripts(tx, before, limit) {
    const old = await tx<{ callId: string }[]>`
      select t.call_id from call_transcripts t join calls c on c.call_id = t.call_id
      where t.updated_at < ${before} and t.status <> 'in_progress' and c.state in ('completed', 'failed', 'rejected')
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
};
