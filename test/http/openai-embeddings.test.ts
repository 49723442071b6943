import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { presentEmbeddings } from '../../http/schemas/openai-embedding.ts';
import { topUp, walletOf } from '../../storage/ledger.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';

const USD = 1_000_000_000n;
const PER_CHARACTER = 100n;

let fixture: HttpFixture;
let client: OpenAI;
let clientOf: (key: string) => OpenAI;
beforeAll(async () => {
  fixture = await createHttpFixture();
  const baseURL = `${await fixture.app.listen({ host: '127.0.0.1', port: 0 })}/v1`;
  clientOf = (apiKey) => new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  client = clientOf(fixture.owner.key);
  const { workspaceId } = fixture.owner;
  await topUp(fixture.sql, { workspaceId, amountNano: USD, paymentType: 'one_time', operationKey: 'fund' });
});
afterAll(() => fixture[Symbol.asyncDispose]());

const model = 'text-embedding-3-small';
const balance = async () => (await walletOf(fixture.sql, fixture.owner.workspaceId)).balanceNano;
const cosine = (a: number[], b: number[]) => a.reduce((sum, value, at) => sum + value * b[at]!, 0);

describe('OpenAI embeddings client', () => {
  it('receives an embedding of length 1 for a text, and pays for its characters', async () => {
    const before = await balance();
    const input = 'Where is my parcel? 😀';
    const { data, response } = await client.embeddings.create({ model, input }).withResponse();
    expect(data).toMatchObject({ object: 'list', model: fixture.memory.embeddingModel() });
    expect(data.data).toHaveLength(1);
    const { embedding } = data.data[0]!;
    expect(cosine(embedding, embedding)).toBeCloseTo(1, 5);
    expect(data.usage.prompt_tokens).toBeGreaterThan(3);
    expect(data.usage.total_tokens).toBe(data.usage.prompt_tokens);
    expect(before - (await balance())).toBe(PER_CHARACTER * BigInt([...input].length));
    expect(response.headers.get('x-credit-charged')).toBe(String(Number(before - (await balance())) / 1e9));
    const [usage] = await fixture.sql`select service, operation from usage_logs order by position desc limit 1`;
    expect(usage).toEqual({ service: 'memory', operation: 'embed' });
  });

  it('receives embeddings of length 1 for texts without letters', async () => {
    const { data } = await client.embeddings.create({ model, input: ['😀', '😀😀', '?!', '...'] });
    const [smile, smiles, ...others] = data.map(({ embedding }) => embedding);
    for (const one of [smile!, smiles!, ...others]) expect(cosine(one, one)).toBeCloseTo(1, 5);
    expect(cosine(smile!, smiles!)).toBeGreaterThan(0.9);
    for (const other of others) expect(Math.abs(cosine(smile!, other))).toBeLessThan(0.5);
  });

  it('receives embeddings in the order of the texts, with similar ones close together', async () => {
    const input = ['The parcel arrives on Monday.', 'Der Zug ist pünktlich.', 'The parcels arrived on Monday.'];
    const { data } = await client.embeddings.create({ model: fixture.memory.embeddingModel(), input });
    expect(data.map(({ index, object }) => [index, object])).toEqual(input.map((_, at) => [at, 'embedding']));
    const [first, second, third] = data.map(({ embedding }) => embedding);
    expect(cosine(first!, third!)).toBeGreaterThan(cosine(first!, second!) + 0.2);
  });

  it('receives the same numbers as floats and in base64', async () => {
    const input = 'Hello there.';
    const floats = (await client.embeddings.create({ model, input, encoding_format: 'float' })).data[0]!.embedding;
    const packed = (await client.embeddings.create({ model, input, encoding_format: 'base64' })).data[0]!.embedding;
    const bytes = Buffer.from(String(packed), 'base64');
    expect(floats.map((_, at) => bytes.readFloatLE(4 * at))).toEqual(floats);
    const asked = { model, input, dimensions: floats.length, user: 'u-1' };
    expect((await client.embeddings.create(asked)).data[0]!.embedding).toEqual(floats);
  });

  it('embeds 2048 texts in one request', async () => {
    const input = Array.from({ length: 2048 }, (_, at) => `Memory number ${at}.`);
    const { data } = await client.embeddings.create({ model, input });
    expect(data).toHaveLength(2048);
  });

  it.each(['float', 'base64'] as const)('lets other work run while a long answer in %s is written', async (format) => {
    const embeddings = Array.from({ length: 2048 }, (_, at) => new Float32Array(768).fill(1 / (at + 3)));
    let turns = 0;
    let isDone = false;
    const count = () => {
      turns++;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    const json = await presentEmbeddings({ embeddings, tokens: 7 }, { model, format });
    isDone = true;
    expect(turns).toBeGreaterThan(5);
    const { data, ...rest } = JSON.parse(json);
    expect(rest).toEqual({ object: 'list', model, usage: { prompt_tokens: 7, total_tokens: 7 } });
    expect(data).toHaveLength(2048);
    expect(data[2047]).toMatchObject({ object: 'embedding', index: 2047 });
  });

  it('throws the matching error for each rejection, and pays nothing', async () => {
    const before = await balance();
    const create = (more: object = {}, by = client) => by.embeddings.create({ model, input: 'a', ...more });
    for (const input of [
      [1, 2],
      [[1, 2], [3]],
    ]) {
      await expect(create({ input })).rejects.toMatchObject({
        ...{ status: 400, code: 'VALIDATION_FAILED', param: 'input', type: 'invalid_request_error' },
        message: '400 input must be text. Send strings instead of token arrays.',
      });
    }
    await expect(create({ dimensions: 7 })).rejects.toMatchObject({
      ...{ status: 400, param: 'dimensions' },
      message: expect.stringMatching(
        /^400 dimensions must be \d+, because this model makes embeddings of one length only/,
      ),
    });
    await expect(create({ model: 'svc-tiny' })).rejects.toMatchObject({ status: 404, code: 'MODEL_NOT_FOUND' });
    await expect(create({}, clientOf('sk_wrong'))).rejects.toThrow(OpenAI.AuthenticationError);
    const poor = await fixture.addWorkspace();
    await expect(create({}, clientOf(poor.key))).rejects.toMatchObject({ status: 402, code: 'INSUFFICIENT_CREDITS' });
    expect(await balance()).toBe(before);
  });
});

describe('POST /v1/embeddings', () => {
  it.each([
    [{}, 'input is required.'],
    [{ input: 7 }, 'input must be a string or an array of strings.'],
    [{ input: [] }, 'input must not have fewer than 1 items.'],
    [{ input: '' }, 'input must not have fewer than 1 characters.'],
    [{ input: ' ' }, 'input is invalid. Expected: Text of up to 20000 characters. Must not be blank.'],
    [{ input: ['a', ''] }, 'input.1 must not have fewer than 1 characters.'],
    [{ input: ['a', {}] }, 'input.1 must be a string.'],
    [{ input: ['a', 7, {}] }, 'input must be text. Send strings instead of token arrays.'],
    [{ input: 'a'.repeat(20_001) }, 'input must not have more than 20000 characters.'],
    [{ input: Array.from({ length: 2049 }, () => 'a') }, 'input must not have more than 2048 items.'],
    [{ input: 'a', encoding_format: 'int8' }, 'encoding_format must be one of float, base64.'],
    [{ input: 'a', dimensions: 0 }, 'dimensions must be at least 1.'],
    [{ input: 'a', purpose: 'search' }, 'purpose is not a known field.'],
  ])('rejects a body that is invalid (%#): %2$s', async (body, message) => {
    const { status, body: answer } = await fixture.call('POST', '/v1/embeddings', { body });
    expect([status, answer.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect(answer.message).toContain(message);
  });

  it('rejects a key without the scope', async () => {
    const member = await fixture.addMemberWith('member');
    await fixture.sql`update api_keys set scopes = array['calls:read'] where id = ${member.keyId}`;
    const { body } = await fixture.call('POST', '/v1/embeddings', { as: member, body: { input: 'a' } });
    expect(body.details).toEqual({ required_scope: 'memory:read' });
  });
});
