import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CorrectionAsk } from '../../../actors/chat/chat-desk.ts';
import { RULES_MODEL } from '../../../language/correction/rules/correct-by-rules.ts';
import { TandemError } from '../../../machines/errors.ts';
import { eventually } from '../../eventually.ts';
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
afterAll(async () => await fixture[Symbol.asyncDispose]());
beforeEach(async () => await fixture.fund());

const STYLE = {
  tone: null,
  autoCapitalize: true,
  autoPunctuate: true,
  useContractions: null,
  expandAbbreviations: false,
};

function correction(text: string, more: Partial<CorrectionAsk> = {}): CorrectionAsk {
  return { mode: 'correct', text, dictionary: [], style: STYLE, appContext: null, ...more };
}

const SENTENCE = 'this are a sentence of some length that goes on. ';
/** Slightly longer than half of a chunk, so that each paragraph becomes a chunk. */
const PARAGRAPH = SENTENCE.repeat(16).trim();
const LONG = Array.from({ length: 8 }, () => PARAGRAPH).join('\n\n');

/** Counts four characters as a token, as the desk does. */
function answersLikeAServer({ produced }: { produced: number }): void {
  fixture.models.otherwise = ({ messages }) => ({
    text: JSON.parse(messages[1]!.content!).text.replaceAll('this are', 'This is'),
    usage: {
      promptTokens: Math.ceil(messages.map(({ content }) => content).join('\n').length / 4),
      completionTokens: produced,
    },
  });
}

describe('hold for a correction by a model', () => {
  it('covers what the model may use, however short the chunks', async () => {
    const { desk } = fixture.deskOf();
    // Everything that a chunk allows, including reasoning.
    answersLikeAServer({ produced: 2 * Math.ceil(PARAGRAPH.length / 4) + 256 });
    const answering = await desk.ask(fixture.request('', { what: correction(LONG) }), listening());
    const { heldNano } = await fixture.wallet();
    const { finished } = await answerOf(answering);
    expect(fixture.models.requests).toHaveLength(8);
    for (const asked of fixture.models.requests) expect(asked.onBehalfOf).toBe(fixture.request('').workspaceId);
    expect(finished.reasons[0]).toBe('stop');
    expect(await fixture.charged()).toMatchObject({
      tokens: finished.usage.promptTokens + finished.usage.completionTokens,
    });
    expect((await fixture.charged()).amountNano).toBeLessThanOrEqual(heldNano);
  });

  it('ignores dictionary entries that are missing in the text', async () => {
    const { desk } = fixture.deskOf();
    answersLikeAServer({ produced: 10 });
    const dictionary = Array.from({ length: 100 }, (_, index) => ({
      term: `${'q'.repeat(190)}${index}`,
      replacement: `${'z'.repeat(190)}${index}`,
    }));
    const heldFor = async (what: CorrectionAsk) => {
      const answering = await desk.ask(fixture.request('', { what }), listening());
      const { heldNano } = await fixture.wallet();
      await answerOf(answering);
      return heldNano;
    };
    expect(await heldFor(correction(LONG, { dictionary }))).toBe(await heldFor(correction(LONG)));
  });
});

describe('cancelled correction', () => {
  it('pays for the chunks sent to the model only', async () => {
    const { desk } = fixture.deskOf();
    answersLikeAServer({ produced: 50 });
    const left = new AbortController();
    const { parts } = await desk.ask(fixture.request('', { what: correction(LONG) }), left.signal);
    await parts.next();
    left.abort();
    await partsOf({ parts }).catch(() => undefined);
    await eventually(async () => expect((await fixture.wallet()).heldNano).toBe(0n));
    const asked = fixture.models.requests.map(({ messages }) => messages.map(({ content }) => content).join('\n'));
    expect(asked.length).toBeLessThan(4);
    const [row] = await fixture.rows();
    const prompts = asked.reduce((sum, prompt) => sum + Math.ceil(prompt.length / 4), 0);
    expect(row).toMatchObject({ state: 'abandoned' });
    expect(row!.promptTokens).toBeGreaterThan(0);
    expect(row!.promptTokens).toBeLessThanOrEqual(prompts);
    expect(row!.completionTokens).toBeGreaterThanOrEqual(50);
  });

  it('pays for tokens that the client never received', async () => {
    const { desk } = fixture.deskOf();
    fixture.models.queue({ text: ['this is a ', 'sentence '], neverEnds: true });
    const left = new AbortController();
    const { parts } = await desk.ask(fixture.request('', { what: correction(PARAGRAPH) }), left.signal);
    const taken = parts.next().catch(() => undefined);
    await eventually(async () => expect(fixture.models.requests).toHaveLength(1));
    left.abort();
    await taken;
    await eventually(async () => expect((await fixture.wallet()).heldNano).toBe(0n));
    const [row] = await fixture.rows();
    expect(row).toMatchObject({ state: 'abandoned', completionTokens: 6 });
  });
});

describe('correction with a dictionary', () => {
  it('may exceed the length of the text without truncation', async () => {
    fixture.models.models = [];
    const { desk } = fixture.deskOf();
    const replacement = 'A very long name of a very large company. '.repeat(4).trim();
    const what = correction('acme acme acme acme', { dictionary: [{ term: 'acme', replacement }] });
    const { text, finished } = await answerOf(await desk.ask(fixture.request('', { what }), listening()));
    expect(finished).toMatchObject({ reasons: ['stop'], model: RULES_MODEL });
    expect(text).toBe(Array.from({ length: 4 }, () => replacement).join(' '));
  });
});

describe('correction by a model that fails midway', () => {
  it('charges the model for its chunks, and the rules for the others', async () => {
    const { desk } = fixture.deskOf();
    fixture.models.queue(
      { text: PARAGRAPH.replaceAll('this are', 'This is'), usage: { promptTokens: 700, completionTokens: 200 } },
      new TandemError('LLM_UNAVAILABLE', 'The server is away.'),
    );
    const what = correction(`${PARAGRAPH}\n\n${PARAGRAPH}`);
    const { text, finished } = await answerOf(await desk.ask(fixture.request('', { what }), listening()));
    const rest = text.slice(text.indexOf('\n\n') + 2);
    expect(finished.usage).toEqual({
      promptTokens: 700 + Math.ceil(PARAGRAPH.length / 4),
      completionTokens: 200 + Math.ceil(rest.length / 4),
      isEstimated: true,
    });
    expect((await fixture.charged()).amountNano).toBe(
      BigInt(finished.usage.promptTokens + finished.usage.completionTokens) * TOKEN_NANO,
    );
  });

  it('costs nothing when the request names the model', async () => {
    const { desk } = fixture.deskOf();
    fixture.models.queue(
      PARAGRAPH.replaceAll('this are', 'This is'),
      new TandemError('LLM_UNAVAILABLE', 'The server is away.'),
    );
    const what = correction(`${PARAGRAPH}\n\n${PARAGRAPH}`);
    const answering = await desk.ask(fixture.request('', { what, model: 'tiny-1.0' }), listening());
    await expect(answerOf(answering)).rejects.toMatchObject({ code: 'LLM_UNAVAILABLE' });
    expect(await fixture.charged()).toEqual({ tokens: 0, amountNano: 0n });
    expect((await fixture.wallet()).heldNano).toBe(0n);
  });
});
