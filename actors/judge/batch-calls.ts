import { candidateOfTranscript, type PlainQuestions, readQuestions } from '../../language/judge/rubric.ts';
import { TandemError } from '../../machines/errors.ts';
import type { JudgedSome } from '../../machines/judge-batch.machine.ts';
import { seconds } from '../../machines/utterances.ts';
import type { Sql } from '../../storage/database.ts';
import { findApiKeyById } from '../../storage/queries/api-keys.ts';
import { getCallById, isFinalState } from '../../storage/queries/calls.ts';
import {
  concludeJudgeBatchItem,
  type JudgeBatchItem,
  type JudgeBatchRow,
  nextJudgeBatchItems,
  progressOfJudgeBatches,
} from '../../storage/queries/judge-batches.ts';
import { findMembership } from '../../storage/queries/memberships.ts';
import { getTranscript } from '../../storage/queries/transcripts.ts';
import type { Logger } from '../logger.ts';
import { abandonEvaluation } from './evaluation-account.ts';
import { codeOf, type Judging } from './judging.ts';

interface BatchWork {
  sql: Sql;
  judging: Pick<Judging, 'judge'>;
  now: () => Date;
  logger: Logger;
  signal: AbortSignal;
}

const AT_A_TIME = 4;

/** Judges the next remaining calls of a batch. @throws the database's error */
export async function judgeSomeOf(batch: JudgeBatchRow, work: BatchWork): Promise<JudgedSome> {
  // A user without access to the workspace must not spend its money.
  if (!(await mayStillJudge(batch, work))) return { kind: 'stop', reason: 'FORBIDDEN' };
  const items = await nextJudgeBatchItems(work.sql, batch.id, { limit: AT_A_TIME });
  if (items.length === 0) return { kind: 'none_left' };
  const outcomes = await Promise.all(items.map((item) => judgeItem(item, { batch, work })));
  const hasProgressed = outcomes.some(({ kind }) => kind === 'progressed');
  const stop = outcomes.find((outcome) => outcome.kind === 'stop');
  // The other judgements have released their unused holds, so try again.
  if (stop?.reason === 'INSUFFICIENT_CREDITS' && hasProgressed) return { kind: 'progressed' };
  if (stop) return stop;
  const delayed = outcomes.find((outcome) => outcome.kind === 'delayed');
  return delayed ? { ...delayed, hasProgressed } : { kind: 'progressed' };
}

async function mayStillJudge(batch: JudgeBatchRow, { sql, now }: BatchWork): Promise<boolean> {
  const membership = await findMembership(sql, batch);
  if (membership === null || membership.role === 'viewer') return false;
  const { apiKeyId: id } = batch;
  return id === null || (await findApiKeyById(sql, { id, now: now() })) !== null;
}

type ItemOutcome = { kind: 'progressed' } | { kind: 'stop'; reason: string } | { kind: 'delayed'; reason: string };

async function judgeItem(
  item: JudgeBatchItem & { attempts: number },
  { batch, work }: { batch: JudgeBatchRow; work: BatchWork },
): Promise<ItemOutcome> {
  const { sql, judging, now, logger, signal } = work;
  const { id: batchId, workspaceId, userId, apiKeyId, rubricId, model, samples } = batch;
  const { callId, evaluationId } = item;
  try {
    const candidate = await candidateOf(sql, callId);
    if (typeof candidate === 'string') return await failed(candidate);
    // A node that counts as dead may have begun it.
    await abandonEvaluation(sql, { id: evaluationId, workspaceId, attempt: null, error: 'INTERRUPTED', now: now() });
    signal.throwIfAborted();
    const questions = readQuestions(batch.questions as PlainQuestions);
    const task = { id: evaluationId, workspaceId, userId, apiKeyId, rubricId, batchId, callId };
    const what = { questions, candidate, input: null, context: null, model, samples, metadata: null };
    const judged = await judging.judge({ ...task, ...what }, signal);
    // Null: the other node is still judging it.
    return judged === null ? { kind: 'delayed', reason: 'INTERNAL' } : { kind: 'progressed' };
  } catch (error) {
    if (signal.aborted) return { kind: 'delayed', reason: 'SHUTTING_DOWN' };
    const reason = codeOf(error);
    if (STOPPING.has(reason)) return { kind: 'stop', reason };
    const isOfTheCall = error instanceof TandemError && (!error.retryable || error.code === 'JUDGE_ANSWER_INVALID');
    if (isOfTheCall || (reason === 'LLM_TIMEOUT' && (await neverAnswers()))) return await failed(reason);
    // Log no error details: a model server's message may quote the request.
    const particulars = error instanceof TandemError ? {} : { err: error };
    logger.warn({ batchId, callId, code: reason, ...particulars }, 'call of a judge batch could not be judged yet');
    return { kind: 'delayed', reason };
  }

  /** Whether the model times out on this call only, because the call is too long. */
  async function neverAnswers(): Promise<boolean> {
    if (item.attempts + 1 < MOST_TIMEOUTS) return false;
    return ((await progressOfJudgeBatches(sql, [batchId])).get(batchId)?.judged ?? 0) > 0;
  }

  async function failed(error: string): Promise<ItemOutcome> {
    await concludeJudgeBatchItem(sql, { evaluationId, error, now: now() });
    return { kind: 'progressed' };
  }
}

const MOST_TIMEOUTS = 3;
/** These errors affect every call. */
const STOPPING = new Set(['INSUFFICIENT_CREDITS', 'LLM_NOT_CONFIGURED', 'MODEL_NOT_FOUND']);

/** Returns an error code if there is nothing to judge. */
async function candidateOf(sql: Sql, callId: string) {
  const call = await getCallById(sql, callId);
  if (call === null || !isFinalState(call.state)) return 'CALL_NOT_FINISHED';
  const stored = await getTranscript(sql, callId);
  if (stored?.transcript.status === 'in_progress') return 'TRANSCRIPT_NOT_FINISHED';
  if (stored === null || stored.segments.length === 0) return 'TRANSCRIPT_EMPTY';
  return candidateOfTranscript(
    stored.segments.map(({ leg, text, startMs }) => ({ speaker: leg, text, start: seconds(startMs) })),
  );
}
