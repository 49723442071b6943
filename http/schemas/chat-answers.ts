import { Type } from 'typebox';
import { BILLING_HEADERS } from '../billing-headers.ts';
import { nullable, responseOf, TimeSchema } from './envelope.ts';

const CHAT_ID = 'chat_3f0a9f0e-8f0b-4c1e-9a59-3c7a5f6f2f11';
const COMPLETION_ID = 'chatcmpl-9f1c2d3e-0b1a-4c5d-8e7f-6a5b4c3d2e1f';

const UsageSchema = Type.Object({
  prompt_tokens: Type.Integer({ examples: [21] }),
  completion_tokens: Type.Integer({ examples: [12] }),
  total_tokens: Type.Integer({ description: 'What is charged.', examples: [33] }),
});

const ChatIdSchema = Type.String({ examples: [CHAT_ID] });

const AnswerToolCallSchema = Type.Object({
  id: Type.String(),
  type: Type.Literal('function'),
  function: Type.Object({
    name: Type.String(),
    arguments: Type.String({ description: 'JSON, as the model wrote it: it may be anything.' }),
  }),
});

const CompletionSchema = Type.Object({
  id: Type.String({ examples: [COMPLETION_ID] }),
  object: Type.Literal('chat.completion'),
  created: Type.Integer({ description: 'Seconds since 1970.', examples: [1_767_322_800] }),
  model: Type.String({ description: 'The versioned id of the model.', examples: ['qwen3-1.7b-q8'] }),
  choices: Type.Array(
    Type.Object({
      index: Type.Integer(),
      message: Type.Object({
        role: Type.Literal('assistant'),
        content: nullable(Type.String()),
        refusal: Type.Null(),
        reasoning_content: Type.Optional(Type.String({ description: 'What the model thought first.' })),
        tool_calls: Type.Optional(Type.Array(AnswerToolCallSchema)),
      }),
      logprobs: Type.Null(),
      finish_reason: Type.Enum(['stop', 'length', 'tool_calls', 'content_filter'], {
        description: '`length`: of `max_tokens`, of the context, or of what the wallet covers.',
      }),
    }),
    {
      examples: [
        [
          {
            index: 0,
            message: { role: 'assistant', content: 'An exchange that joins two others.', refusal: null },
            logprobs: null,
            finish_reason: 'stop',
          },
        ],
      ],
    },
  ),
  usage: UsageSchema,
  chat_id: Type.Optional(Type.String({ description: 'Of a new chat.', examples: [CHAT_ID] })),
  response_time_ms: Type.Integer({ examples: [640] }),
});

const SAME = { id: COMPLETION_ID, object: 'chat.completion.chunk', created: 1_767_322_800, model: 'qwen3-1.7b-q8' };
const FRAMES = [
  { type: 'chat_id', chat_id: CHAT_ID, ...SAME, choices: [] },
  { ...SAME, choices: [{ index: 0, delta: { role: 'assistant', content: 'An exchange' }, finish_reason: null }] },
  { ...SAME, choices: [{ index: 0, delta: { content: ' that joins two others.' }, finish_reason: null }] },
  { ...SAME, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  {
    type: 'done',
    response_time_ms: 640,
    ...SAME,
    choices: [],
    usage: { prompt_tokens: 21, completion_tokens: 12, total_tokens: 33 },
    billing: {
      'x-credit-balance': '9.99934',
      'x-credit-charged': '0.00066',
      'x-billing-tx': '5b0e1c5e-8a51-4cf5-9d0c-6d1f3f0e7a42',
    },
  },
];

export const CompletionResponse = responseOf({
  description:
    'As JSON, or as Server-Sent Events: a frame with the `chat_id` of a new chat, chunks of the answer, one with the `finish_reason`, one with the usage if asked for, a frame `done` with what was charged, and `[DONE]`. What fails half-way is a frame `error`, and the stream ends without `[DONE]`; nothing is charged then. Lines that begin with a colon say that the server is still there.',
  headers: BILLING_HEADERS,
  content: {
    'application/json': { schema: CompletionSchema },
    'text/event-stream': {
      schema: Type.String({
        examples: [`${FRAMES.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('')}data: [DONE]\n\n`],
      }),
    },
  },
});

export const ChatSchema = Type.Object({
  chat_id: ChatIdSchema,
  title: Type.String({
    description: 'The beginning of what was said first.',
    examples: ['What is a tandem exchange?'],
  }),
  message_count: Type.Integer({ examples: [2] }),
  created_at: TimeSchema,
  updated_at: TimeSchema,
});

export const ChatMessageSchema = Type.Object({
  role: Type.Enum(['system', 'user', 'assistant', 'tool']),
  content: nullable(Type.String({ examples: ['What is a tandem exchange?'] })),
  tool_calls: Type.Optional(Type.Array(AnswerToolCallSchema)),
  tool_call_id: Type.Optional(Type.String()),
  model: Type.Optional(Type.String({ description: 'Who wrote it, of the assistant.' })),
  created_at: TimeSchema,
});
