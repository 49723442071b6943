import { describe, expect, it } from 'vitest';
import { AnswerError } from '../../../language/engines/llama/answer-error.ts';
import { answerFormOf, argumentsText } from '../../../language/engines/llama/answer-form.ts';
import { historyOf } from '../../../language/engines/llama/chat-history.ts';
import { grammarSchemaOf } from '../../../language/engines/llama/grammar-schema.ts';
import type { AnswerRequest } from '../../../language/engines/llama/protocol.ts';
import type { JsonSchema } from '../../../language/llm.ts';
import * as fc from '../../properties.ts';

describe('a schema for a grammar', () => {
  it.each<[string, JsonSchema, object]>([
    ['scalars', { type: 'number', minimum: 3 }, { type: 'number' }],
    ['several types', { type: ['string', 'null'] }, { oneOf: [{ type: 'string' }, { type: 'null' }] }],
    ['lengths', { type: 'string', minLength: 2, maxLength: 5 }, { type: 'string', minLength: 2, maxLength: 5 }],
    ['dates', { type: 'string', format: 'date' }, { type: 'string', format: 'date' }],
    ['other formats', { type: 'string', format: 'email', pattern: '^a' }, { type: 'string' }],
    ['longer than it can count', { type: 'string', maxLength: 100_000 }, { type: 'string' }],
    ['a schema of schemas', { allOf: [{ type: 'boolean' }] }, { type: 'boolean' }],
    ['constants', { const: null }, { const: null }],
    [
      'constants of several parts',
      { const: { a: [1] } },
      { type: 'object', properties: { a: { type: 'array', prefixItems: [{ const: 1 }], minItems: 1, maxItems: 1 } } },
    ],
    ['objects', { properties: { a: { type: 'integer' } } }, { type: 'object', properties: { a: { type: 'integer' } } }],
    ['free objects', { type: 'object' }, { type: 'object', additionalProperties: true }],
    ['arrays', { items: { type: 'null' }, maxItems: 3 }, { type: 'array', items: { type: 'null' }, maxItems: 3 }],
    [
      'definitions, whatever they are called',
      { $ref: '#/definitions/a b"c', definitions: { 'a b"c': { type: 'null' } } },
      { oneOf: [{ $ref: '#/$defs/d0' }], $defs: { d0: { type: 'null' } } },
    ],
  ])('holds %s', (_, schema, expected) => {
    expect(grammarSchemaOf(schema)).toEqual(expected);
  });

  it.each<[string, JsonSchema]>([
    ['an empty choice', { anyOf: [] }],
    ['what no value fulfils', { type: 'array', minItems: 3, maxItems: 2 }],
    ['conditions that all have to hold', { allOf: [{ type: 'string' }, { minLength: 2 }] }],
    ['a reference to elsewhere', { $ref: 'https://example.com/schema' }],
    ['a reference to a prototype', { $ref: '#/$defs/constructor' }],
    ['a type that there is not', { type: 'date' }],
    ['what is no schema', { type: 'array', items: 7 }],
    ['a property that is no property', JSON.parse('{"properties":{"__proto__":{"type":"null"}}}')],
    ['control characters', { const: 'a\u0000b' }],
    ['half a character', { enum: ['\ud800'] }],
    ['nesting without end', nested(1000)],
    ['more than anybody needs', { enum: Array.from({ length: 10_000 }, (_, index) => index) }],
  ])('does not hold %s', (_, schema) => {
    expect(() => grammarSchemaOf(schema)).toThrow(AnswerError);
  });

  it('is made of anything, or refused', () => {
    const keyword = fc.constantFrom(
      ...['type', 'properties', 'items', 'enum', 'const', 'anyOf', 'oneOf', 'allOf', '$ref', '$defs', 'required'],
      ...['prefixItems', 'additionalProperties', 'minItems', 'maxLength', 'format', '__proto__', 'constructor'],
    );
    const { anything } = fc.letrec((tie) => ({
      anything: fc.oneof(
        { depthSize: 'small' },
        fc.jsonValue(),
        fc.constantFrom('string', 'object', 'array', '#/$defs/type'),
        fc.array(tie('anything'), { maxLength: 3 }),
        fc.dictionary(keyword, tie('anything'), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(fc.dictionary(keyword, anything, { maxKeys: 4 }), fc.boolean(), (schema, optionalMayBeNull) => {
        try {
          grammarSchemaOf(schema, { optionalMayBeNull });
        } catch (error) {
          expect(error).toBeInstanceOf(AnswerError);
        }
      }),
    );
  });
});

describe('the form of an answer', () => {
  const LOOK_UP = { name: 'look_up', description: null, parameters: { type: 'object', properties: { a: {} } } };

  it('is free without tools and schema, and with tools that may be called', () => {
    expect(answerFormOf(request({}))).toEqual({ kind: 'free', functions: null, instruction: null });
    const form = answerFormOf(request({ tools: [LOOK_UP] }));
    expect(form.kind === 'free' && Object.keys(form.functions ?? {})).toEqual(['look_up']);
    expect(answerFormOf(request({ tools: [LOOK_UP], toolChoice: 'none' }))).toMatchObject({ functions: null });
  });

  it('reads the call or the answer out of what the model wrote', () => {
    const form = answerFormOf(request({ tools: [LOOK_UP], responseSchema: { type: 'boolean' } }));
    if (form.kind !== 'json' || form.read === null) throw new Error('another form');
    expect(form.read({ tool: 'look_up', arguments: { a: 1 } })).toEqual({
      call: { name: 'look_up', arguments: '{"a":1}' },
    });
    expect(form.read({ answer: false })).toEqual({ text: 'false' });
  });

  it.each(['__proto__', 'two words', '', 'x"y'])('refuses a tool that is named %j', (name) => {
    expect(() => answerFormOf(request({ tools: [{ ...LOOK_UP, name }] }))).toThrow(AnswerError);
  });

  it('refuses to call a tool that is not there', () => {
    expect(() => answerFormOf(request({ tools: [LOOK_UP], toolChoice: { name: 'constructor' } }))).toThrow(AnswerError);
    expect(() => answerFormOf(request({ toolChoice: 'required' }))).toThrow(AnswerError);
  });

  it('leaves out of arguments what was optional and is null', () => {
    const schema = {
      type: 'object',
      properties: { city: {}, day: {}, where: { type: 'object', properties: { street: {} } } },
      required: ['city', 'where'],
    };
    const written = { city: null, day: null, where: { street: null } };
    expect(argumentsText(written, schema)).toBe('{"city":null,"where":{}}');
    expect(argumentsText(undefined, null)).toBe('{}');
  });
});

describe('a conversation as the library has it', () => {
  it('keeps what was said, called and answered in one turn', () => {
    const history = historyOf(
      [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: 'I look.',
          toolCalls: [{ id: 'a', name: 'look_up', arguments: '{"city":"Oslo"}' }],
        },
        { role: 'tool', content: 'It rains.', toolCallId: 'a' },
        { role: 'assistant', content: 'Rain.' },
      ],
      'Answer with JSON.',
    );
    expect(history).toEqual([
      { type: 'system', text: 'Answer with JSON.' },
      { type: 'user', text: 'Hi' },
      {
        type: 'model',
        response: [
          'I look.',
          { type: 'functionCall', name: 'look_up', params: { city: 'Oslo' }, result: 'It rains.' },
          'Rain.',
        ],
      },
    ]);
  });

  it('joins an instruction to what the system says, and keeps arguments that are no JSON as they are', () => {
    const call = { id: 'a', name: 'look_up', arguments: 'Oslo?' };
    const messages = [
      { role: 'system' as const, content: 'Be brief.' },
      { role: 'assistant' as const, content: null, toolCalls: [call] },
    ];
    expect(historyOf(messages, 'Answer with JSON.')).toEqual([
      { type: 'system', text: 'Be brief.\n\nAnswer with JSON.' },
      { type: 'model', response: [{ type: 'functionCall', name: 'look_up', params: 'Oslo?', result: null }] },
    ]);
  });

  it('has no answer of a tool that was not called', () => {
    expect(() => historyOf([{ role: 'tool', content: 'Yes', toolCallId: 'constructor' }], null)).toThrow(AnswerError);
  });
});

function request(parts: Partial<AnswerRequest>): Pick<AnswerRequest, 'tools' | 'toolChoice' | 'responseSchema'> {
  return { tools: [], toolChoice: 'auto', responseSchema: null, ...parts };
}

function nested(depth: number): JsonSchema {
  let schema: JsonSchema = { type: 'null' };
  for (let level = 0; level < depth; level++) schema = { type: 'array', items: schema };
  return schema;
}
