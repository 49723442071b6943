import { describe, expect, it } from 'vitest';
import {
  type CountedMessage,
  conversationOf,
  requireAnsweredCalls,
  tokensOf,
} from '../../../actors/chat/conversation.ts';
import type { ChatMessage } from '../../../language/llm.ts';
import * as fc from '../../properties.ts';

let serial = 0;
const counted = (message: ChatMessage, tokens = 10): CountedMessage => ({ message, tokens });
const user = (content: string, tokens?: number) => counted({ role: 'user', content }, tokens);
const assistant = (content: string, tokens?: number) => counted({ role: 'assistant', content }, tokens);
const system = (content: string, tokens?: number) => counted({ role: 'system', content }, tokens);

function exchange(calls: number, tokens?: number): CountedMessage[] {
  const ids = Array.from({ length: calls }, () => {
    serial += 1;
    return `call_${serial}`;
  });
  return [
    counted(
      { role: 'assistant', content: null, toolCalls: ids.map((id) => ({ id, name: 'f', arguments: '{}' })) },
      tokens,
    ),
    ...ids.map((id) => counted({ role: 'tool', content: 'done', toolCallId: id }, tokens)),
  ];
}

const text = fc.string({ unit: 'binary', maxLength: 5 });
const size = fc.integer({ min: 0, max: 60 });
const turn: fc.Arbitrary<CountedMessage[]> = fc
  .tuple(
    fc.tuple(text, size),
    fc.array(
      fc.oneof(
        fc.tuple(text, size).map(([content, tokens]) => [assistant(content, tokens)]),
        fc.tuple(fc.integer({ min: 1, max: 3 }), size).map(([calls, tokens]) => exchange(calls, tokens)),
        fc.tuple(text, size).map(([content, tokens]) => [system(content, tokens)]),
      ),
      { maxLength: 4 },
    ),
  )
  .map(([[content, tokens], rest]) => [user(content, tokens), ...rest.flat()]);
const history = fc.array(turn, { minLength: 1, maxLength: 8 }).map((turns) => turns.flat());

const isSystem = ({ message }: CountedMessage) => message.role === 'system';

describe('conversationOf', () => {
  it('keeps system messages, whole newest turns that fit, and all new messages', () => {
    fc.assert(
      fc.property(history, turn, fc.integer({ min: -50, max: 600 }), (stored, fresh, budgetTokens) => {
        const { messages } = conversationOf({ stored, fresh, budgetTokens });
        // Calls and results stay together.
        expect(() =>
          requireAnsweredCalls(
            messages.map(({ message }) => message),
            { freshCount: fresh.length },
          ),
        ).not.toThrow();
        const remembered = stored.filter((one) => !isSystem(one));
        const kept = messages.filter((one) => remembered.includes(one));
        // Keeps the newest turns in order, each starting with a user message.
        expect(kept).toEqual(remembered.slice(remembered.length - kept.length));
        if (kept.length > 0) {
          expect(kept[0]!.message.role).toBe('user');
          expect(tokensOf(messages)).toBeLessThanOrEqual(budgetTokens);
        }
        const said = fresh.filter((one) => !isSystem(one));
        const [first, ...more] = stored.filter(isSystem);
        if (first !== undefined) expect(messages[0]).toBe(first);
        const included = more.filter((one) => messages.includes(one));
        expect(included).toEqual(more.slice(more.length - included.length));
        expect(messages.slice(messages.length - said.length)).toEqual(said);
        // One more turn does not fit.
        const left = remembered.slice(0, remembered.length - kept.length);
        const next = left.slice(left.findLastIndex(({ message }) => message.role === 'user'));
        if (left.length > 0) expect(tokensOf(messages) + tokensOf(next)).toBeGreaterThan(budgetTokens);
      }),
      { numRuns: 500 },
    );
  });

  it('keeps the turn whose tool calls the new messages answer, whatever its length', () => {
    const [call, result] = exchange(1, 500) as [CountedMessage, CountedMessage];
    const stored = [user('old'), assistant('old'), user('new'), call];
    expect(conversationOf({ stored, fresh: [result], budgetTokens: 100 }).messages).toEqual([
      user('new'),
      call,
      result,
    ]);
  });

  it('drops middle system messages that take half of the budget', () => {
    const instructions = Array.from({ length: 9 }, (_, index) => system(`It is ${index} o'clock.`, 10));
    const stored = instructions.flatMap((one) => [one, user('a', 10), assistant('b', 10)]);
    const fresh = [system("It is 9 o'clock.", 10), user('c', 10)];
    const { messages, unsaved } = conversationOf({ stored, fresh, budgetTokens: 120 });
    // The new messages leave 100 tokens for five system messages and two and a half turns.
    expect(messages).toEqual([
      ...[instructions[0], instructions[5], instructions[6], instructions[7], instructions[8], fresh[0]],
      ...[user('a', 10), assistant('b', 10), user('a', 10), assistant('b', 10), user('c', 10)],
    ]);
    expect(unsaved).toEqual(fresh);
  });

  it('keeps a repeated system message that is neither the first nor fits beside it', () => {
    const stored = [system('Be formal.', 60), user('a'), assistant('b'), system('Be casual.', 60), user('c')];
    const fresh = [system('Be casual.', 60), user('d')];
    const { messages, unsaved } = conversationOf({ stored, fresh, budgetTokens: 150 });
    expect(messages).toEqual([stored[0], system('Be casual.', 60), user('c'), user('d')]);
    expect(unsaved).toEqual([user('d')]);
  });

  it('leaves room for a repeated system message that does not fit beside newer ones', () => {
    const stored = [system('Be kind.'), system('Be long.', 80), system('Be casual.', 35), user('a'), assistant('b')];
    const fresh = [system('Be long.', 80), user('c')];
    const { messages } = conversationOf({ stored, fresh, budgetTokens: 100 });
    expect(messages).toEqual([stored[0], ...fresh]);
  });

  it('moves repeated system messages to the front and keeps them once', () => {
    const stored = [system('Be brief.'), user('a'), assistant('b')];
    const { messages, unsaved } = conversationOf({
      stored,
      fresh: [system('Be brief.'), system('In Hindi.'), user('c')],
      budgetTokens: 1_000,
    });
    expect(messages).toEqual([stored[0], system('In Hindi.'), stored[1], stored[2], user('c')]);
    expect(unsaved).toEqual([system('In Hindi.'), user('c')]);
  });

  it('returns new messages unchanged without a history', () => {
    const fresh = [user('a'), system('later'), user('b')];
    expect(conversationOf({ stored: [], fresh, budgetTokens: 0 })).toEqual({ messages: fresh, unsaved: fresh });
  });
});

describe('requireAnsweredCalls', () => {
  const call = (...ids: string[]): ChatMessage => ({
    role: 'assistant',
    content: null,
    toolCalls: ids.map((id) => ({ id, name: 'f', arguments: '{}' })),
  });
  const result = (toolCallId: string): ChatMessage => ({ role: 'tool', content: '', toolCallId });
  const ask: ChatMessage = { role: 'user', content: '?' };

  it.each([
    ['a result without a call', [ask, result('a')], 'messages.1.tool_call_id'],
    ['a second result of one call', [ask, call('a'), result('a'), result('a')], 'messages.3.tool_call_id'],
    ['a result of an unknown call', [ask, call('a'), result('b')], 'messages.2.tool_call_id'],
    ['a question before the result', [call('a'), ask, result('a')], 'messages.1'],
    ['no result', [ask, call('a', 'b'), result('a')], 'messages'],
    ['two calls of one id', [ask, call('a', 'a'), result('a')], 'messages.1.tool_calls'],
    ['a result of an earlier turn', [call('a'), result('a'), ask, result('a')], 'messages.3.tool_call_id'],
    ['an id from the prototype', [ask, result('constructor')], 'messages.1.tool_call_id'],
  ])('rejects %s', (_what, messages, path) => {
    const check = () => requireAnsweredCalls(messages, { freshCount: messages.length });
    expect(check).toThrow(
      expect.objectContaining({ code: 'VALIDATION_FAILED', details: [expect.objectContaining({ path })] }),
    );
  });

  it('accepts results in any order', () => {
    const messages = [ask, call('a', 'b'), result('b'), result('a'), ask];
    expect(() => requireAnsweredCalls(messages, { freshCount: 5 })).not.toThrow();
  });
});
