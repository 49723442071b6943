import type { Judgement } from '../../language/judge/evaluate.ts';
import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type Sql, type SqlOrTx, type Tx } from '../../storage/database.ts';
import {
  type Charge,
  chargeOf,
  heldBy,
  hold,
  insufficientCredits,
  settleHold,
  voidHold,
} from '../../storage/ledger.ts';
import { lockAccounts, walletFrom } from '../../storage/ledger-entries.ts';
import { costOf, priceBookOf } from '../../storage/price-book.ts';
import { keepCalls } from '../../storage/queries/calls.ts';
import {
  completeEvaluation,
  type EvaluationAttempt,
  type EvaluationRow,
  failEvaluation,
  lockEvaluation,
  type NewEvaluation,
  openEvaluation,
  setEvaluationHold,
} from '../../storage/queries/evaluations.ts';
import { concludeJudgeBatchItem } from '../../storage/queries/judge-batches.ts';

/**
 * Holds the maximum price and stores the evaluation, in one transaction. Null: it is completed or in progress.
 * @throws TandemError `INSUFFICIENT_CREDITS`, `CALL_NOT_FOUND`
 */
export async function beginEvaluation(
  sql: Sql,
  { evaluation, tokens }: { evaluation: NewEvaluation; tokens: number },
): Promise<EvaluationAttempt | null> {
  const { workspaceId, callId, createdAt: at } = evaluation;
  return await inTransaction(sql, async (tx) => {
    const { availableNano } = walletFrom(await lockAccounts(tx, workspaceId));
    if (callId !== null && !(await keepCalls(tx, [callId])).has(callId)) {
      throw new TandemError('CALL_NOT_FOUND', 'The call was deleted meanwhile.');
    }
    const opened = await openEvaluation(tx, evaluation);
    if (opened === null) return null;
    const { amountNano } = costOf(await priceBookOf(tx, workspaceId), { service: 'llm', count: tokens });
    if (amountNano === 0n) return opened;
    if (availableNano < amountNano) throw insufficientCredits(amountNano, availableNano);
    const operationKey = `${keyOf(opened)}:hold`;
    const { holdId } = await hold(tx, { workspaceId, amountNano, minimumNano: amountNano, operationKey, at });
    await setEvaluationHold(tx, opened.id, holdId);
    return opened;
  });
}

/**
 * Stores the judgement, its charge and the progress of its batch, in one transaction. Repeating it changes nothing.
 * Null: the attempt was abandoned meanwhile and is not charged.
 */
export async function settleEvaluation(
  sql: Sql,
  { attempt, judgement, latencyMs, now }: Settled,
): Promise<EvaluationRow | null> {
  return await inTransaction(sql, async (tx) => {
    const row = await lockedWithAccounts(tx, attempt);
    if (row === null || row.attempt !== attempt.attempt) return null;
    if (row.state === 'completed') return row;
    if (row.state !== 'judging') return null;
    const { results, summary, usage } = judgement;
    const { promptTokens, completionTokens } = usage;
    const costNano = await settleCharge(tx, { row, count: promptTokens + completionTokens, now });
    const result = { results: Object.fromEntries(results), summary, promptTokens, completionTokens, costNano };
    if (row.batchId !== null) await concludeJudgeBatchItem(tx, { evaluationId: row.id, error: null, now });
    return await completeEvaluation(tx, row.id, { result: { ...result, latencyMs }, now });
  });
}

/** Null: it was free. */
export async function chargeOfEvaluation(sql: SqlOrTx, evaluation: EvaluationAttempt): Promise<Charge | null> {
  return await chargeOf(sql, `${keyOf(evaluation)}:settle`);
}

interface Settled {
  attempt: EvaluationAttempt & { workspaceId: string };
  judgement: Judgement;
  latencyMs: number;
  now: Date;
}

/** Releases the hold of an evaluation in progress. Idempotent. Null `attempt`: any attempt. */
export async function abandonEvaluation(
  sql: SqlOrTx,
  { id, workspaceId, attempt, error, now }: Abandoned,
): Promise<void> {
  await inTransaction(sql, async (tx) => {
    const row = await lockedWithAccounts(tx, { id, workspaceId });
    if (row?.state !== 'judging' || (attempt !== null && row.attempt !== attempt)) return;
    await failEvaluation(tx, id, { error, now });
    if (row.holdId !== null) await voidHold(tx, { holdId: row.holdId, operationKey: `${keyOf(row)}:void`, at: now });
  });
}

export interface Abandoned {
  id: string;
  workspaceId: string;
  attempt: number | null;
  error: string;
  now: Date;
}

/** If the response to a hold was lost, its transaction may still be running; it locks the accounts until its end. */
async function lockedWithAccounts(
  tx: Tx,
  { id, workspaceId }: { id: string; workspaceId: string },
): Promise<EvaluationRow | null> {
  await lockAccounts(tx, workspaceId);
  return await lockEvaluation(tx, id);
}

async function settleCharge(
  tx: Tx,
  { row, count, now: at }: { row: EvaluationRow; count: number; now: Date },
): Promise<bigint> {
  const { id, workspaceId, userId, apiKeyId, holdId } = row;
  if (holdId === null) return 0n;
  const { amountNano: owedNano, ...cost } = costOf(await priceBookOf(tx, workspaceId), { service: 'llm', count });
  const heldNano = (await heldBy(tx, holdId)) ?? 0n;
  // The model server reports the count, but the client agreed to no more than the hold.
  const amountNano = owedNano < heldNano ? owedNano : heldNano;
  if (amountNano === 0n) {
    await voidHold(tx, { holdId, operationKey: `${keyOf(row)}:void`, at });
    return 0n;
  }
  const usage = { ...cost, operation: 'judge', resourceId: id, apiKeyId, userId };
  const settled = await settleHold(tx, { holdId, amountNano, operationKey: `${keyOf(row)}:settle`, usage, at });
  return settled.chargedNano;
}

function keyOf({ id, attempt }: EvaluationAttempt): string {
  return `judge:${id}:${attempt}`;
}
