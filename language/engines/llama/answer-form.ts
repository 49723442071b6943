import type { JsonSchema } from '../../llm.ts';
import { AnswerError } from './answer-error.ts';
import { type GrammarSchema, grammarSchemaOf } from './grammar-schema.ts';
import type { ModelFunctions } from './node-llama-cpp.ts';
import type { AnswerRequest } from './protocol.ts';

/** The form of a model's answer: free text, with callable functions, or JSON enforced by a grammar. */
export type AnswerForm =
  | { kind: 'free'; functions: ModelFunctions | null; instruction: null }
  | {
      kind: 'json';
      grammar: GrammarSchema;
      instruction: string;
      /** Null: the JSON is the answer. */
      read: ((json: unknown) => ReadAnswer) | null;
    };

export type ReadAnswer = { text: string } | { call: { name: string; arguments: string } };

const NAME = /^[\w.-]{1,128}$/;

/**
 * Chooses the form of an answer. The library supports each model's own format of function calls, but cannot force a
 * call. Where the request demands a call, or a schema beside tools, a grammar makes the model write `{"tool": name,
 * "arguments": {...}}` or `{"answer": ...}` instead. @throws AnswerError `refused`
 */
export function answerFormOf({
  tools,
  toolChoice,
  responseSchema,
}: Pick<AnswerRequest, 'tools' | 'toolChoice' | 'responseSchema'>): AnswerForm {
  const offered =
    toolChoice === 'none'
      ? []
      : tools.filter((tool) => typeof toolChoice === 'string' || tool.name === toolChoice.name);
  if (tools.some(({ name }) => !NAME.test(name) || name === '__proto__')) {
    throw new AnswerError('refused', 'the name of a tool may hold letters, digits, _, - and . only');
  }
  if (offered.length === 0) {
    if (toolChoice !== 'none' && toolChoice !== 'auto')
      throw new AnswerError('refused', 'the tool that is asked for is not given');
    return responseSchema === null ? { kind: 'free', functions: null, instruction: null } : jsonAnswer(responseSchema);
  }
  if (toolChoice === 'auto' && responseSchema === null) {
    return { kind: 'free', functions: functionsOf(offered), instruction: null };
  }
  return callOrAnswer(offered, toolChoice === 'auto' ? responseSchema : null);
}

function jsonAnswer(schema: JsonSchema): AnswerForm {
  return {
    kind: 'json',
    grammar: grammarSchemaOf(schema),
    instruction: `Answer with JSON of this schema, and nothing else: ${JSON.stringify(schema)}`,
    read: null,
  };
}

type Tool = AnswerRequest['tools'][number];

function functionsOf(tools: readonly Tool[]): ModelFunctions {
  const functions: ModelFunctions = Object.create(null);
  for (const { name, description, parameters } of tools) {
    functions[name] = {
      ...(description === null ? {} : { description }),
      ...(parameters === null ? {} : { params: grammarSchemaOf(parameters, { optionalMayBeNull: true }) }),
    };
  }
  return functions;
}

function callOrAnswer(tools: readonly Tool[], responseSchema: JsonSchema | null): AnswerForm {
  const calls = tools.map(({ name, parameters }) => ({
    type: 'object',
    properties: {
      tool: { const: name },
      arguments: grammarSchemaOf(parameters ?? NO_PARAMETERS, { optionalMayBeNull: true }),
    },
  }));
  const answer = responseSchema === null ? null : grammarSchemaOf(responseSchema);
  const choices = answer === null ? calls : [...calls, { type: 'object', properties: { answer } }];
  return {
    kind: 'json',
    grammar: { oneOf: choices },
    instruction: [
      answer === null
        ? 'Call a tool: answer with {"tool": its name, "arguments": {...}} and nothing else.'
        : 'Either call a tool, with {"tool": its name, "arguments": {...}}, or answer with {"answer": ...}.',
      ...(responseSchema === null ? [] : [`The answer is JSON of this schema: ${JSON.stringify(responseSchema)}`]),
      `The tools are: ${JSON.stringify(tools)}`,
    ].join('\n'),
    read: (json) => readCallOrAnswer(json, tools),
  };
}

const NO_PARAMETERS: JsonSchema = { type: 'object', properties: {}, additionalProperties: false };

function readCallOrAnswer(json: unknown, tools: readonly Tool[]): ReadAnswer {
  const { tool: name, arguments: params, answer } = json as { tool?: string; arguments?: unknown; answer?: unknown };
  const tool = tools.find((one) => one.name === name);
  if (tool === undefined) return { text: JSON.stringify(answer ?? null) };
  return { call: { name: tool.name, arguments: argumentsText(params, tool.parameters) } };
}

/** Removes optional properties that the model wrote as null. */
export function argumentsText(params: unknown, schema: JsonSchema | null): string {
  return JSON.stringify(withoutNulls(params, schema) ?? {});
}

function withoutNulls(value: unknown, schema: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const { properties = {}, required = [] } = (schema ?? {}) as { properties?: JsonSchema; required?: unknown };
  const isRequired = new Set(Array.isArray(required) ? required : []);
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, one]) => one !== null || isRequired.has(name) || !Object.hasOwn(properties, name))
      .map(([name, one]) => [name, withoutNulls(one, Object.hasOwn(properties, name) ? properties[name] : null)]),
  );
}
