import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import type { FrameLimits } from '../../../runtime/frames.ts';

/** What the owner of a model's process and that process say to each other. */

export const LLAMA_LIMITS: FrameLimits = { headBytes: 16 * 1024 * 1024, bodyBytes: 0 };

const AnswerId = Type.Integer({ minimum: 1 });
const Tokens = Type.Integer({ minimum: 0 });
const Schema = Type.Record(Type.String(), Type.Unknown());

const Call = Type.Object({ id: Type.String(), name: Type.String(), arguments: Type.String() });

const Message = Type.Union([
  Type.Object({ role: Type.Union([Type.Literal('system'), Type.Literal('user')]), content: Type.String() }),
  Type.Object({
    role: Type.Literal('assistant'),
    content: Type.Union([Type.String(), Type.Null()]),
    toolCalls: Type.Optional(Type.Array(Call)),
  }),
  Type.Object({ role: Type.Literal('tool'), content: Type.String(), toolCallId: Type.String() }),
]);

const Tool = Type.Object({
  name: Type.String(),
  description: Type.Union([Type.String(), Type.Null()]),
  parameters: Type.Union([Schema, Type.Null()]),
});

const AnswerRequestSchema = Type.Object({
  messages: Type.Array(Message),
  tools: Type.Array(Tool),
  toolChoice: Type.Union([
    Type.Literal('auto'),
    Type.Literal('none'),
    Type.Literal('required'),
    Type.Object({ name: Type.String() }),
  ]),
  responseSchema: Type.Union([Schema, Type.Null()]),
  temperature: Type.Union([Type.Number({ minimum: 0, maximum: 100 }), Type.Null()]),
  topP: Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.Null()]),
  topK: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
  seed: Type.Union([Type.Integer(), Type.Null()]),
  maxTokens: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()]),
  stop: Type.Array(Type.String({ minLength: 1 })),
  enableThinking: Type.Boolean(),
});

/** A `CompletionRequest` without what is the owner's business. */
export type AnswerRequest = Static<typeof AnswerRequestSchema>;

const LoadSchema = Type.Object({
  type: Type.Literal('load'),
  modelPath: Type.String({ minLength: 1 }),
  sequences: Type.Integer({ minimum: 1, maximum: 64 }),
  /** Null: as it was trained, within reason. */
  contextTokens: Type.Union([Type.Integer({ minimum: 16 }), Type.Null()]),
});

export type Load = Static<typeof LoadSchema>;

const ToChildSchema = Type.Union([
  LoadSchema,
  Type.Object({ type: Type.Literal('answer'), id: AnswerId, request: AnswerRequestSchema }),
  Type.Object({ type: Type.Literal('stop'), id: AnswerId }),
]);

export type ToChild = Static<typeof ToChildSchema>;
export const ToChild = Compile(ToChildSchema);

const PartSchema = Type.Union([
  Type.Object({ type: Type.Literal('text'), text: Type.String() }),
  Type.Object({ type: Type.Literal('reasoning'), text: Type.String() }),
  Type.Object({
    type: Type.Literal('toolCall'),
    index: Type.Integer({ minimum: 0 }),
    id: Type.Union([Type.String(), Type.Null()]),
    name: Type.Union([Type.String(), Type.Null()]),
    arguments: Type.String(),
  }),
]);

export type AnswerPart = Static<typeof PartSchema>;

const LoadedSchema = Type.Object({
  contextTokens: Type.Integer({ minimum: 1 }),
  /** Of the model, for a person. */
  description: Type.String({ maxLength: 200 }),
});

export type Loaded = Static<typeof LoadedSchema>;

const EndSchema = Type.Object({
  reason: Type.Union([Type.Literal('stop'), Type.Literal('length'), Type.Literal('tool_calls')]),
  promptTokens: Tokens,
  completionTokens: Tokens,
});

/** How an answer ended. */
export type AnswerEnd = Static<typeof EndSchema>;

const FromChildSchema = Type.Union([
  Type.Object({ type: Type.Literal('loaded'), loaded: LoadedSchema }),
  Type.Object({ type: Type.Literal('notLoaded'), message: Type.String() }),
  Type.Object({ type: Type.Literal('part'), id: AnswerId, part: PartSchema }),
  Type.Object({ type: Type.Literal('finished'), id: AnswerId, end: EndSchema }),
  Type.Object({
    type: Type.Literal('failed'),
    id: AnswerId,
    /** `stopped`: as it was told. */
    code: Type.Union([
      Type.Literal('stopped'),
      Type.Literal('context_too_long'),
      Type.Literal('refused'),
      Type.Literal('unavailable'),
    ]),
    message: Type.String(),
  }),
]);

export type FromChild = Static<typeof FromChildSchema>;
export const FromChild = Compile(FromChildSchema);
