import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createJudgeBatches, type JudgeBatchesOptions } from '../../../actors/judge/batch.actor.ts';
import { createJudgeDesk } from '../../../actors/judge/judge-desk.actor.ts';
import type { StartBatchRequest } from '../../../actors/judge/judge-desk.ts';
import { createJudging } from '../../../actors/judge/judging.ts';
import { openJudge } from '../../../actors/judge/open-judge.ts';
import { readQuestions } from '../../../language/judge/rubric.ts';
import type { CompletionRequest } from '../../../language/llm.ts';
import { TandemError } from '../../../machines/errors.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { openJobs } from '../../../storage/jobs.ts';
import { walletOf } from '../../../storage/ledger.ts';
import { createApiKey, revokeApiKey } from '../../../storage/queries/api-keys.ts';
import {
  answersOfJudgeBatch,
  createJudgeBatch,
  findJudgeBatch,
  type JudgeBatchItem,
  progressOfJudgeBatches,
} from '../../../storage/queries/judge-batches.ts';
import { removeMember } from '../../../storage/queries/memberships.ts';
import { addMember, createUser } from '../../../storage/queries/workspaces.ts';
import { eventually } from '../../eventually.ts';
import { FakeLanguageModels } from '../../language/fake-language-models.ts';
import { answered, firstAnswers, QUESTIONS } from '../../language/judge/rubrics.ts';
import { later, NOW, USD } from '../../storage/seed.ts';
import { requireSoundBooks } from '../../storage/sound-books.ts';
import { createTestDatabase, type TestDatabase } from '../../storage/test-database.ts';
import { createTestClock, createTestLogger, noOtherNodes } from '../fakes.ts';
import type { Caller } from '../seeds.ts';
import { seedJudge, seedTalks } from './judged-calls.ts';

const RUBRIC_ID = '6f6a1a0e-6c0f-4b39-9a43-0d9f4b1f8e11';
const COST = 300_000n;

let database: TestDatabase;
let caller: Caller;
let models: FakeLanguageModels;
const closers: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await database.drop();
});
beforeEach(async () => {
  // Keeps batches of earlier tests out of the way.
  await database.sql`
    update judge_batches set status = 'stopped', stop_reason = 'TEST', ended_at = now() where ended_at is null`;
  caller = await seedJudge(database.sql, { balanceNano: USD });
  models = new FakeLanguageModels();
  models.otherwise = firstAnswers;
});

function batchesOf(options: Partial<JudgeBatchesOptions> & { node?: string } = {}) {
  const { sql } = database;
  const logger = createTestLogger();
  const clock = createTestClock();
  const parts = { sql, models, node: options.node ?? 'node-1', boot: 'boot-1', clock, logger, ...options };
  const judging = createJudging(parts);
  const queued: string[] = [];
  const jobs = {
    add: async (id: string) => void queued.push(id),
    work: async () => ({ close: async () => {} }),
  };
  const batches = createJudgeBatches({ ...parts, jobs, judging });
  const desk = createJudgeDesk({ ...parts, judging, batches });
  closers.push(async () => {
    await batches.close();
    await judging.close();
  });
  return { batches, desk, clock, logger, queued, judging };
}

function request(
  calls: StartBatchRequest['calls'] = {},
  overrides: Partial<StartBatchRequest> = {},
): StartBatchRequest {
  return {
    ...{ workspaceId: caller.workspaceId, userId: caller.userId, apiKeyId: null, model: null, samples: 1 },
    rubric: { id: RUBRIC_ID, name: 'Support', questions: readQuestions(QUESTIONS) },
    calls,
    filter: {},
    ...overrides,
  };
}

const batchOf = async (id: string) =>
  (await findJudgeBatch(database.sql, { id, workspaceId: caller.workspaceId, userId: caller.userId }))!;
const itemsOf = async (batchId: string) =>
  await database.sql<JudgeBatchItem[]>`select * from judge_batch_items where batch_id = ${batchId} order by position`;
const charges = async () =>
  (
    await database.sql<{ resourceId: string }[]>`
      select resource_id from usage_logs where workspace_id = ${caller.workspaceId} and service = 'llm'`
  ).map(({ resourceId }) => resourceId);
const saidIn = ({ messages }: CompletionRequest) =>
  JSON.parse(messages[1]!.content!.split('\n')[1]!).candidate.transcript[0].text as string;

describe('judge batch', () => {
  it('judges and charges each call once, and counts the answers', async () => {
    const calls = await seedTalks(database.sql, caller, ['one', 'two', 'three', 'four', 'five', 'six']);
    models.otherwise = (asked) =>
      answered(asked, { greeting: { answer: 'warm' }, solved: { answer: saidIn(asked) === 'two' ? 'no' : 'yes' } });
    const { desk, batches, queued } = batchesOf();
    const { id, ...started } = await desk.startBatch(request());
    expect(started).toMatchObject({ status: 'pending', total: 6, rubricName: 'Support' });
    expect(queued).toEqual([id]);
    await batches.sweep();
    expect(await batchOf(id)).toMatchObject({ status: 'completed', stopReason: null, leasedUntil: null, endedAt: NOW });
    const items = await itemsOf(id);
    expect(items.map(({ callId, status }) => [callId, status])).toEqual(calls.map(({ callId }) => [callId, 'judged']));
    expect((await charges()).toSorted()).toEqual(items.map(({ evaluationId }) => evaluationId).toSorted());
    expect((await progressOfJudgeBatches(database.sql, [id])).get(id)).toEqual({
      ...{ judged: 6, failed: 0, costNano: 6n * COST },
    });
    expect(await answersOfJudgeBatch(database.sql, id)).toEqual([
      { question: 'greeting', answer: 'warm', count: 6 },
      { question: 'solved', answer: 'yes', count: 5 },
      { question: 'solved', answer: 'no', count: 1 },
    ]);
    expect(models.requests.map(saidIn).toSorted()).toEqual(['five', 'four', 'one', 'six', 'three', 'two']);
    await batches.sweep();
    expect(models.requests).toHaveLength(6);
    await requireSoundBooks(database.sql, caller.workspaceId);
  });

  it('leaves out a call that was erased after the batch had found it', async () => {
    const [call] = await seedTalks(database.sql, caller, ['one']);
    const { callId } = call!;
    const { workspaceId, userId } = caller;
    const { id, total } = await createJudgeBatch(database.sql, {
      ...{ id: randomUUID(), workspaceId, userId, apiKeyId: null, model: null, samples: 1, filter: {}, now: NOW },
      ...{ rubricId: RUBRIC_ID, rubricName: 'Support', questions: QUESTIONS },
      calls: [callId, 'call_erased'].map((each) => ({ callId: each, evaluationId: randomUUID() })),
    });
    expect(total).toBe(1);
    const { batches } = batchesOf();
    await batches.sweep();
    expect(await batchOf(id)).toMatchObject({ status: 'completed' });
    expect(await itemsOf(id)).toMatchObject([{ callId, status: 'judged' }]);
  });

  it('completes at once without calls', async () => {
    const { desk, batches } = batchesOf();
    const { id } = await desk.startBatch(request());
    await batches.sweep();
    expect(await batchOf(id)).toMatchObject({ status: 'completed', total: 0 });
  });

  it('continues past calls that cannot be judged, with the reason and free of charge', async () => {
    const calls = await seedTalks(database.sql, caller, ['', 'bad', 'long', 'fine']);
    const pending = await caller.admit({ createdByUserId: caller.userId });
    models.otherwise = (asked) => {
      if (saidIn(asked) === 'long') return { error: new TandemError('CONTEXT_LENGTH_EXCEEDED', 'too long') };
      return saidIn(asked) === 'bad' ? 'nonsense' : firstAnswers(asked);
    };
    const { desk, batches } = batchesOf();
    const callIds = [...calls, pending].map(({ callId }) => callId);
    const { id } = await desk.startBatch(request({ callIds: [...callIds, callIds[0]!] }));
    await batches.sweep();
    expect((await itemsOf(id)).map(({ error }) => error)).toEqual([
      'TRANSCRIPT_EMPTY',
      'JUDGE_ANSWER_INVALID',
      'CONTEXT_LENGTH_EXCEEDED',
      null,
      'CALL_NOT_FINISHED',
    ]);
    expect(await batchOf(id)).toMatchObject({ status: 'completed', total: 5 });
    expect(await walletOf(database.sql, caller.workspaceId)).toMatchObject({ balanceNano: USD - COST });
    const held = await database.sql`select 1 from holds where workspace_id = ${caller.workspaceId} and status = 'open'`;
    expect(held).toHaveLength(1);
  });

  it('stops only when the wallet is empty', async () => {
    caller = await seedJudge(database.sql, { balanceNano: 60_000_000n });
    await seedTalks(
      database.sql,
      caller,
      Array.from({ length: 8 }, (_, i) => `call ${i}`),
    );
    models.otherwise = (asked) => ({
      text: firstAnswers(asked),
      usage: { promptTokens: 400, completionTokens: 100 },
    });
    const { desk, batches } = batchesOf();
    const { id } = await desk.startBatch(request());
    await batches.sweep();
    expect(await batchOf(id)).toMatchObject({ status: 'stopped', stopReason: 'INSUFFICIENT_CREDITS' });
    const judged = (await itemsOf(id)).filter(({ status }) => status === 'judged').length;
    // Each costs 0.01 USD; about 0.04 USD are held for one.
    expect(judged).toBeGreaterThan(2);
    const { balanceNano, heldNano } = await walletOf(database.sql, caller.workspaceId);
    expect([balanceNano, heldNano]).toEqual([60_000_000n - BigInt(judged) * 10_000_000n, 0n]);
    await requireSoundBooks(database.sql, caller.workspaceId);
  });

  it('waits for an unavailable model and continues', async () => {
    await seedTalks(database.sql, caller, ['one', 'two', 'three']);
    models.queue(new TandemError('LLM_UNAVAILABLE', 'gone'), new TandemError('LLM_RATE_LIMITED', 'busy'));
    const { desk, batches, clock } = batchesOf();
    const { id } = await desk.startBatch(request());
    const swept = batches.sweep();
    await eventually(async () => expect(clock.waiting()).toContain(1_000));
    expect((await itemsOf(id)).filter(({ status }) => status === 'judged')).toHaveLength(1);
    clock.advance(1_000);
    await swept;
    expect(await batchOf(id)).toMatchObject({ status: 'completed' });
    expect(await charges()).toHaveLength(3);
  });

  it('gives up one call that always times out, without delaying the others', async () => {
    await seedTalks(database.sql, caller, ['endless', 'one', 'two', 'three', 'four', 'five', 'six', 'seven']);
    models.otherwise = (asked) =>
      saidIn(asked) === 'endless' ? { error: new TandemError('LLM_TIMEOUT', 'slow') } : firstAnswers(asked);
    const { desk, batches, clock } = batchesOf();
    const { id } = await desk.startBatch(request());
    const swept = batches.sweep();
    await eventually(async () => {
      clock.advance(500);
      expect((await batchOf(id)).status).toBe('completed');
    });
    await swept;
    expect((await itemsOf(id)).map(({ status, error }) => error ?? status)).toEqual([
      'LLM_TIMEOUT',
      ...Array.from({ length: 7 }, () => 'judged'),
    ]);
    expect(models.requests.map(saidIn).slice(4, 8)).not.toContain('endless');
    expect(models.requests.map(saidIn).filter((said) => said === 'endless')).toHaveLength(3);
    expect(await charges()).toHaveLength(7);
  });

  it('stops with all calls pending when the model never answers', async () => {
    await seedTalks(database.sql, caller, ['one', 'two']);
    models.otherwise = () => ({ error: new TandemError('LLM_TIMEOUT', 'slow') });
    const { desk, batches, clock } = batchesOf();
    const { id } = await desk.startBatch(request());
    const swept = batches.sweep();
    await eventually(async () => {
      clock.advance(300_000);
      expect((await batchOf(id)).status).toBe('stopped');
    });
    await swept;
    expect(await batchOf(id)).toMatchObject({ stopReason: 'LLM_TIMEOUT' });
    expect((await itemsOf(id)).map(({ status }) => status)).toEqual(['pending', 'pending']);
  });

  it('stops when its requester leaves the workspace', async () => {
    const { sql } = database;
    await seedTalks(sql, caller, ['one']);
    const other = await createUser(sql, { email: 'heir@example.com', passwordHash: null, now: NOW });
    await addMember(sql, { workspaceId: caller.workspaceId, userId: other.id, role: 'owner', now: NOW });
    const { desk, batches } = batchesOf();
    const { id } = await desk.startBatch(request());
    await removeMember(sql, { workspaceId: caller.workspaceId, userId: caller.userId, actorRole: 'owner', now: NOW });
    await batches.sweep();
    expect(await batchOf(id)).toMatchObject({ status: 'stopped', stopReason: 'FORBIDDEN' });
    expect(models.requests).toEqual([]);
  });

  it('stops when its API key is revoked', async () => {
    const { sql } = database;
    const { workspaceId, userId } = caller;
    await seedTalks(sql, caller, ['one']);
    const names = { name: 'ci', prefix: 'sk_abc', last4: 'wxyz', keyHash: randomBytes(32) };
    const { id: apiKeyId } = await createApiKey(sql, { workspaceId, createdByUserId: userId, ...names, now: NOW });
    const { desk, batches } = batchesOf();
    const { id } = await desk.startBatch(request({}, { apiKeyId }));
    expect(await revokeApiKey(sql, { workspaceId, id: apiKeyId, now: NOW })).toBe(true);
    await batches.sweep();
    expect(await batchOf(id)).toMatchObject({ status: 'stopped', stopReason: 'FORBIDDEN' });
    expect(models.requests).toEqual([]);
  });

  it('includes finished, transcribed calls of the requester within the period', async () => {
    const { sql } = database;
    const [first, , silent] = await seedTalks(sql, caller, ['one', 'two', '']);
    await caller.admit({ createdByUserId: caller.userId });
    const [theirs] = await seedTalks(sql, { ...caller, userId: caller.userId }, ['theirs']);
    await sql`update calls set created_by_user_id = null where call_id = ${theirs!.callId}`;
    const { desk } = batchesOf();
    const totalOf = async (calls: StartBatchRequest['calls']) => (await desk.startBatch(request(calls))).total;
    expect(await totalOf({})).toBe(2);
    expect(await totalOf({ state: 'failed', agentNumber: first!.agentNumber! })).toBe(2);
    expect(await totalOf({ state: 'completed' })).toBe(0);
    expect(await totalOf({ agentNumber: '+919899999999' })).toBe(0);
    expect(await totalOf({ to: NOW })).toBe(0);
    expect(await totalOf({ from: NOW })).toBe(2);
    expect(await totalOf({ callIds: [silent!.callId] })).toBe(1);
    await expect(totalOf({ callIds: [theirs!.callId] })).rejects.toMatchObject({ code: 'TRANSCRIPT_NOT_OWNED' });
    await expect(totalOf({ callIds: ['call_none'] })).rejects.toMatchObject({
      code: 'CALL_NOT_FOUND',
      details: { call_ids: ['call_none'] },
    });
    models.models = [];
    await expect(totalOf({})).rejects.toMatchObject({ code: 'LLM_NOT_CONFIGURED' });
  });
});

describe('size of a judge batch', () => {
  it('may reach a thousand calls and no more', async () => {
    const { sql } = database;
    const [call] = await seedTalks(sql, caller, ['one']);
    const copies = async (first: number, last: number) => {
      for (const table of ['calls', 'call_transcripts', 'call_transcript_segments']) {
        await sql`
          insert into ${sql(table)}
          select (jsonb_populate_record(t, jsonb_build_object(
            'call_id', t.call_id || '-' || n, 'reference_id', t.call_id || '-' || n, 'hold_id', null))).*
          from ${sql(table)} t, generate_series(${first}::int, ${last}::int) n where t.call_id = ${call!.callId}`;
      }
    };
    await copies(1, 999);
    const { desk } = batchesOf();
    const { id, total } = await desk.startBatch(request());
    expect([total, (await itemsOf(id)).length]).toEqual([1_000, 1_000]);
    await copies(1_000, 1_000);
    await expect(desk.startBatch(request())).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
    expect((await desk.startBatch(request({ callIds: [`${call!.callId}-1000`] }))).total).toBe(1);
  });
});

describe('closing judge', () => {
  it('stops current evaluations free of charge, and leaves them to the next server', async () => {
    await seedTalks(database.sql, caller, ['one', 'two', 'three', 'four', 'five', 'six']);
    models.queue({ neverEnds: true });
    const first = batchesOf();
    const { id } = await first.desk.startBatch(request());
    const swept = first.batches.sweep();
    await eventually(async () =>
      expect((await itemsOf(id)).filter(({ status }) => status === 'judged')).toHaveLength(3),
    );
    await first.batches.close();
    await swept;
    expect(models.endings).toContain('aborted');
    await eventually(async () =>
      expect(await walletOf(database.sql, caller.workspaceId)).toMatchObject({ heldNano: 0n }),
    );
    expect(await batchOf(id)).toMatchObject({ status: 'running', leasedUntil: null });
    await batchesOf({ node: 'node-2' }).batches.sweep();
    expect(await batchOf(id)).toMatchObject({ status: 'completed' });
    expect(await charges()).toHaveLength(6);
    await requireSoundBooks(database.sql, caller.workspaceId);
  });

  it('starts nothing more', async () => {
    const { desk, batches } = batchesOf();
    await batches.close();
    const { id } = await desk.startBatch(request());
    await batches.sweep();
    expect(await batchOf(id)).toMatchObject({ status: 'pending' });
  });
});

describe('batches of one workspace', () => {
  it('run one after the other, in parallel with other workspaces', async () => {
    await seedTalks(database.sql, caller, ['one']);
    const { desk, batches, clock } = batchesOf();
    models.queue({ neverEnds: true });
    const first = await desk.startBatch(request());
    clock.jumpTo(later(1));
    const second = await desk.startBatch(request());
    const swept = batches.sweep();
    await eventually(async () => expect(models.requests).toHaveLength(1));
    const hasty = caller;
    caller = await seedJudge(database.sql, { balanceNano: USD });
    await seedTalks(database.sql, caller, ['other']);
    const other = await desk.startBatch(request());
    const sweptToo = batches.sweep();
    await eventually(async () => expect(await batchOf(other.id)).toMatchObject({ status: 'completed' }));
    caller = hasty;
    expect(await batchOf(first.id)).toMatchObject({ status: 'running' });
    expect(await batchOf(second.id)).toMatchObject({ status: 'pending' });
    await batches.close();
    await Promise.all([swept, sweptToo]);
    await batchesOf().batches.sweep();
    expect(await batchOf(first.id)).toMatchObject({ status: 'completed' });
    expect(await batchOf(second.id)).toMatchObject({ status: 'completed' });
    expect(await charges()).toHaveLength(2);
  });
});

describe('batch and two servers', () => {
  it('never runs on both at once, and moves when a lease expires', async () => {
    await seedTalks(database.sql, caller, ['one', 'two']);
    models.queue({ neverEnds: true }, { neverEnds: true });
    const first = batchesOf({ leaseMs: 60_000 });
    const { id } = await first.desk.startBatch(request());
    const swept = first.batches.sweep();
    await eventually(async () => expect(models.requests).toHaveLength(2));
    const second = batchesOf({ node: 'node-2' });
    await second.batches.sweep();
    expect(models.requests).toHaveLength(2);
    // The first server hangs longer than its lease.
    second.clock.advance(60_000);
    await second.batches.sweep();
    expect(await batchOf(id)).toMatchObject({ status: 'completed' });
    first.clock.advance(15_000);
    await swept;
    expect(models.endings.filter((ending) => ending === 'aborted')).toHaveLength(2);
    expect(await charges()).toHaveLength(2);
    expect(await walletOf(database.sql, caller.workspaceId)).toMatchObject({
      ...{ balanceNano: USD - 2n * COST, heldNano: 0n },
    });
    await requireSoundBooks(database.sql, caller.workspaceId);
  });
});

describe('jobs of the judge', () => {
  it('start batches without polling', async () => {
    const { sql, url } = database;
    await seedTalks(sql, caller, ['one']);
    const jobs = await openJobs({ databaseUrl: url });
    closers.push(() => jobs.close());
    const logger = createTestLogger();
    const judge = await openJudge({
      sql,
      jobs,
      models,
      node: 'n',
      boot: 'b',
      nodes: noOtherNodes,
      clock: systemClock,
      logger,
    });
    closers.push(() => judge.close());
    const { id } = await judge.desk.startBatch(request());
    await eventually(async () => expect(await batchOf(id)).toMatchObject({ status: 'completed' }));
    await judge.close();
  });
});

it('a batch continues after a kill without judging or charging a call twice', async () => {
  const { sql, url } = database;
  await seedTalks(
    sql,
    caller,
    Array.from({ length: 12 }, (_, i) => `call ${i}`),
  );
  const { desk, batches } = batchesOf();
  await batches.close();
  const { id } = await desk.startBatch(request());
  const script = fileURLToPath(new URL('./batch-process.ts', import.meta.url));
  const child = spawn(process.execPath, [script, url, '6'], { stdio: 'inherit' });
  const exited = once(child, 'exit');
  const judged = async () => (await itemsOf(id)).filter(({ status }) => status === 'judged');
  const underWay = async () => await sql`select 1 from judge_evaluations where batch_id = ${id} and state = 'judging'`;
  await eventually(async () => {
    expect(await judged()).toHaveLength(6);
    expect(await underWay()).toHaveLength(2);
  });
  child.kill('SIGKILL');
  await exited;
  expect((await walletOf(sql, caller.workspaceId)).heldNano).toBeGreaterThan(0n);

  const jobs = await openJobs({ databaseUrl: url });
  closers.push(() => jobs.close());
  await sql`update judge_batches set leased_until = now() where id = ${id}`;
  const judge = await openJudge({
    sql,
    jobs,
    models,
    node: 'node-1',
    boot: 'boot-2',
    nodes: noOtherNodes,
    clock: systemClock,
    logger: createTestLogger(),
  });
  closers.push(() => judge.close());
  await eventually(async () => expect(await batchOf(id)).toMatchObject({ status: 'completed' }));
  await judge.close();
  expect(await judged()).toHaveLength(12);
  expect(models.requests).toHaveLength(6);
  expect(new Set(await charges()).size).toBe(12);
  expect(await charges()).toHaveLength(12);
  expect(await walletOf(sql, caller.workspaceId)).toMatchObject({ balanceNano: USD - 12n * COST, heldNano: 0n });
  await requireSoundBooks(sql, caller.workspaceId);
});
