import { randomBytes, randomInt } from 'node:crypto';
import { evaluate, type Judgement, tokensToHold } from '../../language/judge/evaluate.ts';
import { SEEDS } from '../../language/judge/option-order.ts';
import type { LanguageModels } from '../../language/llm.ts';
import { TandemError } from '../../machines/errors.ts';
import type { Clock } from '../../runtime/clock.ts';
import { pause, within } from '../../runtime/waiting.ts';
import type { Sql } from '../../storage/database.ts';
import type { EvaluationAttempt, EvaluationRow } from '../../storage/queries/evaluations.ts';
import type { Logger } from '../logger.ts';
import { abandonEvaluation, beginEvaluation, settleEvaluation } from './evaluation-account.ts';
import type { EvaluateRequest } from './judge-desk.ts';

export interface JudgingOptions {
  sql: Sql;
  models: Pick<LanguageModels, 'resolve' | 'complete'>;
  node: string;
  boot: string;
  clock: Clock;
  logger: Logger;
}

export interface JudgingTask extends EvaluateRequest {
  id: string;
  /** Null: not part of a batch. */
  batchId: string | null;
}

export interface Judging {
  /**
   * Judges and charges. Null: done before, or in progress elsewhere.
   * @throws errors of `JudgeDesk.evaluate`; then nothing is charged
   */
  judge(task: JudgingTask, signal: AbortSignal): Promise<EvaluationRow | null>;
  /** Resolves when the holds of failed evaluations are released, or storage is out of reach. */
  close(): Promise<void>;
}

/** Delays between attempts to store a result while a client waits. */
const STORE_AGAIN_MS = [200, 1_000];
const LONGEST_BACKOFF_MS = 60_000;
const CLOSE_WITHIN_MS = 5_000;

export function createJudging({ sql, models, node, boot, clock, logger }: JudgingOptions): Judging {
  const givingBack = new Set<Promise<void>>();
  const closing = new AbortController();
  const now = () => new Date(clock.now());

  async function judge(task: JudgingTask, signal: AbortSignal): Promise<EvaluationRow | null> {
    const { id, workspaceId, questions, candidate, input, context, samples } = task;
    const model = await models.resolve(task.model);
    signal.throwIfAborted();
    const seed = randomInt(SEEDS);
    const startedMs = clock.monotonicMs();
    const attempt = await begin(task, { model: model.id, seed });
    if (attempt === null) return null;
    let judgement: Judgement;
    try {
      judgement = await evaluate(models, {
        ...{ questions, candidate, input, context, samples, seed, signal },
        model: model.id,
        onBehalfOf: workspaceId,
        contextTokens: model.contextTokens,
        fence: `=== ${randomBytes(12).toString('hex')} ===`,
      });
    } catch (error) {
      const code = signal.aborted ? leavingCode(signal.reason) : codeOf(error);
      await releaseHold({ id, workspaceId, attempt: attempt.attempt, error: code });
      throw error;
    }
    const latencyMs = Math.round(clock.monotonicMs() - startedMs);
    return await store({ attempt: { ...attempt, workspaceId }, judgement, latencyMs });
  }

  async function begin(
    task: JudgingTask,
    { model, seed }: { model: string; seed: number },
  ): Promise<EvaluationAttempt | null> {
    const { id, workspaceId, userId, apiKeyId, rubricId, samples, metadata, batchId, callId } = task;
    const owner = { workspaceId, userId, apiKeyId, ownerNode: node, ownerBoot: boot, createdAt: now() };
    const what = {
      rubricId,
      batchId,
      callId,
      model,
      seed,
      samples,
      metadata,
    };
    try {
      return await beginEvaluation(sql, { evaluation: { id, ...owner, ...what }, tokens: tokensToHold(task) });
    } catch (error) {
      // The evaluation may be stored, but will not be judged.
      if (!(error instanceof TandemError)) await releaseHold({ id, workspaceId, attempt: null, error: codeOf(error) });
      throw error;
    }
  }

  async function store(settled: Omit<Parameters<typeof settleEvaluation>[1], 'now'>): Promise<EvaluationRow | null> {
    const { id, workspaceId, attempt } = settled.attempt;
    for (let failures = 0; ; failures++) {
      try {
        return await settleEvaluation(sql, { ...settled, now: now() });
      } catch (error) {
        const delayMs = STORE_AGAIN_MS[failures];
        if (delayMs === undefined || closing.signal.aborted) {
          await releaseHold({ id, workspaceId, attempt, error: codeOf(error) });
          throw error;
        }
        logger.warn({ evaluationId: id, err: error }, 'evaluation result could not be stored');
        await new Promise<void>((resolve) => void clock.setTimeout(() => resolve(), delayMs));
      }
    }
  }

  /**
   * Releases the wallet hold of an abandoned evaluation. Waits for the first attempt only; retries continue in the
   * background.
   */
  async function releaseHold(abandoned: Omit<Parameters<typeof abandonEvaluation>[1], 'now'>): Promise<void> {
    const first = Promise.withResolvers<void>();
    const work = (async () => {
      for (let failures = 0; !closing.signal.aborted || failures === 0; failures++) {
        try {
          await abandonEvaluation(sql, { ...abandoned, now: now() });
          return;
        } catch (error) {
          logger.warn({ evaluationId: abandoned.id, err: error }, 'wallet hold of an evaluation could not be released');
          first.resolve();
          const delayMs = Math.min(LONGEST_BACKOFF_MS, 500 * 2 ** Math.min(failures, 20));
          await pause(delayMs, { clock, signal: closing.signal }).catch(() => {});
        }
      }
    })().finally(() => {
      first.resolve();
      givingBack.delete(work);
    });
    givingBack.add(work);
    await first.promise;
  }

  return {
    judge,
    async close() {
      closing.abort();
      await within(Promise.allSettled(givingBack), { ms: CLOSE_WITHIN_MS, clock });
    },
  };
}

export function codeOf(error: unknown): string {
  return error instanceof TandemError ? error.code : 'INTERNAL';
}

/** A client that left has no error code. */
function leavingCode(reason: unknown): string {
  return reason instanceof TandemError ? reason.code : 'CHAT_CLIENT_CANCELLED';
}
