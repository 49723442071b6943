import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AskRequest, ChatAsk } from '../../../actors/chat/chat-desk.ts';
import { TandemError } from '../../../machines/errors.ts';
import { eventually } from '../../eventually.ts';
import { USD } from '../../storage/seed.ts';
import {
  answerOf,
  type ChatDeskFixture,
  createChatDeskFixture,
  listening,
  partsOf,
  TOKEN_NANO,
} from './chat-desk-fixture.ts';

let fixture: ChatDeskFixture;
beforeAll(async () => {
  fixture = await createChatDeskFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(() => fixture.fund());

/** 4 tokens for the message and 25 for its hundred characters. */
const HUNDRED = 'a'.repeat(100);
const PROMPT_TOKENS = 29;

function requestFor(choices: number, more: Partial<ChatAsk> = {}): AskRequest {
  return fixture.request(HUNDRED, { what: { choices, ...more } });
}

async function bothEnded(): Promise<void> {
  await eventually(() => expect(fixture.models.endings).toHaveLength(2));
  expect(fixture.models.endings).not.toContain('finished');
}

describe('completion with several choices', () => {
  it('generates interleaved choices, and charges the prompt once', async () => {
    const { desk } = fixture.deskOf();
    const counted = { promptTokens: 30, completionTokens: 4 };
    fixture.models.queue({ text: ['one ', 'two'], usage: counted }, { text: 'three', usage: counted });
    const answering = await desk.ask(requestFor(2, { seed: 7, maxTokens: 50 }), listening());
    const { parts, finished } = await answerOf(answering);
    const textOf = (choice: number) =>
      parts.map((part) => (part.type === 'text' && part.choice === choice ? part.text : '')).join('');
    expect([textOf(0), textOf(1)]).toEqual(['one two', 'three']);
    expect(finished).toMatchObject({ reasons: ['stop', 'stop'], usage: { promptTokens: 30, completionTokens: 8 } });
    expect(fixture.models.requests).toMatchObject([
      { seed: 7, maxTokens: 50 },
      { seed: 8, maxTokens: 50 },
    ]);
    expect(await fixture.wallet()).toMatchObject({ balanceNano: USD - 38n * TOKEN_NANO, heldNano: 0n });
    const [row] = await fixture.rows();
    expect(row).toMatchObject({ state: 'completed', promptTokens: 30, completionTokens: 8 });
  });

  it('holds the cost of all choices, and divides the remaining money among them', async () => {
    const { desk } = fixture.deskOf();
    fixture.models.queue({ text: 'one', neverEnds: true }, { text: 'two', neverEnds: true });
    const left = new AbortController();
    const { parts } = await desk.ask(requestFor(2, { maxTokens: 50 }), left.signal);
    await parts.next();
    const prompt = Math.ceil(PROMPT_TOKENS * 1.1) + 16;
    expect(await fixture.wallet()).toMatchObject({ heldNano: BigInt(prompt + 2 * 50) * TOKEN_NANO });
    left.abort();
    await desk.close();
    await bothEnded();

    await fixture.fund(BigInt(PROMPT_TOKENS + 40) * TOKEN_NANO);
    fixture.models.queue({ text: 'b'.repeat(900) }, { text: 'c'.repeat(900) });
    const { finished } = await answerOf(await fixture.deskOf().desk.ask(requestFor(2), listening()));
    expect(fixture.models.requests).toMatchObject([{ maxTokens: 20 }, { maxTokens: 20 }]);
    expect(finished).toMatchObject({ reasons: ['length', 'length'], usage: { completionTokens: 40 } });
    expect(await fixture.wallet()).toMatchObject({ balanceNano: 0n, heldNano: 0n });
  });

  it('fails if the wallet does not cover the start of each choice', async () => {
    await fixture.fund(BigInt(PROMPT_TOKENS + 31) * TOKEN_NANO);
    const { desk } = fixture.deskOf();
    await expect(desk.ask(requestFor(2), listening())).rejects.toMatchObject({ code: 'INSUFFICIENT_CREDITS' });
    fixture.models.queue('one');
    await partsOf(await desk.ask(requestFor(1), listening()));
  });

  it('fails free of charge if one choice fails, and stops the others', async () => {
    const { desk } = fixture.deskOf();
    const error = new TandemError('LLM_RATE_LIMITED', 'Too many.');
    fixture.models.queue({ text: 'one', neverEnds: true }, { error });
    const { parts } = await desk.ask(requestFor(2), listening());
    await expect(partsOf({ parts })).rejects.toMatchObject({ code: 'LLM_RATE_LIMITED' });
    await desk.close();
    expect(await fixture.wallet()).toMatchObject({ balanceNano: USD, heldNano: 0n });
    await bothEnded();
  });

  it('stores the first choice in the chat', async () => {
    const { desk } = fixture.deskOf();
    fixture.models.queue('one', 'two');
    const { chatId } = await answerOf(await desk.ask(requestFor(2), listening()));
    expect(await fixture.kept(chatId!)).toMatchObject([{ content: HUNDRED }, { role: 'assistant', content: 'one' }]);
  });
});
