import type { SqlOrTx, Tx } from '../database.ts';
import { isUuid } from './identifiers.ts';
import { exactJson } from './json-columns.ts';
import { isOwnedBy, type LostOwner } from './nodes.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';

/** A row of `judge_evaluations`. `language/judge/` defines the content of the results. */
export interface EvaluationRow {
  id: string;
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  /** Null: the request has its own questions. */
  rubricId: string | null;
  batchId: string | null;
  callId: string | null;
  state: 'judging' | 'completed' | 'failed';
  /** Error code of a failed one; nothing was charged then. */
  error: string | null;
  attempt: number;
  holdId: string | null;
  model: string;
  seed: number;
  samples: number;
  /** Exactly as sent by the client. */
  metadata: unknown;
  results: Record<string, unknown> | null;
  summary: string | null;
  promptTokens: number | null;
  completionTokens: number | null;
  costNano: bigint | null;
  latencyMs: number | null;
  ownerNode: string;
  ownerBoot: string;
  createdAt: Date;
  endedAt: Date | null;
}

export type NewEvaluation = Pick<
  EvaluationRow,
  | 'id'
  | 'workspaceId'
  | 'userId'
  | 'apiKeyId'
  | 'rubricId'
  | 'batchId'
  | 'callId'
  | 'model'
  | 'seed'
  | 'samples'
  | 'metadata'
  | 'ownerNode'
  | 'ownerBoot'
  | 'createdAt'
>;

/** Identifies one attempt, so that a judge that was taken for dead changes nothing later. */
export interface EvaluationAttempt {
  id: string;
  attempt: number;
}

/** Begins an evaluation, or again after a failure. Null: it is completed or in progress. */
export async function openEvaluation(tx: Tx, { metadata, ...input }: NewEvaluation): Promise<EvaluationAttempt | null> {
  const begun = { state: 'judging', error: null, holdId: null, endedAt: null };
  const fields = { ...input, ...begun, metadata: exactJson(tx, metadata) };
  const [row] = await tx<EvaluationAttempt[]>`
    insert into judge_evaluations ${tx({ ...fields, attempt: 1 })}
    on conflict (id) do update set ${tx(fields)}, attempt = judge_evaluations.attempt + 1
    where judge_evaluations.state = 'failed'
    returning id, attempt`;
  return row ?? null;
}

export async function setEvaluationHold(tx: Tx, id: string, holdId: string): Promise<void> {
  await tx`update judge_evaluations set hold_id = ${holdId} where id = ${id}`;
}

/** Null if it does not exist. */
export async function lockEvaluation(tx: Tx, id: string): Promise<EvaluationRow | null> {
  const [row] = await tx<EvaluationRow[]>`select * from judge_evaluations where id = ${id} for update`;
  return row ?? null;
}

export type EvaluationResult = {
  results: Record<string, unknown>;
  summary: string;
  promptTokens: number;
  completionTokens: number;
  costNano: bigint;
  latencyMs: number;
};

/** Lock it first. */
export async function completeEvaluation(
  tx: Tx,
  id: string,
  { result: { results, ...result }, now }: { result: EvaluationResult; now: Date },
): Promise<EvaluationRow> {
  const changes = { ...result, results: exactJson(tx, results), state: 'completed', endedAt: now };
  const [row] = await tx<EvaluationRow[]>`
    update judge_evaluations set ${tx(changes)} where id = ${id} returning *`;
  return row!;
}

/** Lock it first. */
export async function failEvaluation(tx: Tx, id: string, { error, now }: { error: string; now: Date }): Promise<void> {
  await tx`update judge_evaluations set state = 'failed', error = ${error}, ended_at = ${now} where id = ${id}`;
}

/** Returns a completed evaluation to its requester only, because it may quote a call that only they may hear. */
export async function findEvaluation(
  sql: SqlOrTx,
  { id, workspaceId, userId }: { id: string; workspaceId: string; userId: number },
): Promise<EvaluationRow | null> {
  if (!isUuid(id)) return null;
  const [row] = await sql<EvaluationRow[]>`
    select * from judge_evaluations
    where id = ${id} and workspace_id = ${workspaceId} and user_id = ${userId} and state = 'completed'`;
  return row ?? null;
}

/** Lists the requester's completed evaluations, newest first. */
export async function listEvaluations(
  sql: SqlOrTx,
  { workspaceId, userId, callId }: { workspaceId: string; userId: number; callId?: string | undefined },
  page: Page,
): Promise<PageOf<EvaluationRow>> {
  const matching = sql`
    workspace_id = ${workspaceId} and user_id = ${userId} and state = 'completed'
    ${callId === undefined ? sql`` : sql`and call_id = ${callId}`}`;
  const rows = await sql<EvaluationRow[]>`
    select * from judge_evaluations where ${matching}
    order by created_at desc, id limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`
    select count(*)::int as total from judge_evaluations where ${matching}`;
  return { rows, total: count?.total ?? 0 };
}

/** Returns a lost owner's unfinished evaluations, oldest first. */
export async function lostEvaluations(sql: SqlOrTx, lost: LostOwner): Promise<EvaluationRow[]> {
  return await sql<EvaluationRow[]>`
    select * from judge_evaluations where ${isOwnedBy(sql, lost)} and state = 'judging'
    order by created_at, id`;
}
