import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openJudge } from '../../actors/judge/open-judge.ts';
import { openLanguageModels } from '../../language/open-language-models.ts';
import { ERROR_CATALOGUE } from '../../machines/errors.ts';
import { systemClock } from '../../runtime/clock.ts';
import { openJobs } from '../../storage/jobs.ts';
import { walletOf } from '../../storage/ledger.ts';
import { createTestLogger, noOtherNodes } from '../actors/fakes.ts';
import { seedJudge, seedTalks } from '../actors/judge/judged-calls.ts';
import { eventually } from '../eventually.ts';
import { type ModelServer, startModelServer } from '../language/model-server.ts';
import { requireSoundBooks } from '../storage/sound-books.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';

/** A fake OpenAI-compatible server and real jobs. */
let server: ModelServer;
let fixture: HttpFixture;
let owner: Member;
let judge: Awaited<ReturnType<typeof openJudge>>;
let guide: string;
const closers: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  server = await startModelServer();
  guide = await readFile(join(import.meta.dirname, '../../docs/judge.md'), 'utf8');
  fixture = await createHttpFixture({
    judge: {
      models: () => judge.desk.models(),
      evaluate: (...args) => judge.desk.evaluate(...args),
      startBatch: (...args) => judge.desk.startBatch(...args),
    },
  });
  const { sql, databaseUrl } = fixture;
  const jobs = await openJobs({ databaseUrl });
  closers.push(() => jobs.close());
  const nothing = { llmApiKey: null, llmModel: null, llmModelPath: null, llmAliases: new Map(), llmConcurrency: 4 };
  const models = await openLanguageModels({ ...nothing, llmBaseUrl: server.baseUrl }, { clock: systemClock });
  closers.push(() => models.close());
  const parts = { sql, jobs, models, node: 'n', boot: 'b', nodes: noOtherNodes, clock: systemClock };
  judge = await openJudge({ ...parts, logger: createTestLogger() });
  closers.push(() => judge.close());
  const caller = await seedJudge(sql);
  owner = await fixture.addMemberWith('owner', caller.workspaceId);
  await seedTalks(sql, { ...caller, userId: owner.userId }, ['Good morning, Asha. We call you back.', 'Hello.']);
});
afterAll(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await fixture[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});
beforeEach(() => {
  server.requests.length = 0;
});

/** In the order of the guide's rubric. */
const ANSWER = JSON.stringify({
  q1: { reason: 'By name.', evidence: ['good morning, asha'], answer: 'by_name', confidence: 0.95 },
  q2: { reason: 'A promise.', evidence: [], answer: 'no', confidence: 0.7 },
  summary: 'Friendly.',
});

function bodyOf(path: string): object {
  const body = new RegExp(`POST \\$API${path}[\\s\\S]*?-d '([^']+)'`).exec(guide)?.[1];
  expect(body, path).toBeDefined();
  return JSON.parse(body!);
}

describe('judge over a model server', () => {
  it('performs the steps of the guide: a rubric, a call, its transcript, an evaluation', async () => {
    const rubric = await fixture.call('POST', '/judge/rubrics', { as: owner, body: bodyOf('/judge/rubrics') });
    expect(rubric.status).toBe(201);
    const calls = await fixture.call('GET', '/dialer/click2call', { as: owner });
    const callId = calls.body.data.calls.at(-1).call_id;
    const transcript = await fixture.call('GET', `/dialer/click2call/${callId}/transcript`, { as: owner });
    server.chat({ text: ANSWER, usage: { prompt_tokens: 612, completion_tokens: 88 } });
    const body = { rubric_id: rubric.body.data.id, transcript: transcript.body.data, metadata: { order: 1042 } };
    const { status, body: judged } = await fixture.call('POST', '/judge/evaluate', { as: owner, body });
    expect([status, judged.code]).toEqual([200, undefined]);
    const shown = JSON.parse(/```json\n([\s\S]*?)```/.exec(guide)![1]!);
    expect(Object.keys(judged.data)).toEqual(expect.arrayContaining(Object.keys(shown)));
    expect(judged.data).toMatchObject({
      model: 'tiny-1.0',
      results: {
        greeting: { type: 'choice', answer: 'by_name', confidence: 0.95, evidence: ['Good morning, Asha'] },
        solved: { type: 'boolean', answer: 'no', evidence: [] },
      },
      usage: shown.usage,
      cost_usd: shown.cost_usd,
    });
    const [asked] = server.asked('/chat/completions');
    expect(asked!.body).toMatchObject({
      model: 'tiny-1.0',
      temperature: 0,
      response_format: { type: 'json_schema', json_schema: { name: 'judgement', strict: true } },
    });
    expect(asked!.body.messages.map(({ role }: { role: string }) => role)).toEqual(['system', 'user']);
    expect(JSON.stringify(asked!.body.response_format)).not.toContain('Asha');
  });

  it('lists its models, and whether the list comes from the cache', async () => {
    const { body } = await fixture.call('GET', '/judge/models', { as: owner });
    expect(body.data.models.map(({ name }: { name: string }) => name)).toEqual(['tiny-1.0', 'svc-tiny', 'jev-latest']);
    expect(body.data.models[0].release_date).toBe('2026-01-01');
    expect((await fixture.call('GET', '/judge/models', { as: owner })).body.data.cached).toBe(true);
  });

  it.each([
    ['has no room', [{ status: 400, error: { code: 'context_length_exceeded' } }], 'CONTEXT_LENGTH_EXCEEDED'],
    ['answers nonsense', [{ text: 'As you wish: yes!' }, { text: '{}' }], 'JUDGE_ANSWER_INVALID'],
  ])('charges nothing when the server %s', async (_, turns, code) => {
    server.chat(...turns);
    const before = await walletOf(fixture.sql, owner.workspaceId);
    const body = { questions: { polite: { type: 'boolean' } }, output: 'Hello.' };
    const refused = await fixture.call('POST', '/judge/evaluate', { as: owner, body });
    expect(refused.body.code).toBe(code);
    expect(await walletOf(fixture.sql, owner.workspaceId)).toEqual(before);
  });

  it('judges a batch of calls in a job', async () => {
    const questions = { polite: { type: 'boolean' } };
    const rubric = await fixture.call('POST', '/judge/rubrics', { as: owner, body: { name: 'Batch', questions } });
    const answer = JSON.stringify({ q1: { reason: '', evidence: [], answer: 'yes', confidence: 1 }, summary: '' });
    server.chat({ text: answer }, { text: answer });
    const body = { rubric_id: rubric.body.data.id, from: '2026-01-01' };
    const { status, body: started } = await fixture.call('POST', '/judge/batches', { as: owner, body });
    expect([status, started.data.total]).toEqual([202, 2]);
    const url = `/judge/batches/${started.data.id}`;
    await eventually(async () => {
      const { body: shown } = await fixture.call('GET', url, { as: owner });
      expect(shown.data).toMatchObject({ status: 'completed', judged: 2, answers: { polite: { yes: 2 } } });
    });
    await requireSoundBooks(fixture.sql, owner.workspaceId);
  });
});

describe('guide to the judge', () => {
  it('names only codes and operations that exist', async () => {
    const document = JSON.parse(await readFile(join(import.meta.dirname, '../../openapi.json'), 'utf8'));
    const paths = Object.keys(document.paths).map((path) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`));
    const named = [...guide.matchAll(/(?:\$API|`(?:GET |POST )?)(\/(?:dialer|judge)[\w/${}-]*)/g)].map(
      ([, path]) => path!,
    );
    expect(named.length).toBeGreaterThan(6);
    expect(named.filter((path) => !paths.some((pattern) => pattern.test(path)))).toEqual([]);
    const codes = [...guide.matchAll(/`((?!LLM_BASE|LLM_MODEL)[A-Z]+_[A-Z_]+)`/g)].map(([, code]) => code!);
    expect(codes.length).toBeGreaterThan(5);
    expect(codes.filter((code) => !(code in ERROR_CATALOGUE))).toEqual([]);
  });
});
