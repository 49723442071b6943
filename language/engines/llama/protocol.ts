import type { Static } from 'typebox';
import type { FrameLimits } from '../../../runtime/frames.ts';
import { schemaCheck } from '../../../runtime/schema-check.ts';

/** Messages between a model's process and its owner. */

export const LLAMA_LIMITS: FrameLimits = { headBytes: 16 * 1024 * 1024, bodyBytes: 0 };

const AnswerId = { type: 'integer', minimum: 1 } as const;
const Tokens = { type: 'integer', minimum: 0 } as const;
const Schema = { type: 'object', additionalProperties: {} } as const;

const Call = {
  type: 'object',
  required: ['id', 'name', 'arguments'],
  properties: { id: { type: 'string' }, name: { type: 'string' }, arguments: { type: 'string' } },
} as const;

const Message = {
  anyOf: [
    {
      type: 'object',
      required: ['role', 'content'],
      properties: { role: { enum: ['system', 'user'] }, content: { type: 'string' } },
    },
    {
      type: 'object',
      required: ['role', 'content'],
      properties: {
        role: { const: 'assistant' },
        content: { type: ['string', 'null'] },
        toolCalls: { type: 'array', items: Call },
      },
    },
    {
      type: 'object',
      required: ['role', 'content', 'toolCallId'],
      properties: { role: { const: 'tool' }, content: { type: 'string' }, toolCallId: { type: 'string' } },
    },
  ],
} as const;

const Tool = {
  type: 'object',
  required: ['name', 'description', 'parameters'],
  properties: {
    name: { type: 'string' },
    description: { type: ['string', 'null'] },
    parameters: { anyOf: [Schema, { type: 'null' }] },
  },
} as const;

const AnswerRequestSchema = {
  type: 'object',
  required: [
    'messages',
    'tools',
    'toolChoice',
    'responseSchema',
    'temperature',
    'topP',
    'topK',
    'seed',
    'maxTokens',
    'stop',
    'enableThinking',
  ],
  properties: {
    messages: { type: 'array', items: Message },
    tools: { type: 'array', items: Tool },
    toolChoice: {
      anyOf: [
        { const: 'auto' },
        { const: 'none' },
        { const: 'required' },
        { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
      ],
    },
    responseSchema: { anyOf: [Schema, { type: 'null' }] },
    temperature: { type: ['number', 'null'], minimum: 0, maximum: 100 },
    topP: { type: ['number', 'null'], minimum: 0, maximum: 1 },
    topK: { type: ['integer', 'null'], minimum: 0 },
    seed: { type: ['integer', 'null'] },
    maxTokens: { type: ['integer', 'null'], minimum: 1 },
    stop: { type: 'array', items: { type: 'string', minLength: 1 } },
    enableThinking: { type: 'boolean' },
  },
} as const;

/** A `CompletionRequest` without the fields that only the owner needs. */
export type AnswerRequest = Static<typeof AnswerRequestSchema>;

const LoadSchema = {
  type: 'object',
  required: ['type', 'modelPath', 'sequences', 'contextTokens'],
  properties: {
    type: { const: 'load' },
    modelPath: { type: 'string', minLength: 1 },
    sequences: { type: 'integer', minimum: 1, maximum: 64 },
    /** Null: as the model was trained, up to a limit. */
    contextTokens: { type: ['integer', 'null'], minimum: 16 },
  },
} as const;

export type Load = Static<typeof LoadSchema>;

const ToChildSchema = {
  anyOf: [
    LoadSchema,
    {
      type: 'object',
      required: ['type', 'id', 'request'],
      properties: { type: { const: 'answer' }, id: AnswerId, request: AnswerRequestSchema },
    },
    { type: 'object', required: ['type', 'id'], properties: { type: { const: 'stop' }, id: AnswerId } },
  ],
} as const;

export type ToChild = Static<typeof ToChildSchema>;
export const ToChild = schemaCheck(ToChildSchema);

const PartSchema = {
  anyOf: [
    { type: 'object', required: ['type', 'text'], properties: { type: { const: 'text' }, text: { type: 'string' } } },
    {
      type: 'object',
      required: ['type', 'text'],
      properties: { type: { const: 'reasoning' }, text: { type: 'string' } },
    },
    {
      type: 'object',
      required: ['type', 'index', 'id', 'name', 'arguments'],
      properties: {
        type: { const: 'toolCall' },
        index: { type: 'integer', minimum: 0 },
        id: { type: ['string', 'null'] },
        name: { type: ['string', 'null'] },
        arguments: { type: 'string' },
      },
    },
  ],
} as const;

export type AnswerPart = Static<typeof PartSchema>;

const LoadedSchema = {
  type: 'object',
  required: ['contextTokens', 'description'],
  properties: {
    contextTokens: { type: 'integer', minimum: 1 },
    /** Shown to people. */
    description: { type: 'string', maxLength: 200 },
  },
} as const;

export type Loaded = Static<typeof LoadedSchema>;

const EndSchema = {
  type: 'object',
  required: ['reason', 'promptTokens', 'completionTokens'],
  properties: { reason: { enum: ['stop', 'length', 'tool_calls'] }, promptTokens: Tokens, completionTokens: Tokens },
} as const;

export type AnswerEnd = Static<typeof EndSchema>;

const FromChildSchema = {
  anyOf: [
    { type: 'object', required: ['type', 'loaded'], properties: { type: { const: 'loaded' }, loaded: LoadedSchema } },
    {
      type: 'object',
      required: ['type', 'message'],
      properties: { type: { const: 'notLoaded' }, message: { type: 'string' } },
    },
    {
      type: 'object',
      required: ['type', 'id', 'part'],
      properties: { type: { const: 'part' }, id: AnswerId, part: PartSchema },
    },
    {
      type: 'object',
      required: ['type', 'id', 'end'],
      properties: { type: { const: 'finished' }, id: AnswerId, end: EndSchema },
    },
    {
      type: 'object',
      required: ['type', 'id', 'code', 'message'],
      properties: {
        type: { const: 'failed' },
        id: AnswerId,
        /** `stopped` follows a stop message. */
        code: { enum: ['stopped', 'context_too_long', 'refused', 'unavailable'] },
        message: { type: 'string' },
      },
    },
  ],
} as const;

export type FromChild = Static<typeof FromChildSchema>;
export const FromChild = schemaCheck(FromChildSchema);
