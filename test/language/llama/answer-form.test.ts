import { describe, expect, it } from 'vitest';
import { AnswerError } from '../../../language/engines/llama/answer-error.ts';
import { answerFormOf, argumentsText } from '../../../language/engines/llama/answer-form.ts';
import { historyOf } from '../../../language/engines/llama/chat-history.ts';
import { grammarSchemaOf } from '../../../language/engines/llama/grammar-schema.ts';
import type { AnswerRequest } from '../../../language/engines/llama/protocol.ts';
import type { JsonSchema } from '../../../language/llm.ts';
import * as fc from '../../properties.ts';

describe('JSON schema for a grammar', () => {
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
      'definitions with unusual names',
      { $ref: '#/definitions/a b"c', definitions: { 'a b"c': { type: 'null' } } },
      { oneOf: [{ $ref: '#/$defs/d0' }], $defs: { d0: { type: 'null' } } },
    ],
  ])('accepts %s', (_, schema, expected) => {
    expect(grammarSchemaOf(schema)).toEqual(expected);
  });

  it.each<[string, JsonSchema]>([
    ['an empty choice', { anyOf: [] }],
    ['a schema that no value satisfies', { type: 'array', minItems: 3, maxItems: 2 }],
    ['allOf', { allOf: [{ type: 'string' }, { minLength: 2 }] }],
    ['a reference to elsewhere', { $ref: 'https://example.com/schema' }],
    ['a reference to a prototype', { $ref: '#/$defs/constructor' }],
    ['an unknown type', { type: 'date' }],
    ['items that are not a schema', { type: 'array', items: 7 }],
    ['a prototype property', JSON.parse('{"properties":{"__proto__":{"type":"null"}}}')],
    ['control characters', { const: 'a\u0000b' }],
    ['a lone surrogate', { enum: ['\ud800'] }],
    ['extreme nesting', nested(1000)],
    ['an oversized enum', { enum: Array.from({ length: 10_000 }, (_, index) => index) }],
  ])('rejects %s', (_, schema) => {
    expect(() => grammarSchemaOf(schema)).toThrow(AnswerError);
  });

  it('compiles or rejects any schema', () => {
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

describe('answer form', () => {
  const LOOK_UP = { name: 'look_up', description: null, parameters: { type: 'object', properties: { a: {} } } };

  it('leaves the answer free without tools and schema, and with optional tools', () => {
    expect(answerFormOf(request({}))).toEqual({ kind: 'free', functions: null, instruction: null });
    const form = answerFormOf(request({ tools: [LOOK_UP] }));
    expect(form.kind === 'free' && Object.keys(form.functions ?? {})).toEqual(['look_up']);
    expect(answerFormOf(request({ tools: [LOOK_UP], toolChoice: 'none' }))).toMatchObject({ functions: null });
  });

  it('parses the tool call or the answer from the output', () => {
    const form = answerFormOf(request({ tools: [LOOK_UP], responseSchema: { type: 'boolean' } }));
    if (form.kind !== 'json' || form.read === null) throw new Error('another form');
    expect(form.read({ tool: 'look_up', arguments: { a: 1 } })).toEqual({
      call: { name: 'look_up', arguments: '{"a":1}' },
    });
    expect(form.read({ answer: false })).toEqual({ text: 'false' });
  });

  it.each(['__proto__', 'two words', '', 'x"y'])('rejects a tool named %j', (name) => {
    expect(() => answerFormOf(request({ tools: [{ ...LOOK_UP, name }] }))).toThrow(AnswerError);
  });

  it('rejects a call of an unknown tool', () => {
    expect(() => answerFormOf(request({ tools: [LOOK_UP], toolChoice: { name: 'constructor' } }))).toThrow(AnswerError);
    expect(() => answerFormOf(request({ toolChoice: 'required' }))).toThrow(AnswerError);
  });

  it('omits optional arguments that are null', () => {
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

describe('chat history for llama.cpp', () => {
  it('keeps text, tool calls and results of one turn together', () => {
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

  it('appends an instruction to the system message and keeps arguments that are not JSON', () => {
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

  it('rejects the result of a tool that was not called', () => {
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
