import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import { modelOf } from '../language/fake-language-models.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());

beforeEach(() => {
  fixture.models.models = [modelOf('tiny-1.0', { ownedBy: 'library', contextTokens: 4096 }), modelOf('big-2.0')];
});

async function listed(path = '/models') {
  const { status, body } = await fixture.call('GET', path);
  expect(status).toBe(200);
  expect(body).toMatchObject({ success: true, object: 'list' });
  return body.data as { id: string; type: string; resolves_to?: string }[];
}

describe.each(['/models', '/v1/models'])('GET %s', (path) => {
  it('lists chat, recognition, speech and embedding models, and the targets of aliases', async () => {
    expect(await listed(path)).toEqual([
      expect.objectContaining({ id: 'svc-tiny', type: 'chat', owned_by: 'tandem', resolves_to: 'tiny-1.0' }),
      expect.objectContaining({ id: 'jev-latest', type: 'judge', resolves_to: 'tiny-1.0' }),
      {
        id: 'tiny-1.0',
        object: 'model',
        created: 1_767_225_600,
        owned_by: 'library',
        type: 'chat',
        context_tokens: 4096,
      },
      expect.objectContaining({ id: 'big-2.0', type: 'chat' }),
      { id: 'pocketsphinx/en-us', object: 'model', created: 0, owned_by: 'pocketsphinx', type: 'stt' },
      { id: 'svc Fast', object: 'model', created: 0, owned_by: 'tandem', type: 'tts' },
      {
        ...{ id: fixture.memory.embeddingModel(), object: 'model', created: 0 },
        owned_by: 'tandem',
        type: 'embedding',
      },
    ]);
  });

  it('lists recognisers, voices and embedder without a language model', async () => {
    fixture.models.models = [];
    expect((await listed(path)).map(({ type }) => type)).toEqual(['stt', 'tts', 'embedding']);
  });

  it('requires a key', async () => {
    expect((await fixture.call('GET', path, { as: null })).status).toBe(401);
  });
});

describe('GET /models', () => {
  it('lists the other models while the language model server fails', async () => {
    const list = fixture.models.list;
    fixture.models.list = async () => {
      throw new TandemError('LLM_UNAVAILABLE', 'It cannot answer.');
    };
    expect((await listed()).map(({ type }) => type)).toEqual(['stt', 'tts', 'embedding']);
    fixture.models.list = list;
  });

  it('works with the OpenAI client', async () => {
    const address = await fixture.app.listen({ port: 0, host: '127.0.0.1' });
    const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: fixture.owner.key });
    const ids: string[] = [];
    for await (const model of client.models.list()) ids.push(model.id);
    expect(ids).toContain('svc-tiny');
    expect(ids).toContain('big-2.0');
    expect(await client.models.retrieve('svc-tiny')).toMatchObject({ id: 'svc-tiny', object: 'model' });
    const stt = ids.find((id) => id.includes('/'))!;
    expect(await client.models.retrieve(stt)).toMatchObject({ id: stt, type: 'stt' });
    await expect(client.models.retrieve('constructor')).rejects.toMatchObject({ status: 404, code: 'MODEL_NOT_FOUND' });
  });
});

describe('GET /v1/models/{id}', () => {
  it('finds an id with a slash, encoded or not', async () => {
    const { body } = await fixture.call('GET', '/v1/models');
    const { id } = (body as unknown as { data: { id: string }[] }).data.find((model) => model.id.includes('/'))!;
    for (const path of [id, encodeURIComponent(id)]) {
      const answer = await fixture.call('GET', `/v1/models/${path}`);
      expect([answer.status, (answer.body as unknown as { id: string }).id]).toEqual([200, id]);
    }
    const unknown = await fixture.call('GET', '/v1/models/no/such/model');
    expect([unknown.status, unknown.body.code]).toEqual([404, 'MODEL_NOT_FOUND']);
  });
});

describe('request for an unconfigured language model', () => {
  it('gets 503 with the missing setting and a retry after an hour', async () => {
    fixture.models.models = [];
    const { status, body, headers } = await fixture.call('POST', '/judge/evaluate', {
      body: { questions: { polite: { type: 'choice', criteria: { yes: 'It is.', no: 'It is not.' } } }, output: 'Hi.' },
    });
    expect([status, body.code]).toEqual([503, 'LLM_NOT_CONFIGURED']);
    expect([headers['retry-after'], body.retry_after]).toEqual(['3600', 3600]);
  });
});
