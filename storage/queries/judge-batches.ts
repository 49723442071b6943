import { inTransaction, type SqlOrTx } from '../database.ts';
import { callIsFinal } from './call-row.ts';
import { keepCalls } from './calls.ts';
import { boundedLeaseEnd, notLater } from './due-times.ts';
import { isUuid } from './identifiers.ts';
import { exactJson } from './json-columns.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';

/** A row of `judge_batches`: calls judged by one rubric, as it was at the request. */
export interface JudgeBatchRow {
  id: string;
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  rubricId: string;
  rubricName: string;
  questions: Record<string, unknown>;
  /** Id or alias; null: the default model. */
  model: string | null;
  samples: number;
  /** Requested filter, as the API shows it. */
  filter: Record<string, unknown>;
  status: 'pending' | 'running' | 'completed' | 'stopped';
  stopReason: string | null;
  total: number;
  leasedUntil: Date | null;
  leaseId: string | null;
  createdAt: Date;
  updatedAt: Date;
  endedAt: Date | null;
}

export interface JudgeBatchItem {
  batchId: string;
  callId: string;
  position: number;
  evaluationId: string;
  status: 'pending' | 'judged' | 'failed';
  error: string | null;
  endedAt: Date | null;
}

export type NewJudgeBatch = Pick<
  JudgeBatchRow,
  | 'id'
  | 'workspaceId'
  | 'userId'
  | 'apiKeyId'
  | 'rubricId'
  | 'rubricName'
  | 'questions'
  | 'model'
  | 'samples'
  | 'filter'
> & {
  /** In judging order, with the ids of their future evaluations. */
  calls: readonly { callId: string; evaluationId: string }[];
  now: Date;
};

/** Creates a pending batch for the first free worker. Leaves out calls that were erased meanwhile. */
export async function createJudgeBatch(sql: SqlOrTx, input: NewJudgeBatch): Promise<JudgeBatchRow> {
  const { calls: given, questions, filter, now, ...fields } = input;
  return await inTransaction(sql, async (tx) => {
    const kept = await keepCalls(
      tx,
      given.map(({ callId }) => callId),
    );
    const calls = given.filter(({ callId }) => kept.has(callId));
    const documents = { questions: exactJson(tx, questions), filter: exactJson(tx, filter) };
    const times = { createdAt: now, updatedAt: now };
    const row = { ...fields, ...documents, ...times, status: 'pending', total: calls.length };
    const [batch] = await tx<JudgeBatchRow[]>`insert into judge_batches ${tx(row)} returning *`;
    const items = calls.map((call, position) => ({ ...call, batchId: input.id, position, status: 'pending' }));
    if (items.length > 0) await tx`insert into judge_batch_items ${tx(items)}`;
    return batch!;
  });
}

export interface JudgeableCallFilter {
  workspaceId: string;
  /** User who placed the calls and may read their transcripts. */
  userId: number;
  state?: string | undefined;
  /** created_at in [from, to). */
  from?: Date | undefined;
  to?: Date | undefined;
  agentNumber?: string | undefined;
}

/** Finished calls of a user with speech, oldest first. */
export async function judgeableCalls(
  sql: SqlOrTx,
  { workspaceId, userId, state, from, to, agentNumber }: JudgeableCallFilter,
  { limit }: { limit: number },
): Promise<string[]> {
  const rows = await sql<{ callId: string }[]>`
    select call_id from calls
    where workspace_id = ${workspaceId} and created_by_user_id = ${userId}
      and ${callIsFinal(sql)}
      and exists (select from call_transcripts t where t.call_id = calls.call_id and t.status <> 'in_progress')
      and exists (select from call_transcript_segments s where s.call_id = calls.call_id)
      ${state === undefined ? sql`` : sql`and state = ${state}`}
      ${from === undefined ? sql`` : sql`and created_at >= ${from}`}
      ${to === undefined ? sql`` : sql`and created_at < ${to}`}
      ${agentNumber === undefined ? sql`` : sql`and agent_number = ${agentNumber}`}
    order by created_at, call_id limit ${limit}`;
  return rows.map(({ callId }) => callId);
}

/** Returns the given calls of the workspace with the user who placed each. */
export async function ownersOfCalls(
  sql: SqlOrTx,
  { workspaceId, callIds }: { workspaceId: string; callIds: readonly string[] },
): Promise<Map<string, number | null>> {
  const rows = await sql<{ callId: string; createdByUserId: number | null }[]>`
    select call_id, created_by_user_id from calls where workspace_id = ${workspaceId} and call_id = any(${[...callIds]})`;
  return new Map(rows.map(({ callId, createdByUserId }) => [callId, createdByUserId]));
}

export interface BatchReader {
  workspaceId: string;
  /** Batches are visible only to their requester, because they describe calls that only they may hear. */
  userId: number;
}

export async function findJudgeBatch(
  sql: SqlOrTx,
  { id, workspaceId, userId }: { id: string } & BatchReader,
): Promise<JudgeBatchRow | null> {
  if (!isUuid(id)) return null;
  const [row] = await sql<JudgeBatchRow[]>`
    select * from judge_batches where id = ${id} and workspace_id = ${workspaceId} and user_id = ${userId}`;
  return row ?? null;
}

/** Newest first. */
export async function listJudgeBatches(
  sql: SqlOrTx,
  { workspaceId, userId }: BatchReader,
  page: Page,
): Promise<PageOf<JudgeBatchRow>> {
  const matching = sql`workspace_id = ${workspaceId} and user_id = ${userId}`;
  const rows = await sql<JudgeBatchRow[]>`
    select * from judge_batches where ${matching}
    order by created_at desc, id limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`select count(*)::int as total from judge_batches where ${matching}`;
  return { rows, total: count?.total ?? 0 };
}

export interface JudgeBatchProgress {
  judged: number;
  failed: number;
  costNano: bigint;
}

export async function progressOfJudgeBatches(
  sql: SqlOrTx,
  batchIds: readonly string[],
): Promise<Map<string, JudgeBatchProgress>> {
  const rows = await sql<({ batchId: string } & JudgeBatchProgress)[]>`
    select i.batch_id, count(*) filter (where i.status = 'judged')::int as judged,
      count(*) filter (where i.status = 'failed')::int as failed,
      coalesce(sum(e.cost_nano) filter (where e.state = 'completed'), 0)::bigint as cost_nano
    from judge_batch_items i left join judge_evaluations e on e.id = i.evaluation_id
    where i.batch_id = any(${[...batchIds]}) group by i.batch_id`;
  return new Map(rows.map(({ batchId, ...progress }) => [batchId, progress]));
}

/** Counts the answers to each question. */
export async function answersOfJudgeBatch(
  sql: SqlOrTx,
  batchId: string,
): Promise<{ question: string; answer: string; count: number }[]> {
  return await sql<{ question: string; answer: string; count: number }[]>`
    select q.key as question, q.value ->> 'answer' as answer, count(*)::int as count
    from judge_evaluations e cross join lateral json_each(e.results) q
    where e.batch_id = ${batchId} and e.state = 'completed'
    group by 1, 2 order by 1, 3 desc, 2`;
}

export async function listJudgeBatchItems(
  sql: SqlOrTx,
  batchId: string,
  { status, limit }: { status: JudgeBatchItem['status']; limit: number },
): Promise<JudgeBatchItem[]> {
  return await sql<JudgeBatchItem[]>`
    select * from judge_batch_items where batch_id = ${batchId} and status = ${status}
    order by position limit ${limit}`;
}

/** Returns the next calls to judge, least attempted first, so that a call that never completes comes last. */
export async function nextJudgeBatchItems(
  sql: SqlOrTx,
  batchId: string,
  { limit }: { limit: number },
): Promise<(JudgeBatchItem & { attempts: number })[]> {
  return await sql<(JudgeBatchItem & { attempts: number })[]>`
    select i.*, coalesce(e.attempt, 0) as attempts
    from judge_batch_items i left join judge_evaluations e on e.id = i.evaluation_id
    where i.batch_id = ${batchId} and i.status = 'pending'
    order by attempts, i.position limit ${limit}`;
}

/** Marks a call as judged or failed, once. False if it already was. */
export async function concludeJudgeBatchItem(
  sql: SqlOrTx,
  { evaluationId, error, now }: { evaluationId: string; error: string | null; now: Date },
): Promise<boolean> {
  const changed = await sql`
    update judge_batch_items set status = ${error === null ? 'judged' : 'failed'}, error = ${error}, ended_at = ${now}
    where evaluation_id = ${evaluationId} and status = 'pending'`;
  return changed.count > 0;
}

/** Returns the oldest batch of each workspace without a running one, oldest first. */
export async function abandonedJudgeBatches(
  sql: SqlOrTx,
  { now, limit }: { now: Date; limit: number },
): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from (
      select distinct on (workspace_id) id, created_at from judge_batches b
      where ended_at is null and ${isFree(sql, now)}
      order by workspace_id, created_at, id
    ) oldest
    order by created_at, id limit ${limit}`;
  return rows.map(({ id }) => id);
}

/** Whether neither the batch nor another of its workspace is leased, so that one workspace cannot delay others. */
function isFree(sql: SqlOrTx, now: Date) {
  return sql`
    not exists (
      select from judge_batches other
      where other.workspace_id = b.workspace_id and other.ended_at is null and other.leased_until > ${notLater(sql, now)})`;
}

export interface Lease {
  id: string;
  leaseId: string;
}

/** Leases a batch. Null: it is over, or it or another of its workspace is leased. */
export async function claimJudgeBatch(
  sql: SqlOrTx,
  { id, leaseId, now, leaseMs }: Lease & { now: Date; leaseMs: number },
): Promise<JudgeBatchRow | null> {
  if (!isUuid(id)) return null;
  return await inTransaction(sql, async (tx) => {
    // One at a time per workspace; otherwise two could both find no other batch running.
    await tx`
      select w.id from workspaces w join judge_batches b on b.workspace_id = w.id where b.id = ${id}
      for no key update of w`;
    const [row] = await tx<JudgeBatchRow[]>`
      update judge_batches b set status = 'running', lease_id = ${leaseId}, updated_at = ${now},
        leased_until = ${boundedLeaseEnd(tx, { now, leaseMs })}
      where id = ${id} and ended_at is null and (leased_until is null or leased_until <= ${notLater(tx, now)}) and ${isFree(tx, now)}
      returning *`;
    return row ?? null;
  });
}

/** False: another worker has it. */
export async function renewJudgeBatch(
  sql: SqlOrTx,
  { id, leaseId, now, leaseMs }: Lease & { now: Date; leaseMs: number },
): Promise<boolean> {
  const changed = await sql`
    update judge_batches set leased_until = ${boundedLeaseEnd(sql, { now, leaseMs })}
    where id = ${id} and lease_id = ${leaseId} and ended_at is null`;
  return changed.count > 0;
}

/** Releases the lease. No effect if another worker has it. */
export async function releaseJudgeBatch(sql: SqlOrTx, { id, leaseId, now }: Lease & { now: Date }): Promise<void> {
  await sql`
    update judge_batches set leased_until = null, lease_id = null, updated_at = ${now}
    where id = ${id} and lease_id = ${leaseId} and ended_at is null`;
}

/** Completes or stops a batch. Null: another worker has it, or it is already over. */
export async function endJudgeBatch(
  sql: SqlOrTx,
  { id, leaseId, stopReason, now }: Lease & { stopReason: string | null; now: Date },
): Promise<JudgeBatchRow | null> {
  const [row] = await sql<JudgeBatchRow[]>`
    update judge_batches set status = ${stopReason === null ? 'completed' : 'stopped'}, stop_reason = ${stopReason},
      leased_until = null, lease_id = null, ended_at = ${now}, updated_at = ${now}
    where id = ${id} and lease_id = ${leaseId} and ended_at is null returning *`;
  return row ?? null;
}
