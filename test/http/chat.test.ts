import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { topUp, walletOf } from '../../storage/ledger.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';

const USD = 1_000_000_000n;
const TOKEN_NANO = 20_000n;
const PATH = '/v1/chat/completions';

let fixture: HttpFixture;
let owner: Member;
beforeAll(async () => {
  fixture = await createHttpFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(async () => {
  owner = await fixture.addWorkspace();
  await fund(owner, USD);
  fixture.models.requests.length = 0;
});

async function fund({ workspaceId }: Member, amountNano: bigint) {
  await topUp(fixture.sql, { workspaceId, amountNano, paymentType: 'one_time', operationKey: `fund:${workspaceId}` });
}

const ask = (body: object, more: object = {}) => fixture.call('POST', PATH, { as: owner, body, ...more });
const said = (content: string) => [{ role: 'user', content }];
const wallet = () => walletOf(fixture.sql, owner.workspaceId);
const lastAsked = () => fixture.models.requests.at(-1)!;

/** The frames of a stream, as they came. */
function framesOf(raw: Buffer) {
  return raw
    .toString()
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: '))
    .map((frame) => (frame === 'data: [DONE]' ? frame : JSON.parse(frame.slice(6))));
}

describe('an answer as JSON', () => {
  it('has the fields of the specification, costs its tokens, and says so', async () => {
    fixture.models.queue({ text: ['Hel', 'lo 😀.'], usage: { promptTokens: 9, completionTokens: 3 } });
    const { status, body, headers } = await ask({ messages: said('Hi 😀'), stream: false });
    expect(status).toBe(200);
    expect(body).toEqual({
      id: expect.stringMatching(/^chatcmpl-/),
      object: 'chat.completion',
      created: Math.floor(fixture.now.current.getTime() / 1000),
      model: 'tiny-1.0',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello 😀.', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
      chat_id: expect.stringMatching(/^chat_/),
      response_time_ms: expect.any(Number),
    });
    expect(headers['x-credit-charged']).toBe('0.00024');
    expect(await wallet()).toMatchObject({ balanceNano: USD - 12n * TOKEN_NANO, heldNano: 0n });
    expect(headers['x-credit-balance']).toBe('0.99976');
    const [row] = await fixture.sql`select entry_id, service, operation, quantity::float8 as quantity, unit, resource_id
      from usage_logs where workspace_id = ${owner.workspaceId}`;
    expect(row).toEqual({
      entryId: headers['x-billing-tx'],
      service: 'llm',
      operation: 'chat',
      quantity: 12,
      unit: 'token',
      resourceId: body.id,
    });
  });
});

describe('an answer as events', () => {
  it('has its frames in the order of the specification', async () => {
    fixture.models.queue({ reasoning: 'Hm.', text: ['Hel', 'lo.'], usage: { promptTokens: 9, completionTokens: 3 } });
    const { status, headers, raw } = await ask({
      messages: said('Hi'),
      chat_template_kwargs: { enable_thinking: true },
    });
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/event-stream; charset=utf-8');
    const frames = framesOf(raw);
    const same = {
      id: expect.stringMatching(/^chatcmpl-/),
      object: 'chat.completion.chunk',
      created: expect.any(Number),
      model: 'tiny-1.0',
    };
    expect(frames).toEqual([
      { type: 'chat_id', chat_id: expect.stringMatching(/^chat_/), ...same, choices: [] },
      { ...same, choices: [{ index: 0, delta: { role: 'assistant', reasoning_content: 'Hm.' }, finish_reason: null }] },
      { ...same, choices: [{ index: 0, delta: { content: 'Hel' }, finish_reason: null }] },
      { ...same, choices: [{ index: 0, delta: { content: 'lo.' }, finish_reason: null }] },
      { ...same, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
      {
        type: 'done',
        response_time_ms: expect.any(Number),
        ...same,
        choices: [],
        usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
        billing: { 'x-credit-balance': '0.99976', 'x-credit-charged': '0.00024', 'x-billing-tx': expect.any(String) },
      },
      'data: [DONE]',
    ]);
    expect(lastAsked()).toMatchObject({ topK: 20, enableThinking: true, model: 'tiny-1.0' });
  });
});
