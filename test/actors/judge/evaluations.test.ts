import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { abandonEvaluation, settleEvaluation } from '../../../actors/judge/evaluation-account.ts';
import { createJudging, type JudgingOptions, type JudgingTask } from '../../../actors/judge/judging.ts';
import { failLostEvaluations } from '../../../actors/judge/lost-evaluations.ts';
import { candidateOfOutput, readQuestions } from '../../../language/judge/rubric.ts';
import { TandemError } from '../../../machines/errors.ts';
import { walletOf } from '../../../storage/ledger.ts';
import { setPrice } from '../../../storage/price-book.ts';
import type { EvaluationRow } from '../../../storage/queries/evaluations.ts';
import { eventually } from '../../eventually.ts';
import { FakeLanguageModels } from '../../language/fake-language-models.ts';
import { answered, firstAnswers, QUESTIONS } from '../../language/judge/rubrics.ts';
import { NOW, USD } from '../../storage/seed.ts';
import { requireSoundBooks } from '../../storage/sound-books.ts';
import { createTestDatabase, type TestDatabase } from '../../storage/test-database.ts';
import { createTestClock, createTestLogger, sqlWithFaults } from '../fakes.ts';
import type { Caller } from '../seeds.ts';
import { seedJudge } from './judged-calls.ts';

let database: TestDatabase;
let caller: Caller;
let models: FakeLanguageModels;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  caller = await seedJudge(database.sql, { balanceNano: USD });
  models = new FakeLanguageModels();
});

const listening = () => new AbortController().signal;
const COST = 300_000n;

function judgingOf(options: Partial<JudgingOptions> = {}) {
  const logger = createTestLogger();
  const clock = createTestClock();
  const parts = { sql: database.sql, models, node: 'node-1', boot: 'boot-1', clock, logger };
  return { judging: createJudging({ ...parts, ...options }), clock, logger };
}

function task(overrides: Partial<JudgingTask> = {}): JudgingTask {
  return {
    ...{ id: randomUUID(), workspaceId: caller.workspaceId, userId: caller.userId, apiKeyId: null, rubricId: null },
    questions: readQuestions(QUESTIONS),
    candidate: candidateOfOutput('Good morning, Asha!'),
    ...{ input: null, context: null, model: null, samples: 1, metadata: { n: 1 }, batchId: null, callId: null },
    ...overrides,
  };
}

const rows = async () =>
  await database.sql<EvaluationRow[]>`
    select * from judge_evaluations where workspace_id = ${caller.workspaceId} order by created_at`;
const wallet = async () => {
  const { balanceNano, heldNano } = await walletOf(database.sql, caller.workspaceId);
  return { balanceNano, heldNano };
};
const usage = async () =>
  await database.sql`
    select service, operation, resource_id, quantity::int as tokens, unit from usage_logs
    where workspace_id = ${caller.workspaceId}`;

describe('evaluation', () => {
  it('stores its result and quotes, but no other text, and charges its tokens', async () => {
    models.otherwise = (request) =>
      answered(request, { greeting: { answer: 'warm', evidence: ['good morning'] }, solved: { answer: 'no' } });
    const { judging } = judgingOf();
    const asked = task({ input: 'secret question', context: 'secret context' });
    const judged = await judging.judge(asked, listening());
    const [row, ...others] = await rows();
    expect(others).toEqual([]);
    expect(judged).toEqual(row);
    expect(row).toMatchObject({
      ...{ id: asked.id, state: 'completed', error: null, attempt: 1, model: 'tiny-1.0', samples: 1 },
      ...{ promptTokens: 10, completionTokens: 5, costNano: COST, summary: 'It is polite.', metadata: { n: 1 } },
      results: { greeting: { answer: 'warm', evidence: ['Good morning'] }, solved: { answer: 'no' } },
    });
    expect(await wallet()).toEqual({ balanceNano: USD - COST, heldNano: 0n });
    expect(await usage()).toEqual([
      { service: 'llm', operation: 'judge', resourceId: asked.id, tokens: 15, unit: 'token' },
    ]);
    await requireSoundBooks(database.sql, caller.workspaceId);
    const everything = JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? `${value}` : value));
    expect(everything).not.toMatch(/Asha|secret/);
  });

  it('holds its maximum cost while it runs', async () => {
    models.queue({ neverEnds: true });
    const { judging } = judgingOf();
    const left = new AbortController();
    const judged = judging.judge(task(), left.signal).catch((error: unknown) => error);
    await eventually(async () => expect(models.requests).toHaveLength(1));
    const { balanceNano, heldNano } = await wallet();
    expect(balanceNano).toBe(USD);
    expect(models.requests[0]).toMatchObject({ onBehalfOf: caller.workspaceId });
    expect(heldNano).toBeGreaterThan(1_500n * 20_000n);
    left.abort(new Error('gone'));
    expect(await judged).toMatchObject({ message: 'gone' });
    expect(await wallet()).toEqual({ balanceNano: USD, heldNano: 0n });
    expect(models.endings).toEqual(['aborted']);
  });

  it('costs at most the hold, whatever the model server counts', async () => {
    models.otherwise = (request) => ({ text: firstAnswers(request), usage: { promptTokens: 250_000 } });
    const { judging } = judgingOf();
    const sql = database.sql;
    const { id } = (await judging.judge(task(), listening()))!;
    const [{ amountNano }] = (await sql`select amount_nano from holds where workspace_id = ${caller.workspaceId}`) as [
      { amountNano: bigint },
    ];
    expect(amountNano).toBeLessThan(50_000_000n);
    expect(await wallet()).toEqual({ balanceNano: USD - amountNano, heldNano: 0n });
    expect(await rows()).toMatchObject([{ id, costNano: amountNano, promptTokens: 250_000 }]);
    await requireSoundBooks(sql, caller.workspaceId);
  });

  it('fails before any request or storage when the wallet does not cover it', async () => {
    caller = await seedJudge(database.sql, { balanceNano: 1_000n });
    const { judging } = judgingOf();
    await expect(judging.judge(task(), listening())).rejects.toMatchObject({
      code: 'INSUFFICIENT_CREDITS',
      details: { available: 0.000001 },
    });
    expect([models.requests, await rows()]).toEqual([[], []]);
    expect(await wallet()).toEqual({ balanceNano: 1_000n, heldNano: 0n });
  });

  it('fails before any request when its call was erased meanwhile', async () => {
    const { judging } = judgingOf();
    await expect(judging.judge(task({ callId: 'call_erased' }), listening())).rejects.toMatchObject({
      code: 'CALL_NOT_FOUND',
    });
    expect([models.requests, await rows()]).toEqual([[], []]);
    expect(await wallet()).toEqual({ balanceNano: USD, heldNano: 0n });
  });

  it('costs nothing when tokens are free', async () => {
    caller = await seedJudge(database.sql, { balanceNano: 0n });
    await setPrice(database.sql, { scope: { workspaceId: caller.workspaceId }, item: 'llm', value: 0n, now: NOW });
    models.otherwise = firstAnswers;
    const { judging } = judgingOf();
    expect(await judging.judge(task(), listening())).toMatchObject({ costNano: 0n, holdId: null });
  });

  it.each([
    ['JUDGE_ANSWER_INVALID', () => models.queue('no', 'no')],
    ['LLM_UNAVAILABLE', () => models.queue(new TandemError('LLM_UNAVAILABLE', 'gone'))],
    ['CONTEXT_LENGTH_EXCEEDED', () => models.queue(new TandemError('CONTEXT_LENGTH_EXCEEDED', 'long'))],
    ['INTERNAL', () => models.queue(new Error('a defect'))],
  ])('costs nothing when it fails with %s', async (code, script) => {
    script();
    const { judging } = judgingOf();
    await expect(judging.judge(task(), listening())).rejects.toThrow();
    expect(await rows()).toMatchObject([{ state: 'failed', error: code, results: null }]);
    expect(await wallet()).toEqual({ balanceNano: USD, heldNano: 0n });
    await requireSoundBooks(database.sql, caller.workspaceId);
  });

  it.each([
    ['without a model', () => models.models.splice(0), { model: null }, 'LLM_NOT_CONFIGURED'],
    ['with an unknown model', () => {}, { model: 'gpt-none' }, 'MODEL_NOT_FOUND'],
  ] as const)('fails without a trace: %s', async (_, prepare, overrides, code) => {
    prepare();
    const { judging } = judgingOf();
    await expect(judging.judge(task(overrides), listening())).rejects.toMatchObject({ code });
    expect(await rows()).toEqual([]);
  });
});

describe('evaluation with failing storage', () => {
  const outage = () => Object.assign(new Error('gone'), { code: 'CONNECTION_CLOSED' });

  /** By number of the transaction, from 1: fail before it runs, or after its commit. */
  function faulty(faults: Record<number, 'before' | 'after'>) {
    let count = 0;
    return sqlWithFaults(database.sql, async (run) => {
      const fault = faults[++count];
      if (fault === 'before') throw outage();
      const result = await run();
      if (fault === 'after') throw outage();
      return result;
    });
  }

  it.each(['before', 'after'] as const)(
    'counts and costs once when storage fails %s the result is stored',
    async (when) => {
      models.otherwise = firstAnswers;
      const { judging, clock } = judgingOf({ sql: faulty({ 2: when }) });
      const judged = judging.judge(task(), listening());
      await eventually(async () => expect(clock.waiting()).toEqual([200]));
      clock.advance(200);
      expect(await judged).toMatchObject({ state: 'completed', costNano: COST });
      expect(await wallet()).toEqual({ balanceNano: USD - COST, heldNano: 0n });
      expect(await usage()).toHaveLength(1);
    },
  );

  it('costs nothing and releases its hold when its result cannot be stored', async () => {
    models.otherwise = firstAnswers;
    const { judging, clock } = judgingOf({
      sql: faulty({ 2: 'before', 3: 'before', 4: 'before', 5: 'before', 6: 'before' }),
    });
    const judged = judging.judge(task(), listening()).catch((error: unknown) => error);
    for (const delayMs of [200, 1_000]) {
      await eventually(async () => expect(clock.waiting()).toEqual([delayMs]));
      clock.advance(delayMs);
    }
    expect(await judged).toMatchObject({ code: 'CONNECTION_CLOSED' });
    expect((await wallet()).heldNano).toBeGreaterThan(0n);
    for (const delayMs of [500, 1_000]) {
      await eventually(async () => expect(clock.waiting()).toEqual([delayMs]));
      clock.advance(delayMs);
    }
    await eventually(async () => expect(await wallet()).toEqual({ balanceNano: USD, heldNano: 0n }));
    await judging.close();
  });

  it('releases its hold when the response to its first commit is lost', async () => {
    const { judging } = judgingOf({ sql: faulty({ 1: 'after' }) });
    await expect(judging.judge(task(), listening())).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' });
    expect(await wallet()).toEqual({ balanceNano: USD, heldNano: 0n });
    expect(models.requests).toEqual([]);
  });
});

describe('evaluation of a judge presumed dead', () => {
  it('releases its hold once, at the next boot of the node', async () => {
    models.queue({ neverEnds: true });
    const { judging } = judgingOf();
    const left = new AbortController();
    const judged = judging.judge(task(), left.signal).catch((error: unknown) => error);
    await eventually(async () => expect(models.requests).toHaveLength(1));
    const logger = createTestLogger();
    const sweep = (boot: string, node = 'node-1') =>
      failLostEvaluations({ sql: database.sql, lost: { node, exceptBoot: boot }, now: NOW, logger });
    expect([await sweep('boot-1'), await sweep('boot-2', 'node-2')]).toEqual([0, 0]);
    expect((await wallet()).heldNano).toBeGreaterThan(0n);
    expect([await sweep('boot-2'), await sweep('boot-2')]).toEqual([1, 0]);
    expect(await rows()).toMatchObject([{ state: 'failed', error: 'INTERRUPTED' }]);
    expect(await wallet()).toEqual({ balanceNano: USD, heldNano: 0n });
    left.abort();
    await judged;
    await requireSoundBooks(database.sql, caller.workspaceId);
  });

  it('changes and costs nothing when it finishes after another attempt started', async () => {
    const { sql } = database;
    const { judging } = judgingOf();
    const { id, ...asked } = task();
    models.queue({ neverEnds: true });
    const left = new AbortController();
    const dead = judging.judge({ id, ...asked }, left.signal).catch((error: unknown) => error);
    await eventually(async () => expect(models.requests).toHaveLength(1));
    const { workspaceId } = caller;
    await abandonEvaluation(sql, { id, workspaceId, attempt: null, error: 'INTERRUPTED', now: NOW });
    models.otherwise = firstAnswers;
    expect(await judging.judge({ id, ...asked }, listening())).toMatchObject({ attempt: 2, costNano: COST });
    const judgement = {
      results: new Map(),
      summary: 'late',
      usage: { promptTokens: 1_000, completionTokens: 1_000, isEstimated: false },
    };
    const attempt = { id, workspaceId, attempt: 1 };
    expect(await settleEvaluation(sql, { attempt, judgement, latencyMs: 1, now: NOW })).toBeNull();
    left.abort();
    await dead;
    expect(await rows()).toMatchObject([{ state: 'completed', attempt: 2, summary: 'It is what it is.' }]);
    expect(await judging.judge({ id, ...asked }, listening())).toBeNull();
    expect(await wallet()).toEqual({ balanceNano: USD - COST, heldNano: 0n });
    await requireSoundBooks(sql, workspaceId);
  });
});
