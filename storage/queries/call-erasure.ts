import { TandemError } from '../../machines/errors.ts';
import type { Tx } from '../database.ts';
import { type CallRow, isFinalState } from './call-row.ts';
import { deleteDeliveries } from './retention.ts';

export interface Erased {
  calls: number;
  events: number;
  recordings: number;
  transcripts: number;
  sipMessages: number;
  deliveries: number;
  evaluations: number;
}

export const NOTHING_ERASED: Erased = {
  calls: 0,
  events: 0,
  recordings: 0,
  transcripts: 0,
  sipMessages: 0,
  deliveries: 0,
  evaluations: 0,
};

/**
 * Deletes a call and all its data, in the caller's transaction. Afterwards `erasedRecordings` deletes the recording's
 * objects. Ledger and usage log are append-only: their entries keep the call's random id. Null if the call does not
 * exist.
 * @throws TandemError `CALL_IN_USE` while the call is live, its recording (unless its node is lost) or transcript is
 * unfinished, or it is being judged
 */
export async function eraseCall(tx: Tx, { callId, now }: { callId: string; now: Date }): Promise<Erased | null> {
  const [call] = await tx<CallRow[]>`select * from calls where call_id = ${callId} for update`;
  if (!call) return null;
  await requireAtRest(tx, call);
  const evaluations = await eraseEvaluations(tx, callId);
  const sent = await tx<{ id: string }[]>`select id from deliveries where call_id = ${callId}`;
  const deliveries = await deleteDeliveries(
    tx,
    sent.map(({ id }) => id),
  );
  await tx`delete from call_transcript_segments where call_id = ${callId}`;
  const transcripts = await tx`delete from call_transcripts where call_id = ${callId}`;
  const sipMessages = await tx`delete from sip_messages where call_id = ${callId}`;
  await tx`delete from call_quality_samples where call_id = ${callId}`;
  const events = await tx`delete from call_events where call_id = ${callId}`;
  // A deleted recording without a key has no objects.
  await tx`
    insert into erased_recordings (id, workspace_id, object_key, owner_node, erased_at)
    select id, workspace_id, object_key, coalesce(node, ${call.ownerNode}), ${now} from recordings
    where call_id = ${callId} and (status <> 'deleted' or object_key is not null)
    on conflict do nothing`;
  const recordings = await tx`delete from recordings where call_id = ${callId}`;
  await tx`delete from calls where call_id = ${callId}`;
  return {
    ...{ calls: 1, events: events.count, recordings: recordings.count, transcripts: transcripts.count },
    ...{ sipMessages: sipMessages.count, deliveries, evaluations },
  };
}

async function requireAtRest(tx: Tx, { callId, state, ownerNode }: CallRow): Promise<void> {
  if (!isFinalState(state)) throw inUse('The call has not ended. Hang it up first.');
  const [busy] = await tx<{ what: string }[]>`
    select 'recording' as what from recordings r
    where call_id = ${callId} and status in ('recording', 'processing')
      -- A lost node may never return. If it does, it deletes the file.
      and not exists (
        select 1 from nodes where nodes.node = coalesce(r.node, ${ownerNode}) and nodes.settled_at is not null)
    union all
    select 'transcript' from call_transcripts where call_id = ${callId} and status = 'in_progress'
    union all
    select 'evaluation' from judge_evaluations where call_id = ${callId} and state = 'judging'
    limit 1`;
  if (busy) throw inUse(`The ${busy.what} of the call is not finished. Try again in a few seconds.`);
}

/** Evaluations of a call quote its parties. */
async function eraseEvaluations(tx: Tx, callId: string): Promise<number> {
  await tx`
    update judge_batches b set total = greatest(0, total - 1)
    from judge_batch_items i where i.batch_id = b.id and i.call_id = ${callId}`;
  await tx`delete from judge_batch_items where call_id = ${callId}`;
  const { count } = await tx`delete from judge_evaluations where call_id = ${callId}`;
  return count;
}

function inUse(message: string): TandemError {
  return new TandemError('CALL_IN_USE', message);
}
