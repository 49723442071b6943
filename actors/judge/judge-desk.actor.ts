import { randomUUID } from 'node:crypto';
import { plainQuestions } from '../../language/judge/rubric.ts';
import type { LanguageModels } from '../../language/llm.ts';
import { TandemError } from '../../machines/errors.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Sql } from '../../storage/database.ts';
import { createJudgeBatch, judgeableCalls, ownersOfCalls } from '../../storage/queries/judge-batches.ts';
import type { JudgeBatches } from './batch.actor.ts';
import { chargeOfEvaluation } from './evaluation-account.ts';
import { type JudgeDesk, type JudgeModel, MOST_CALLS_PER_BATCH, type StartBatchRequest } from './judge-desk.ts';
import type { Judging } from './judging.ts';

export interface JudgeDeskOptions {
  sql: Sql;
  models: Pick<LanguageModels, 'list' | 'aliases' | 'resolve'>;
  judging: Pick<Judging, 'judge'>;
  batches: Pick<JudgeBatches, 'enqueue'>;
  clock: Clock;
}

export function createJudgeDesk({ sql, models, judging, batches, clock }: JudgeDeskOptions): JudgeDesk {
  return {
    async models() {
      const { models: listed, cached } = await models.list();
      const byId = new Map(listed.map((model) => [model.id, model]));
      const aliases = listed.length === 0 ? [] : [...(await models.aliases())];
      const entries: JudgeModel[] = [
        ...listed.map(({ id, description, created }) => ({ name: id, description, releasedAt: dateOf(created) })),
        ...aliases.flatMap(([name, id]) => {
          const model = byId.get(id);
          if (model === undefined || byId.has(name)) return [];
          return [{ name, description: `Alias of ${id}.`, releasedAt: dateOf(model.created) }];
        }),
      ];
      return { models: entries, cached };
    },

    async evaluate(request, signal) {
      const evaluation = await judging.judge({ ...request, id: randomUUID(), batchId: null }, signal);
      // The id is new, so no other request can have it.
      if (evaluation === null) throw new TandemError('INTERNAL', 'The evaluation was interrupted. Retry.');
      // Only headers depend on it. The evaluation is already charged and complete.
      const charge = await chargeOfEvaluation(sql, evaluation).catch(() => null);
      return { evaluation, charge };
    },

    async startBatch(request) {
      const { workspaceId, userId, apiKeyId, rubric, model, samples, filter } = request;
      // Reject an unusable model now, not in the background.
      await models.resolve(model);
      const callIds = await callsFor(request);
      const batch = await createJudgeBatch(sql, {
        ...{ id: randomUUID(), workspaceId, userId, apiKeyId, model, samples, filter },
        rubricId: rubric.id,
        rubricName: rubric.name,
        questions: plainQuestions(rubric.questions),
        calls: callIds.map((callId) => ({ callId, evaluationId: randomUUID() })),
        now: new Date(clock.now()),
      });
      await batches.enqueue(batch.id);
      return batch;
    },
  };

  async function callsFor({ workspaceId, userId, calls }: StartBatchRequest): Promise<readonly string[]> {
    if (!('callIds' in calls)) {
      const limit = MOST_CALLS_PER_BATCH + 1;
      const found = await judgeableCalls(sql, { workspaceId, userId, ...calls }, { limit });
      if (found.length <= MOST_CALLS_PER_BATCH) return found;
      const message = `More than ${MOST_CALLS_PER_BATCH} calls fit. Narrow it with from and to, and start several batches.`;
      throw new TandemError('VALIDATION_FAILED', message, { details: [{ path: 'from', message }] });
    }
    const callIds = [...new Set(calls.callIds)];
    const owners = await ownersOfCalls(sql, { workspaceId, callIds });
    const unknown = callIds.filter((callId) => !owners.has(callId));
    if (unknown.length > 0) {
      throw new TandemError('CALL_NOT_FOUND', 'Some calls do not exist in this workspace.', {
        details: { call_ids: unknown.slice(0, 20) },
      });
    }
    const others = callIds.filter((callId) => owners.get(callId) !== userId);
    if (others.length > 0) {
      throw new TandemError('TRANSCRIPT_NOT_OWNED', 'Some of the calls were placed by another user of the workspace.', {
        details: { call_ids: others.slice(0, 20) },
      });
    }
    return callIds;
  }
}

/** Model servers may report any value. */
function dateOf(createdS: number): Date {
  const date = new Date(createdS * 1000);
  return Number.isNaN(date.getTime()) ? new Date(0) : date;
}
