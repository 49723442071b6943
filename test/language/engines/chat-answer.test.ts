import { describe, expect, it } from 'vitest';
import { ChatAnswer } from '../../../language/engines/openai/chat-answer.ts';
import * as fc from '../../properties.ts';

/** Almost valid chunks: OpenAI field names with arbitrary values. */
const anything = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.string(), fc.constantFrom('<think>', '</think>', 'stop'));
const toolCall = fc.record(
  {
    index: fc.oneof(fc.integer(), anything),
    id: anything,
    function: fc.oneof(anything, fc.record({ name: anything, arguments: anything }, { requiredKeys: [] })),
  },
  { requiredKeys: [] },
);
const delta = fc.record(
  {
    content: anything,
    reasoning: anything,
    reasoning_content: anything,
    tool_calls: fc.oneof(anything, fc.array(toolCall)),
  },
  { requiredKeys: [] },
);
const logprob = fc.record(
  { token: anything, logprob: fc.oneof(anything, fc.double()), bytes: anything, top_logprobs: anything },
  { requiredKeys: [] },
);
const logprobs = fc.oneof(anything, fc.record({ content: fc.oneof(anything, fc.array(logprob)) }));
const choice = fc.record({ delta, message: delta, finish_reason: anything, logprobs }, { requiredKeys: [] });
const chunk = fc.oneof(
  anything,
  fc.record({ choices: fc.oneof(anything, fc.array(choice, { maxLength: 2 })), usage: anything }, { requiredKeys: [] }),
);

describe('chat answers', () => {
  it('consist of valid parts for any chunks, with calls numbered from 0 and named once', () => {
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 12 }), (chunks) => {
        const answer = new ChatAnswer({ wantsLogprobs: true });
        const parts = [...chunks.flatMap((value) => answer.read(value)), ...answer.end()];
        const named: number[] = [];
        for (const part of parts) {
          switch (part.type) {
            case 'text':
            case 'reasoning':
              expect(part.text).toBeTypeOf('string');
              expect(part.text).not.toBe('');
              break;
            case 'toolCall':
              expect(part.arguments).toBeTypeOf('string');
              expect(part.id === null).toBe(part.name === null);
              if (part.name === null) expect(named).toContain(part.index);
              else expect(named.push(part.index)).toBe(part.index + 1);
              break;
            case 'logprobs':
              expect(part.tokens.length).toBeGreaterThan(0);
              for (const { token, logprob } of part.tokens) {
                expect(token).toBeTypeOf('string');
                expect(logprob).toSatisfy(Number.isFinite);
              }
              break;
            default:
              expect.fail('unexpected type of part');
          }
        }
        expect(['stop', 'length', 'tool_calls', 'content_filter']).toContain(answer.reason);
        expect(answer.producedCharacters).toBe(answer.produced.join('').length);
      }),
      { numRuns: 500 },
    );
  });
});
