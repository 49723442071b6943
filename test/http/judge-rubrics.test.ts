import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { listAudit } from '../../storage/queries/audit.ts';
import { MAX_RUBRICS_PER_WORKSPACE } from '../../storage/queries/rubrics.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';

const UNKNOWN = '00000000-0000-4000-8000-000000000000';
const QUESTIONS = {
  greeting: { type: 'choice', criteria: { warm: 'By name.', cold: 'Without one.' } },
  solved: { type: 'boolean', question: 'Was it solved?' },
};
/** The rubric as returned: boolean questions get criteria. */
const SHOWN = {
  ...QUESTIONS,
  solved: { ...QUESTIONS.solved, criteria: { yes: 'It is so.', no: 'It is not so, or nothing shows it.' } },
};

let fixture: HttpFixture;
let admin: Member;
let author: Member;
let colleague: Member;
let viewer: Member;
beforeAll(async () => {
  fixture = await createHttpFixture();
  admin = await fixture.addMemberWith('admin');
  author = await fixture.addMemberWith('member');
  colleague = await fixture.addMemberWith('developer');
  viewer = await fixture.addMemberWith('viewer');
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(() => fixture.sql`delete from judge_rubrics`);

const create = (body: object = {}, as: Member = author) =>
  fixture.call('POST', '/judge/rubrics', { as, body: { name: 'Support', questions: QUESTIONS, ...body } });
const patch = (id: string, body: unknown, as: Member = author) =>
  fixture.call('PATCH', `/judge/rubrics/${id}`, { as, body });
const get = (id: string, as: Member = author) => fixture.call('GET', `/judge/rubrics/${id}`, { as });
const list = async (query = '', as: Member = author) => {
  const { body } = await fixture.call('GET', `/judge/rubrics?${query}`, { as });
  return body.data.rubrics.map(({ name }: { name: string }) => name);
};

describe('POST /judge/rubrics', () => {
  it('creates a rubric and returns it', async () => {
    const { status, body } = await create({ name: '  Support ', description: '', model: 'jev-latest' });
    expect(status).toBe(201);
    expect(body.data).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'Support',
      description: null,
      model: 'jev-latest',
      questions: SHOWN,
      question_count: 2,
      shared: false,
      is_mine: true,
      created_at: '2026-01-02T03:04:05.678Z',
      updated_at: '2026-01-02T03:04:05.678Z',
    });
    expect((await get(body.data.id)).body.data).toEqual(body.data);
  });

  it('keeps the order of questions and answers, whatever their keys', async () => {
    const text =
      '{"zz":{"type":"choice","criteria":{"z":"1","a":"2","__proto__":"3"}},"__proto__":{"type":"boolean","criteria":{"no":"n","yes":"y"}},"constructor":{"type":"choice","criteria":{"नहीं":"","हाँ":"x"}}}';
    const { status, body } = await create({ questions: JSON.parse(text) });
    expect(status).toBe(201);
    const { raw } = await get(body.data.id);
    expect(raw.toString()).toContain(
      '{"zz":{"type":"choice","criteria":{"z":"1","a":"2","__proto__":"3"}},"__proto__":',
    );
    expect(body.data.question_count).toBe(3);
    expect(({} as { type?: string }).type).toBeUndefined();
  });

  it('accepts keys and answers in any script, and astral characters', async () => {
    const questions = { 'Ist es höflich? 😀': { type: 'choice', criteria: { '👍': 'ja', 𝒏ein: 'nein' } } };
    expect((await create({ questions, name: '📞 नमस्ते' })).body.data).toMatchObject({ questions });
  });

  it.each([
    ['no questions', { questions: {} }],
    [
      'too many questions',
      { questions: Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`q${i}`, QUESTIONS.solved])) },
    ],
    ['a choice of one', { questions: { a: { type: 'choice', criteria: { yes: 'y' } } } }],
    ['a choice of none', { questions: { a: { type: 'choice' } } }],
    [
      'a boolean of more than two',
      { questions: { a: { type: 'boolean', criteria: { yes: 'y', no: 'n', maybe: 'm' } } } },
    ],
    ['another type', { questions: { a: { type: 'score', criteria: { 1: 'a', 2: 'b' } } } }],
    ['a blank key', { questions: { ' ': QUESTIONS.solved } }],
    ['a key of two lines', { questions: { 'a\nb': QUESTIONS.solved } }],
    ['a key that is too long', { questions: { ['a'.repeat(101)]: QUESTIONS.solved } }],
    ['questions in a list', { questions: [QUESTIONS.solved] }],
    ['a blank name', { name: ' ' }],
    ['a name with NUL', { name: 'a\0' }],
    ['an unknown field', { question_count: 7 }],
    ['no name', { name: undefined }],
  ])('rejects %s', async (_, body) => {
    expect((await create(body)).body).toMatchObject({ code: 'VALIDATION_FAILED' });
  });

  it('reserves a name once per workspace, even for simultaneous requests', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => create({}, i % 2 ? author : colleague)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409, 409, 409, 409, 409]);
    expect(answers.find(({ status }) => status === 409)?.body.code).toBe('RUBRIC_NAME_TAKEN');
    expect((await create({}, await fixture.addWorkspace())).status).toBe(201);
  });

  it('lets only owners and admins share a rubric', async () => {
    expect((await create({ shared: true })).body).toMatchObject({ code: 'FORBIDDEN' });
    expect((await create({ shared: true }, admin)).body.data).toMatchObject({ shared: true });
    expect((await create({ name: 'Other' }, viewer)).status).toBe(403);
  });

  it('enforces the limit of rubrics per workspace', async () => {
    const { workspaceId, userId } = author;
    await fixture.sql`
      insert into judge_rubrics (id, workspace_id, name, questions, question_count, shared, created_by_user_id, created_at, updated_at)
      select gen_random_uuid(), ${workspaceId}, 'r' || i, '{}'::json, 1, false, ${userId}, now(), now()
      from generate_series(1, ${MAX_RUBRICS_PER_WORKSPACE}) i`;
    expect((await create()).body).toMatchObject({ code: 'RUBRIC_LIMIT_REACHED', details: { limit: 500 } });
  });
});

describe('GET /judge/rubrics', () => {
  it('shows a rubric to its author, owners and admins, and once shared to the workspace', async () => {
    const { id } = (await create()).body.data;
    const readers = [author, admin, fixture.owner, colleague, viewer, await fixture.addWorkspace()];
    const seen = async () => await Promise.all(readers.map(async (as) => (await get(id, as)).status));
    expect(await seen()).toEqual([200, 200, 200, 404, 404, 404]);
    expect((await get(id, colleague)).body.code).toBe('RUBRIC_NOT_FOUND');
    await patch(id, { shared: true }, admin);
    expect(await seen()).toEqual([200, 200, 200, 200, 200, 404]);
    expect((await get(id, colleague)).body.data.is_mine).toBe(false);
  });

  it('lists visible rubrics, newest first, filtered by author and sharing', async () => {
    await create({ name: 'mine' });
    fixture.now.current = new Date(fixture.now.current.getTime() + 1000);
    await create({ name: 'theirs' }, colleague);
    await create({ name: 'for all', shared: true }, admin);
    expect((await list()).toSorted()).toEqual(['for all', 'mine']);
    expect(await list('mine=true')).toEqual(['mine']);
    expect(await list('mine=false')).toEqual(['for all']);
    expect(await list('shared=true')).toEqual(['for all']);
    expect(await list('shared=false')).toEqual(['mine']);
    expect(await list('shared=false&mine=0', admin)).toEqual(['theirs', 'mine']);
    expect((await list('', admin)).length).toBe(3);
    const { body } = await fixture.call('GET', '/judge/rubrics?limit=1&page=2', { as: author });
    expect(body.data).toMatchObject({
      rubrics: [{ name: 'mine' }],
      pagination: { page: 2, limit: 1, total: 2, pages: 2 },
    });
  });
});

describe('PATCH /judge/rubrics/:id', () => {
  it('changes only the fields in the body', async () => {
    const created = (await create({ description: 'Old', model: 'tiny-1.0' })).body.data;
    const at = fixture.now.current;
    fixture.now.current = new Date(at.getTime() + 1000);
    const changed = (await patch(created.id, { description: '' })).body.data;
    expect(changed).toEqual({ ...created, description: null, updated_at: fixture.now.current.toISOString() });
    const questions = { only: { type: 'choice', criteria: { a: 'A.', b: 'B.' } } };
    const replaced = (await patch(created.id, { questions, model: null, name: 'New' })).body.data;
    expect(replaced).toMatchObject({ name: 'New', model: null, questions, question_count: 1 });
    expect((await get(created.id)).body.data).toEqual(replaced);
  });

  it.each([
    [{}],
    [{ nothing: 1 }],
    [{ questions: {} }],
    [{ name: '' }],
    [{ name: null }],
    [{ shared: 'yes' }],
    [null],
    [[]],
  ])('rejects %j', async (body) => {
    const { id } = (await create()).body.data;
    const answer = await patch(id, body);
    expect([answer.status, answer.body.code]).toEqual([400, 'VALIDATION_FAILED']);
  });

  it('admits the author, owners and admins', async () => {
    const { id } = (await create({ shared: true }, admin)).body.data;
    expect((await patch(id, { name: 'Mine' })).body).toMatchObject({ code: 'RUBRIC_NOT_OWNED' });
    expect((await patch(id, { name: 'Theirs' }, fixture.owner)).body.data.name).toBe('Theirs');
    expect((await patch(id, { name: 'x' }, viewer)).status).toBe(403);
    expect((await patch(UNKNOWN, { name: 'x' })).body.code).toBe('RUBRIC_NOT_FOUND');
    expect((await patch('x', { name: 'x' })).body.code).toBe('RUBRIC_NOT_FOUND');
  });

  it('lets only owners and admins share, and the author unshare', async () => {
    const { id } = (await create()).body.data;
    const refused = await patch(id, { shared: true, name: 'Renamed' });
    expect([refused.status, refused.body.code]).toEqual([403, 'FORBIDDEN']);
    expect((await get(id)).body.data.name).toBe('Support');
    expect((await patch(id, { shared: true }, admin)).body.data.shared).toBe(true);
    expect((await patch(id, { shared: false })).body.data.shared).toBe(false);
  });

  it('rejects a taken name, even for simultaneous requests', async () => {
    const ids = await Promise.all(['a', 'b', 'c'].map(async (name) => (await create({ name })).body.data.id as string));
    expect((await patch(ids[0]!, { name: 'b' })).body.code).toBe('RUBRIC_NAME_TAKEN');
    expect((await patch(ids[0]!, { name: 'a' })).status).toBe(200);
    const answers = await Promise.all(ids.map((id) => patch(id, { name: 'the one' })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409]);
  });
});

describe('DELETE /judge/rubrics/:id', () => {
  it('admits the author, owners and admins, and frees the name', async () => {
    const { id } = (await create({ shared: true }, admin)).body.data;
    const remove = (as: Member) => fixture.call('DELETE', `/judge/rubrics/${id}`, { as });
    expect((await remove(author)).body.code).toBe('RUBRIC_NOT_OWNED');
    expect((await remove(fixture.owner)).body.data).toEqual({ id, deleted: true });
    expect((await remove(admin)).body.code).toBe('RUBRIC_NOT_FOUND');
    expect((await create()).status).toBe(201);
  });
});

it('rubric changes appear in the audit log', async () => {
  const { id } = (await create({}, admin)).body.data;
  await patch(id, { shared: true }, admin);
  await fixture.call('DELETE', `/judge/rubrics/${id}`, { as: admin });
  const { rows } = await listAudit(
    fixture.sql,
    { workspaceId: admin.workspaceId, actorUserId: admin.userId },
    { page: 1, limit: 3 },
  );
  expect(rows.map(({ action, targetId }) => [action, targetId])).toEqual([
    ['rubric.deleted', id],
    ['rubric.updated', id],
    ['rubric.created', id],
  ]);
});
