import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { inTransaction, type Sql } from '../../storage/database.ts';
import {
  completeEvaluation,
  failEvaluation,
  findEvaluation,
  lockEvaluation,
  lostEvaluations,
  type NewEvaluation,
  openEvaluation,
} from '../../storage/queries/evaluations.ts';
import {
  abandonedJudgeBatches,
  answersOfJudgeBatch,
  claimJudgeBatch,
  concludeJudgeBatchItem,
  createJudgeBatch,
  endJudgeBatch,
  findJudgeBatch,
  judgeableCalls,
  listJudgeBatches,
  listJudgeBatchItems,
  ownersOfCalls,
  progressOfJudgeBatches,
  releaseJudgeBatch,
  renewJudgeBatch,
} from '../../storage/queries/judge-batches.ts';
import {
  type CreateRubricInput,
  createRubric,
  deleteRubric,
  findRubric,
  listRubrics,
  MAX_RUBRICS_PER_WORKSPACE,
  updateRubric,
} from '../../storage/queries/rubrics.ts';
import { seedJudge, seedTalks } from '../actors/judge/judged-calls.ts';
import { onEveryServer } from './every-server.ts';
import { later, NOW } from './seed.ts';

/** Prototype names, numbers, and an order chosen by the author. */
const QUESTIONS = JSON.parse('{"zz":{"10":"a","9":"b"},"__proto__":{"x":1},"a":{"constructor":[]}}') as Record<
  string,
  unknown
>;

onEveryServer('rubrics', (database) => {
  it('preserve their content and key order', async () => {
    const { sql, input, reader } = await seeded(database().sql);
    const rubric = await createRubric(sql, input);
    const found = await findRubric(sql, { id: rubric.id.toUpperCase(), reader });
    expect(found).toEqual(rubric);
    expect(JSON.stringify(found?.questions)).toBe(JSON.stringify(QUESTIONS));
    expect(rubric.questionCount).toBe(3);
  });

  it('require unique names, even concurrently', async () => {
    const { sql, input } = await seeded(database().sql);
    const made = await Promise.allSettled(
      Array.from({ length: 8 }, () => createRubric(sql, { ...input, id: randomUUID() })),
    );
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const result of made) {
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'RUBRIC_NAME_TAKEN' });
    }
    const others = await Promise.all(
      ['b', 'c', 'd'].map((name) => createRubric(sql, { ...input, id: randomUUID(), name })),
    );
    const renamed = await Promise.allSettled(
      others.map((rubric) => inTransaction(sql, (tx) => updateRubric(tx, rubric, { patch: { name: 'e' }, now: NOW }))),
    );
    expect(renamed.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('change field by field and count their questions', async () => {
    const { sql, input } = await seeded(database().sql);
    const rubric = await createRubric(sql, input);
    const change = (patch: Parameters<typeof updateRubric>[2]['patch']) =>
      inTransaction(sql, (tx) => updateRubric(tx, rubric, { patch, now: later(1) }));
    expect(await change({ description: null })).toEqual({ ...rubric, description: null, updatedAt: later(1) });
    expect(await change({ questions: { one: {} }, shared: true })).toMatchObject({ questionCount: 1, shared: true });
    await deleteRubric(sql, rubric.id);
    await createRubric(sql, input);
  });

  it('appear to their author, to all once shared, and to privileged readers', async () => {
    const { sql, input, reader } = await seeded(database().sql);
    await createRubric(sql, input);
    await createRubric(sql, { ...input, id: randomUUID(), name: 'shared', shared: true, now: later(1) });
    const names = async (who: Partial<typeof reader>, filter: { shared?: boolean; mine?: boolean } = {}) => {
      const { rows, total } = await listRubrics(
        sql,
        { reader: { ...reader, ...who }, ...filter },
        { page: 1, limit: 9 },
      );
      expect(total).toBe(rows.length);
      return rows.map(({ name }) => name);
    };
    expect(await names({})).toEqual(['shared', 'Support']);
    expect(await names({ userId: -1 })).toEqual(['shared']);
    expect(await names({ userId: -1, maySeeAll: true })).toEqual(['shared', 'Support']);
    expect(await names({ workspaceId: randomUUID(), maySeeAll: true })).toEqual([]);
    expect(await names({}, { shared: false })).toEqual(['Support']);
    expect(await names({ userId: -1, maySeeAll: true }, { mine: true })).toEqual([]);
    expect(await findRubric(sql, { id: 'x', reader })).toBeNull();
  });

  it('respect their maximum number', async () => {
    const { sql, input } = await seeded(database().sql);
    await sql`
      insert into judge_rubrics (id, workspace_id, name, questions, question_count, shared, created_by_user_id, created_at, updated_at)
      select gen_random_uuid(), ${input.workspaceId}, 'r' || i, '{}'::json, 1, false, ${input.createdByUserId}, now(), now()
      from generate_series(1, ${MAX_RUBRICS_PER_WORKSPACE}) i`;
    await expect(createRubric(sql, input)).rejects.toMatchObject({ code: 'RUBRIC_LIMIT_REACHED' });
  });
});

onEveryServer('evaluations', (database) => {
  it('run one attempt at a time, and restart only after a failure', async () => {
    const { sql, evaluation } = await seeded(database().sql);
    const open = () => inTransaction(sql, (tx) => openEvaluation(tx, evaluation));
    const opened = await Promise.all([open(), open(), open()]);
    expect(opened.filter((attempt) => attempt !== null)).toEqual([{ id: evaluation.id, attempt: 1 }]);
    await inTransaction(sql, (tx) => failEvaluation(tx, evaluation.id, { error: 'LLM_TIMEOUT', now: later(1) }));
    expect(await open()).toEqual({ id: evaluation.id, attempt: 2 });
    const { costNano, ...result } = {
      results: QUESTIONS,
      summary: 's',
      promptTokens: 1,
      completionTokens: 2,
      costNano: 3n,
      latencyMs: 4,
    };
    const completed = await inTransaction(sql, async (tx) => {
      expect(await lockEvaluation(tx, evaluation.id)).toMatchObject({ attempt: 2, state: 'judging', error: null });
      return await completeEvaluation(tx, evaluation.id, { result: { ...result, costNano }, now: later(2) });
    });
    expect(await open()).toBeNull();
    expect(JSON.stringify(completed.results)).toBe(JSON.stringify(QUESTIONS));
    expect(JSON.stringify(completed.metadata)).toBe('{"n":1.5}');
    const { workspaceId, userId } = evaluation;
    expect(await findEvaluation(sql, { id: evaluation.id, workspaceId, userId })).toEqual(completed);
    expect(await findEvaluation(sql, { id: evaluation.id, workspaceId, userId: userId + 1 })).toBeNull();
    expect(await findEvaluation(sql, { id: 'x', workspaceId, userId })).toBeNull();
  });

  it('fail with the boot that ran them', async () => {
    const { sql, evaluation } = await seeded(database().sql);
    await inTransaction(sql, (tx) => openEvaluation(tx, evaluation));
    const lost = async (node: string, exceptBoot: string) => (await lostEvaluations(sql, { node, exceptBoot })).length;
    expect([await lost('n', 'b'), await lost('m', 'c'), await lost('n', 'c')]).toEqual([0, 0, 1]);
  });
});

onEveryServer('batches of calls', (database) => {
  it('contain finished calls of the caller with speech, oldest first', async () => {
    const { sql, caller } = await seeded(database().sql);
    const calls = await seedTalks(sql, caller, ['one', 'two', '']);
    const { workspaceId, userId } = caller;
    const [one, two, silent] = calls.map(({ callId }) => callId);
    expect(await judgeableCalls(sql, { workspaceId, userId }, { limit: 9 })).toEqual([one, two]);
    expect(await judgeableCalls(sql, { workspaceId, userId }, { limit: 1 })).toEqual([one]);
    expect(await judgeableCalls(sql, { workspaceId, userId, from: later(1) }, { limit: 9 })).toEqual([two]);
    expect(await judgeableCalls(sql, { workspaceId, userId, to: later(1) }, { limit: 9 })).toEqual([one]);
    expect(await judgeableCalls(sql, { workspaceId, userId: -1 }, { limit: 9 })).toEqual([]);
    await sql`update call_transcripts set status = 'in_progress' where call_id = ${one!}`;
    expect(await judgeableCalls(sql, { workspaceId, userId }, { limit: 9 })).toEqual([two]);
    const owners = await ownersOfCalls(sql, { workspaceId, callIds: [silent!, 'none'] });
    expect([...owners]).toEqual([[silent, userId]]);
  });

  it('belong to one leaseholder while it renews', async () => {
    const { sql, batch } = await seededBatch(database().sql);
    const { id } = batch;
    const claim = (leaseId: string, now: Date) => claimJudgeBatch(sql, { id, leaseId, now, leaseMs: 1_000 });
    const [a, b] = [randomUUID(), randomUUID()];
    const claimed = await Promise.all([claim(a, NOW), claim(b, NOW)]);
    expect(claimed.filter((row) => row !== null)).toHaveLength(1);
    const leaseId = claimed.find((row) => row !== null)!.leaseId!;
    const other = leaseId === a ? b : a;
    expect(await abandonedJudgeBatches(sql, { now: later(999), limit: 9 })).toEqual([]);
    expect(await renewJudgeBatch(sql, { id, leaseId, now: later(999), leaseMs: 1_000 })).toBe(true);
    expect(await claim(other, later(1_000))).toBeNull();
    expect(await abandonedJudgeBatches(sql, { now: later(1_999), limit: 9 })).toEqual([id]);
    expect(await claim(other, later(1_999))).toMatchObject({ leaseId: other, status: 'running' });
    expect(await renewJudgeBatch(sql, { id, leaseId, now: later(1_999), leaseMs: 1_000 })).toBe(false);
    await releaseJudgeBatch(sql, { id, leaseId, now: later(2_000) });
    expect(await endJudgeBatch(sql, { id, leaseId, stopReason: null, now: later(2_000) })).toBeNull();
    expect(await abandonedJudgeBatches(sql, { now: later(2_000), limit: 9 })).toEqual([]);
    await releaseJudgeBatch(sql, { id, leaseId: other, now: later(2_000) });
    expect(await abandonedJudgeBatches(sql, { now: later(2_000), limit: 9 })).toEqual([id]);
    await claim(other, later(2_000));
    const end = () => endJudgeBatch(sql, { id, leaseId: other, stopReason: 'X', now: later(2_001) });
    expect(await end()).toMatchObject({ status: 'stopped', stopReason: 'X', leasedUntil: null, endedAt: later(2_001) });
    expect(await end()).toBeNull();
    expect(await claim(a, later(9_999))).toBeNull();
    expect(await claimJudgeBatch(sql, { id: 'x', leaseId: a, now: NOW, leaseMs: 1 })).toBeNull();
  });

  it('neither hold a lease for longer nor take one early when the clock is ahead', async () => {
    const { sql, batch } = await seededBatch(database().sql);
    const ahead = new Date(Date.now() + 3_600_000);
    const lease = { id: batch.id, leaseId: randomUUID(), now: ahead, leaseMs: 30_000 };
    // The hour is left out, and a minute is enough for this test.
    const soon = () => Date.now() + 60_000;
    expect((await claimJudgeBatch(sql, lease))!.leasedUntil!.getTime()).toBeLessThan(soon());
    await renewJudgeBatch(sql, lease);
    const [renewed] = await sql<{ leasedUntil: Date }[]>`select leased_until from judge_batches where id = ${batch.id}`;
    expect(renewed!.leasedUntil.getTime()).toBeLessThan(soon());
    expect(await abandonedJudgeBatches(sql, { now: ahead, limit: 9 })).toEqual([]);
    expect(await claimJudgeBatch(sql, { ...lease, leaseId: randomUUID() })).toBeNull();
  });

  it('run one after the other per workspace, even with concurrent claims', async () => {
    const { sql, batch } = await seededBatch(database().sql);
    const { id, workspaceId, userId, apiKeyId, rubricId, rubricName, questions, model, samples, filter } = batch;
    const like = { workspaceId, userId, apiKeyId, rubricId, rubricName, questions, model, samples, filter };
    const other = await createJudgeBatch(sql, { ...like, id: randomUUID(), calls: [], now: NOW });
    const ids = [id, other.id];
    for (let time = 0; time < 20; time++) {
      const now = later(time);
      const claimed = await Promise.all(
        ids.map((one) => claimJudgeBatch(sql, { id: one, leaseId: randomUUID(), now, leaseMs: 1_000 })),
      );
      const taken = claimed.filter((row) => row !== null);
      expect(taken).toHaveLength(1);
      await releaseJudgeBatch(sql, { id: taken[0]!.id, leaseId: taken[0]!.leaseId!, now });
    }
  });

  it('store the outcome of each call once, and count answers', async () => {
    const { sql, batch, evaluation, calls } = await seededBatch(database().sql);
    const { id, workspaceId, userId } = batch;
    const [first, second] = calls;
    const conclude = (evaluationId: string, error: string | null) =>
      concludeJudgeBatchItem(sql, { evaluationId, error, now: later(1) });
    expect(await conclude(second!.evaluationId, 'TRANSCRIPT_EMPTY')).toBe(true);
    expect(await conclude(second!.evaluationId, null)).toBe(false);
    const row = { ...evaluation, id: first!.evaluationId, callId: first!.callId, batchId: id };
    const results = JSON.parse('{"__proto__":{"answer":"yes"},"b":{"answer":"no"}}');
    await inTransaction(sql, async (tx) => {
      await openEvaluation(tx, row);
      const result = { results, summary: '', promptTokens: 1, completionTokens: 1, costNano: 7n, latencyMs: 1 };
      await completeEvaluation(tx, row.id, { result, now: later(1) });
    });
    await conclude(first!.evaluationId, null);
    expect(await answersOfJudgeBatch(sql, id)).toEqual(
      expect.arrayContaining([
        { question: '__proto__', answer: 'yes', count: 1 },
        { question: 'b', answer: 'no', count: 1 },
      ]),
    );
    expect([...(await progressOfJudgeBatches(sql, [id]))]).toEqual([[id, { judged: 1, failed: 1, costNano: 7n }]]);
    const left = await listJudgeBatchItems(sql, id, { status: 'pending', limit: 9 });
    expect(left.map(({ position }) => position)).toEqual([2]);
    expect(await findJudgeBatch(sql, { id, workspaceId, userId: userId + 1 })).toBeNull();
    const { rows, total } = await listJudgeBatches(sql, { workspaceId, userId }, { page: 1, limit: 1 });
    expect([rows.map((listed) => listed.id), total]).toEqual([[id], 1]);
    expect(JSON.stringify(rows[0]!.questions)).toBe(JSON.stringify(QUESTIONS));
  });
});

async function seeded(sql: Sql) {
  const caller = await seedJudge(sql);
  const { workspaceId, userId } = caller;
  const input: CreateRubricInput = {
    ...{ id: randomUUID(), workspaceId, createdByUserId: userId, name: 'Support', description: 'd', model: null },
    ...{ questions: QUESTIONS, shared: false, now: NOW },
  };
  const evaluation: NewEvaluation = {
    ...{ id: randomUUID(), workspaceId, userId, apiKeyId: null, rubricId: null, batchId: null, callId: null },
    ...{ model: 'tiny-1.0', seed: 1, samples: 1, metadata: { n: 1.5 }, ownerNode: 'n', ownerBoot: 'b', createdAt: NOW },
  };
  return { sql, caller, input, evaluation, reader: { workspaceId, userId, maySeeAll: false } };
}

async function seededBatch(sql: Sql) {
  const { caller, evaluation } = await seeded(sql);
  const { workspaceId, userId } = caller;
  const talks = await seedTalks(sql, caller, ['one', 'two', 'three']);
  const calls = talks.map(({ callId }) => ({ callId, evaluationId: randomUUID() }));
  const batch = await createJudgeBatch(sql, {
    ...{ id: randomUUID(), workspaceId, userId, apiKeyId: null, rubricId: randomUUID(), rubricName: 'Support' },
    ...{ questions: QUESTIONS, model: null, samples: 1, filter: { from: '2026' }, calls, now: NOW },
  });
  return { sql, batch, calls, evaluation };
}
