import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { failLostCompletions } from '../../../actors/chat/lost-completions.ts';
import { TandemError } from '../../../machines/errors.ts';
import { setPrice } from '../../../storage/price-book.ts';
import { eventually } from '../../eventually.ts';
import { modelOf } from '../../language/fake-language-models.ts';
import * as fc from '../../properties.ts';
import { NOW, USD } from '../../storage/seed.ts';
import { createTestLogger } from '../fakes.ts';
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

describe('price of a completion', () => {
  it('gets held before the model starts, and settled by its token counts', async () => {
    const { desk } = fixture.deskOf();
    let heldNano = 0n;
    fixture.models.queue({ text: ['one', 'two'], usage: { promptTokens: 31, completionTokens: 11 } });
    const answering = await desk.ask(fixture.request(HUNDRED), listening());
    for await (const part of answering.parts) {
      if (part.type === 'text') heldNano = (await fixture.wallet()).heldNano;
      else expect(part).toMatchObject({ usage: { promptTokens: 31, completionTokens: 11, isEstimated: false } });
    }
    // The prompt plus a tenth and 16, and the default maximum of an answer.
    expect(heldNano).toBe(BigInt(Math.ceil(PROMPT_TOKENS * 1.1) + 16 + 4_096) * TOKEN_NANO);
    expect(await fixture.wallet()).toMatchObject({ balanceNano: USD - 42n * TOKEN_NANO, heldNano: 0n });
    expect(await fixture.charged()).toEqual({ tokens: 42, amountNano: 42n * TOKEN_NANO });
    expect(await fixture.rows()).toMatchObject([{ state: 'completed', promptTokens: 31, completionTokens: 11 }]);
  });

  it('stays within max_tokens of the request', async () => {
    const { desk } = fixture.deskOf();
    fixture.models.queue('Hello.');
    const request = fixture.request(HUNDRED, { what: { maxTokens: 7 } });
    await partsOf(await desk.ask(request, listening()));
    expect(fixture.models.requests[0]).toMatchObject({ maxTokens: 7, onBehalfOf: request.workspaceId });
  });

  it('stays within the context, so that the rest of the wallet remains available', async () => {
    fixture.models.models = [modelOf('tiny-1.0', { contextTokens: 400 })];
    const { desk } = fixture.deskOf();
    fixture.models.queue({ text: 'Hello.', neverEnds: true });
    const left = new AbortController();
    const { parts } = await desk.ask(fixture.request(HUNDRED, { what: { maxTokens: 131_072 } }), left.signal);
    await parts.next();
    expect(await fixture.wallet()).toMatchObject({ heldNano: 400n * TOKEN_NANO });
    expect(fixture.models.requests[0]).toMatchObject({ maxTokens: 400 - Math.ceil(PROMPT_TOKENS * 1.1) - 16 });
    left.abort();
    await desk.close();
  });

  it('stays within a default limit for a model of unknown context, without max_tokens in its request', async () => {
    fixture.models.models = [modelOf('tiny-1.0', { contextTokens: null })];
    const { desk } = fixture.deskOf();
    // Nine tokens each.
    fixture.models.queue({ text: Array.from({ length: 1_000 }, () => 'b'.repeat(36)) });
    const { finished } = await answerOf(await desk.ask(fixture.request(HUNDRED), listening()));
    expect(fixture.models.requests[0]).not.toHaveProperty('maxTokens');
    // The default maximum of an answer, and the unused margin of the prompt.
    const marginTokens = Math.ceil(PROMPT_TOKENS * 0.1) + 16;
    expect(finished).toMatchObject({ reasons: ['length'], usage: { completionTokens: 4_096 + marginTokens } });
  });

  it('stays within the wallet by truncating the answer', async () => {
    await fixture.fund(BigInt(PROMPT_TOKENS + 20) * TOKEN_NANO);
    const { desk } = fixture.deskOf();
    // Nine tokens each, so a little over two fit into twenty.
    fixture.models.queue({ text: Array.from({ length: 50 }, () => 'b'.repeat(36)) });
    const { text, finished } = await answerOf(await desk.ask(fixture.request(HUNDRED), listening()));
    expect(fixture.models.requests[0]).toMatchObject({ maxTokens: 20 });
    expect(text).toHaveLength(80);
    expect(finished).toMatchObject({
      reasons: ['length'],
      usage: { promptTokens: PROMPT_TOKENS, completionTokens: 20 },
    });
    expect(await fixture.wallet()).toMatchObject({ balanceNano: 0n, heldNano: 0n });
    await eventually(() => expect(fixture.models.endings).toEqual(['left']));
  });

  it.each([
    ['a', 80],
    ['😀', 40],
  ])('covers the start of an answer that arrives in one piece (%s)', async (character, characters) => {
    await fixture.fund(BigInt(PROMPT_TOKENS + 20) * TOKEN_NANO);
    const { desk } = fixture.deskOf();
    fixture.models.queue({ text: character.repeat(900) });
    const { text, chatId } = await answerOf(await desk.ask(fixture.request(HUNDRED), listening()));
    expect(text).toBe(character.repeat(characters));
    expect((await fixture.kept(chatId!))[1]!.content).toBe(text);
  });

  it.each([
    ['nothing', 0n],
    ['the prompt and fifteen tokens', BigInt(PROMPT_TOKENS + 15) * TOKEN_NANO],
  ])('leads to an error that names the shortfall with %s in the wallet', async (_what, balanceNano) => {
    await fixture.fund(balanceNano);
    const { desk } = fixture.deskOf();
    const required = (PROMPT_TOKENS + 16) * 0.00002;
    const available = Number(balanceNano) / 1e9;
    await expect(desk.ask(fixture.request(HUNDRED), listening())).rejects.toMatchObject({
      code: 'INSUFFICIENT_CREDITS',
      details: { required: expect.closeTo(required), available, shortfall: expect.closeTo(required - available) },
    });
    expect(fixture.models.requests).toEqual([]);
    expect(await fixture.rows()).toEqual([]);
  });

  it('does not depend on how the text is split', async () => {
    const { desk } = fixture.deskOf();
    fixture.models.queue({ reasoning: 'c', text: [...'b'.repeat(399)], usage: { promptTokens: Number.NaN } });
    const { finished } = await answerOf(await desk.ask(fixture.request(HUNDRED), listening()));
    expect(finished.usage).toMatchObject({ completionTokens: expect.closeTo(100, -1), isEstimated: true });
  });

  it('becomes zero when the model fails early or midway, and releases the hold', async () => {
    const { desk, logger } = fixture.deskOf();
    const failure = new TandemError('LLM_TIMEOUT', 'The model took too long.');
    fixture.models.queue(
      { error: failure },
      { text: 'half', error: failure },
      { text: 'half', error: new Error('bug') },
    );
    for (const code of ['LLM_TIMEOUT', 'LLM_TIMEOUT', 'LLM_UNAVAILABLE']) {
      const answering = await desk.ask(fixture.request(HUNDRED), listening());
      await expect(partsOf(answering)).rejects.toMatchObject({ code });
      expect(await fixture.wallet()).toMatchObject({ balanceNano: USD, heldNano: 0n });
    }
    expect(await fixture.charged()).toEqual({ tokens: 0, amountNano: 0n });
    expect((await fixture.rows()).map(({ state }) => state)).toEqual(['failed', 'failed', 'failed']);
    expect(JSON.stringify(logger.lines)).not.toContain('aaaa');
  });

  it('covers prompt and produced tokens when the client disconnects, and stops the model', async () => {
    const { desk } = fixture.deskOf();
    const left = new AbortController();
    fixture.models.queue({ text: ['b'.repeat(8), 'c'.repeat(12)], neverEnds: true });
    const { parts } = await desk.ask(fixture.request(HUNDRED), left.signal);
    await parts.next();
    await parts.next();
    const waiting = parts.next();
    waiting.catch(() => undefined);
    const reason = new Error('gone');
    left.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await eventually(() => expect(fixture.models.endings).toEqual(['aborted']));
    await desk.close();
    const amountNano = BigInt(PROMPT_TOKENS + 5) * TOKEN_NANO;
    expect(await fixture.charged()).toEqual({ tokens: PROMPT_TOKENS + 5, amountNano });
    expect(await fixture.wallet()).toMatchObject({ balanceNano: USD - amountNano, heldNano: 0n });
    expect(await fixture.rows()).toMatchObject([
      { state: 'abandoned', promptTokens: PROMPT_TOKENS, completionTokens: 5 },
    ]);
  });

  it.each([
    ['the price of the produced tokens', 'credentials end', 'UNAUTHORIZED', 'abandoned', PROMPT_TOKENS + 2],
    ['nothing', 'server closes', 'SHUTTING_DOWN', 'failed', 0],
  ] as const)('equals %s when the %s midway', async (_costs, _what, code, state, tokens) => {
    const reason = new TandemError(code, 'It is over.');
    const { desk } = fixture.deskOf();
    const ended = new AbortController();
    fixture.models.queue({ text: 'b'.repeat(8), neverEnds: true });
    const { parts } = await desk.ask(fixture.request(HUNDRED), ended.signal);
    await parts.next();
    const waiting = parts.next();
    waiting.catch(() => undefined);
    ended.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await desk.close();
    expect(await fixture.wallet()).toMatchObject({ balanceNano: USD - BigInt(tokens) * TOKEN_NANO, heldNano: 0n });
    expect(await fixture.rows()).toMatchObject([{ state, error: state === 'failed' ? 'SHUTTING_DOWN' : null }]);
  });

  it('becomes zero when the client disconnects before the model starts', async () => {
    const { desk } = fixture.deskOf();
    const left = new AbortController();
    const asking = desk.ask(fixture.request(HUNDRED), left.signal);
    left.abort(new Error('gone'));
    await expect(asking).rejects.toThrow('gone');
    await desk.close();
    expect(await fixture.wallet()).toMatchObject({ balanceNano: USD, heldNano: 0n });
    expect(fixture.models.requests).toEqual([]);
  });

  it('becomes zero for free tokens, even with an empty wallet', async () => {
    await fixture.fund(0n);
    await setPrice(fixture.database.sql, {
      scope: { workspaceId: fixture.workspaceId },
      item: 'llm',
      value: 0n,
      now: NOW,
    });
    const { desk } = fixture.deskOf();
    fixture.models.queue('Hello.');
    const { finished } = await answerOf(await desk.ask(fixture.request(HUNDRED), listening()));
    expect(finished.charge).toBeNull();
    expect(await fixture.rows()).toMatchObject([{ state: 'completed', holdId: null }]);
  });

  it.each([
    [{ promptTokens: Number.NaN, completionTokens: 3 }, PROMPT_TOKENS + 2],
    [{ promptTokens: -5, completionTokens: 3 }, PROMPT_TOKENS + 2],
    [{ promptTokens: 1e300, completionTokens: 3 }, PROMPT_TOKENS + 2],
    [{ promptTokens: 1_000_000_000, completionTokens: 3 }, PROMPT_TOKENS * 16 + 3],
    // The default maximum of an answer.
    [{ promptTokens: 30, completionTokens: 1_000_000_000 }, 30 + 4_096],
    // The hold: that maximum, and the prompt with its margin.
    [{ promptTokens: 1_000_000_000, completionTokens: 1_000_000_000 }, PROMPT_TOKENS + 3 + 16 + 4_096],
  ])('stays bounded when the server reports %j', async (usage, tokens) => {
    const { desk } = fixture.deskOf();
    fixture.models.queue({ text: 'Hello.', usage });
    const { finished } = await answerOf(await desk.ask(fixture.request(HUNDRED), listening()));
    expect(finished.usage.promptTokens + finished.usage.completionTokens).toBe(tokens);
    expect(await fixture.charged()).toEqual({ tokens, amountNano: BigInt(tokens) * TOKEN_NANO });
  });

  it('stays within the hold and the wallet, however the model counts the prompt', async () => {
    const { desk } = fixture.deskOf();
    const usage = { promptTokens: 400, completionTokens: 2 };
    const more = { promptTokens: PROMPT_TOKENS, completionTokens: 17 };
    fixture.models.queue({ text: 'Hello.', usage }, { text: 'Hello.', usage: more });
    const short = fixture.request(HUNDRED, { what: { maxTokens: 16 } });
    const { finished } = await answerOf(await desk.ask(short, listening()));
    const held = Math.ceil(PROMPT_TOKENS * 1.1) + 16 + 16;
    expect(finished.usage).toMatchObject({ promptTokens: held - 2, completionTokens: 2 });
    expect(await fixture.charged()).toEqual({ tokens: held, amountNano: BigInt(held) * TOKEN_NANO });
    const second = await answerOf(await desk.ask(short, listening()));
    expect(second.finished.usage).toMatchObject({ promptTokens: PROMPT_TOKENS, completionTokens: 16 });

    // The usage log of an empty wallet contains only paid tokens.
    const balanceNano = BigInt(PROMPT_TOKENS + 20) * TOKEN_NANO;
    await fixture.fund(balanceNano);
    fixture.models.queue({ text: 'Hello.', usage });
    await answerOf(await fixture.deskOf().desk.ask(fixture.request(HUNDRED), listening()));
    expect(await fixture.charged()).toEqual({ tokens: PROMPT_TOKENS + 20, amountNano: balanceNano });
    expect(await fixture.wallet()).toMatchObject({ balanceNano: 0n, heldNano: 0n });
  });

  it('matches the usage log for any sequence of completions', async () => {
    const { desk } = fixture.deskOf();
    let billedTokens = 0;
    const script = fc.record({
      words: fc.array(fc.string({ unit: 'binary', maxLength: 40 }), { maxLength: 5 }),
      usage: fc.constantFrom({}, { promptTokens: 40, completionTokens: 9 }, { promptTokens: 0, completionTokens: 0 }),
      end: fc.constantFrom('end', 'fail', 'leave'),
    });
    await fc.assert(
      fc.asyncProperty(script, async ({ words, usage, end }) => {
        const left = new AbortController();
        fixture.models.queue({
          text: words,
          usage,
          ...(end === 'fail' && { error: new TandemError('LLM_UNAVAILABLE', 'gone') }),
          ...(end === 'leave' && { neverEnds: true }),
        });
        const { parts } = await desk.ask(fixture.request(HUNDRED), left.signal);
        let taken = 0;
        const reading = (async () => {
          for await (const part of parts) {
            taken += 1;
            if (part.type === 'finished') billedTokens += part.usage.promptTokens + part.usage.completionTokens;
            if (end === 'leave' && taken === words.length) left.abort();
          }
        })();
        if (end === 'leave' && words.length === 0) left.abort();
        await reading.catch(() => undefined);
        if (end !== 'leave') return;
        await eventually(async () => {
          const rows = await fixture.rows();
          expect(rows.filter(({ state }) => state === 'generating')).toEqual([]);
        });
      }),
      { numRuns: 40 },
    );
    const rows = await fixture.rows();
    const abandoned = rows
      .filter(({ state }) => state === 'abandoned')
      .reduce((sum, { promptTokens, completionTokens }) => sum + promptTokens! + completionTokens!, 0);
    const tokens = billedTokens + abandoned;
    expect(await fixture.charged()).toEqual({ tokens, amountNano: BigInt(tokens) * TOKEN_NANO });
    expect(await fixture.wallet()).toMatchObject({ balanceNano: USD - BigInt(tokens) * TOKEN_NANO, heldNano: 0n });
  });
});

describe('completions of a killed process', () => {
  it('release their holds once, at the next start of their node only', async () => {
    const { database } = fixture;
    const abandonedDesk = fixture.deskOf({ boot: 'boot-1' }).desk;
    const elsewhere = fixture.deskOf({ node: 'node-2', boot: 'boot-9' }).desk;
    fixture.models.queue({ text: 'half', neverEnds: true }, { text: 'half', neverEnds: true });
    const ends = [new AbortController(), new AbortController()];
    const lost = await abandonedDesk.ask(fixture.request(HUNDRED), ends[0]!.signal);
    const alive = await elsewhere.ask(fixture.request(HUNDRED), ends[1]!.signal);
    await lost.parts.next();
    await alive.parts.next();
    const { heldNano } = await fixture.wallet();
    const options = {
      lost: { node: 'node-1', exceptBoot: 'boot-2' },
      ...{ sql: database.sql, now: NOW, logger: createTestLogger() },
    };
    expect(await failLostCompletions(options)).toBe(1);
    expect(await failLostCompletions(options)).toBe(0);
    expect(await fixture.wallet()).toMatchObject({ balanceNano: USD, heldNano: heldNano / 2n });
    const states = new Map((await fixture.rows()).map(({ id, state, error }) => [id, [state, error]]));
    expect(states.get(lost.id)).toEqual(['failed', 'INTERRUPTED']);
    expect(states.get(alive.id)).toEqual(['generating', null]);
    // If it survived after all, its results arrive too late.
    for (const end of ends) end.abort();
    await Promise.all([abandonedDesk.close(), elsewhere.close()]);
    expect((await fixture.wallet()).heldNano).toBe(0n);
    expect((await fixture.charged()).tokens).toBe(PROMPT_TOKENS + 1);
  });
});

describe('end of a completion', () => {
  it('reaches the client in time, and storage once it returns', async () => {
    const { database, models } = fixture;
    let isDown = false;
    const sql = new Proxy(database.sql, {
      get(target, name) {
        if (name === 'begin' && isDown) return () => Promise.reject(new Error('CONNECTION_ENDED'));
        return Reflect.get(target, name);
      },
    });
    const { desk, clock } = fixture.deskOf({ sql });
    models.queue({ text: 'Hello.', usage: { promptTokens: 20, completionTokens: 2 } });
    const { parts } = await desk.ask(fixture.request(HUNDRED), listening());
    await parts.next();
    isDown = true;
    const end = parts.next();
    await eventually(() => expect(clock.waiting()).toContain(1_000));
    clock.advance(4_000);
    expect((await end).value).toMatchObject({ type: 'finished', charge: null });
    isDown = false;
    clock.advance(60_000);
    await desk.close();
    expect(await fixture.charged()).toEqual({ tokens: 22, amountNano: 22n * TOKEN_NANO });
  });

  it('becomes length after the time limit, and charges the tokens so far', async () => {
    const { desk, clock } = fixture.deskOf();
    fixture.models.queue({ text: 'b'.repeat(8), neverEnds: true });
    const { parts } = await desk.ask(fixture.request(HUNDRED), listening());
    await parts.next();
    const end = parts.next();
    clock.advance(10 * 60_000);
    expect((await end).value).toMatchObject({ type: 'finished', reasons: ['length'] });
    expect(await fixture.charged()).toMatchObject({ tokens: PROMPT_TOKENS + 2 });
  });
});

it('a closed chat desk rejects requests', async () => {
  const { desk } = fixture.deskOf();
  await desk.close();
  await expect(desk.ask(fixture.request('Hi'), listening())).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
});
