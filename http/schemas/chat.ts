import { type TSchema, Type } from 'typebox';
import { nullable } from './envelope.ts';

/** What cannot be stored is not taken: NUL, and halves of surrogate pairs. */
const TEXT = '^[^\\u0000\\ud800-\\udfff]*$';
const TOOL_NAME = '^[A-Za-z0-9_-]{1,64}$';

const TextSchema = Type.String({ pattern: TEXT, description: 'Text without NUL and halves of surrogate pairs.' });
const IdSchema = Type.String({ minLength: 1, maxLength: 256, pattern: TEXT, description: 'As it was given.' });

function orNull<Schema extends TSchema>(schema: Schema) {
  return Type.Union([schema, Type.Null()]);
}

const ContentSchema = orNull(
  Type.Union([
    TextSchema,
    Type.Array(
      Type.Object(
        {
          type: Type.String({ maxLength: 32, description: '`text`: nothing else is understood.', examples: ['text'] }),
          text: Type.Optional(TextSchema),
        },
        { additionalProperties: true },
      ),
      { minItems: 1, maxItems: 256 },
    ),
  ]),
);

const ToolCallSchema = Type.Object(
  {
    id: IdSchema,
    type: Type.Optional(Type.Literal('function')),
    function: Type.Object(
      {
        name: Type.String({ minLength: 1, maxLength: 256, pattern: TEXT, description: 'As the model wrote it.' }),
        arguments: TextSchema,
        parsed_arguments: Type.Optional(Type.Unknown({ description: "As OpenAI's clients add it; has no effect." })),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);

const MessageSchema = Type.Object(
  {
    role: Type.Enum(['system', 'developer', 'user', 'assistant', 'tool'], {
      description: '`developer` is another name of `system`.',
    }),
    content: Type.Optional(ContentSchema),
    tool_calls: Type.Optional(orNull(Type.Array(ToolCallSchema, { maxItems: 128 }))),
    tool_call_id: Type.Optional(IdSchema),
    name: Type.Optional(Type.String({ maxLength: 256, description: 'Has no effect.' })),
    refusal: Type.Optional(nullable(Type.String({ description: 'As answers have it; has no effect.' }))),
    reasoning_content: Type.Optional(nullable(Type.String({ description: 'As answers have it; has no effect.' }))),
    parsed: Type.Optional(Type.Unknown({ description: "As OpenAI's clients add it; has no effect." })),
    annotations: Type.Optional(Type.Array(Type.Unknown(), { description: 'Has no effect.' })),
    audio: Type.Optional(Type.Null()),
    function_call: Type.Optional(Type.Null()),
  },
  { additionalProperties: false },
);

const JsonObjectSchema = Type.Object({}, { description: 'JSON Schema.' });

const ToolSchema = Type.Object(
  {
    name: Type.String({ pattern: TOOL_NAME, description: 'Letters, digits, _ and -, up to 64.' }),
    description: Type.Optional(orNull(TextSchema)),
    parameters: Type.Optional(orNull(JsonObjectSchema)),
    strict: Type.Optional(nullable(Type.Boolean({ description: 'Has no effect.' }))),
  },
  { additionalProperties: false },
);

const WEATHER = {
  name: 'weather_of',
  description: 'The weather in a city, now.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

const CHAT_FIELDS = {
  messages: Type.Array(MessageSchema, {
    minItems: 1,
    maxItems: 1000,
    description:
      'What was said, in order. Each tool call of the assistant is answered by one message of the role `tool` with its id, before anybody says anything else.',
    examples: [[{ role: 'user', content: 'What is a tandem?' }]],
  }),
  tool: Type.Array(ToolSchema, {
    maxItems: 128,
    description: 'What the model may call. The caller does it and sends the results.',
    examples: [[WEATHER]],
  }),
  tools: Type.Array(
    Type.Object({ type: Type.Literal('function'), function: ToolSchema }, { additionalProperties: false }),
    {
      maxItems: 128,
      description: "The same as `tool`, as OpenAI's API has it.",
      examples: [[{ type: 'function', function: WEATHER }]],
    },
  ),
  tool_choice: Type.Union(
    [
      Type.Enum(['auto', 'none', 'required']),
      Type.Object(
        {
          type: Type.Literal('function'),
          function: Type.Object({ name: Type.String({ maxLength: 64 }) }, { additionalProperties: false }),
        },
        { additionalProperties: false },
      ),
    ],
    { description: '`auto` (default), `none`, `required`, or the function that has to be called.' },
  ),
  response_format: Type.Object(
    {
      type: Type.Enum(['text', 'json_object', 'json_schema']),
      json_schema: Type.Optional(
        Type.Object(
          {
            name: Type.String({ pattern: TOOL_NAME, description: 'Letters, digits, _ and -, up to 64.' }),
            description: Type.Optional(orNull(TextSchema)),
            schema: Type.Optional(JsonObjectSchema),
            strict: Type.Optional(nullable(Type.Boolean())),
          },
          { additionalProperties: false },
        ),
      ),
    },
    { additionalProperties: false, description: 'Whether the answer has to be JSON, and of which schema.' },
  ),
  temperature: orNull(Type.Number({ minimum: 0, maximum: 2 })),
  top_p: orNull(Type.Number({ minimum: 0, maximum: 1 })),
  top_k: orNull(
    Type.Integer({ minimum: 1, maximum: 1000, default: 20, description: 'Of so many tokens the next is chosen.' }),
  ),
  max_tokens: orNull(
    Type.Integer({
      minimum: 1,
      maximum: 131_072,
      description: 'Of the answer. Default 4096, or what the model has room for.',
    }),
  ),
  max_completion_tokens: orNull(
    Type.Integer({ minimum: 1, maximum: 131_072, description: 'The newer name of `max_tokens`, which it wins over.' }),
  ),
  stop: orNull(
    Type.Union([
      Type.String({ minLength: 1, maxLength: 256 }),
      Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { minItems: 1, maxItems: 4 }),
    ]),
  ),
  seed: orNull(Type.Integer({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER })),
  chat_template_kwargs: Type.Object(
    {
      enable_thinking: Type.Optional(
        Type.Boolean({ default: false, description: 'A model that can think first does, as `reasoning_content`.' }),
      ),
    },
    { additionalProperties: false },
  ),
};

const CORRECTION_FIELDS = {
  text: Type.String({
    minLength: 1,
    maxLength: 20_000,
    pattern: '^(?=[^]*\\S)[^\\u0000\\ud800-\\udfff]*$',
    description:
      'Text to correct, instead of messages: not only white space, without NUL and halves of surrogate pairs.',
  }),
  dictionary: Type.Array(
    Type.Object(
      {
        term: Type.String({ minLength: 1, maxLength: 200, pattern: TEXT, description: 'As it may stand in the text.' }),
        replacement: Type.String({ maxLength: 200, pattern: TEXT, description: 'What belongs there.' }),
      },
      { additionalProperties: false },
    ),
    { maxItems: 100, examples: [[{ term: 'tandem', replacement: 'Tandem' }]] },
  ),
  style: Type.Object(
    {
      tone: Type.Optional(
        Type.String({ maxLength: 100, pattern: TEXT, examples: ['professional'], description: 'Such as casual.' }),
      ),
      autoCapitalize: Type.Optional(Type.Boolean({ default: true })),
      autoPunctuate: Type.Optional(Type.Boolean({ default: true })),
      useContractions: Type.Optional(
        Type.Boolean({
          description:
            'True contracts, false expands. Left out: a professional tone and `document` expand, and else both stay as they are.',
        }),
      ),
      expandAbbreviations: Type.Optional(Type.Boolean({ default: false })),
    },
    { additionalProperties: false },
  ),
  appContext: Type.Enum(['email', 'chat', 'document', 'message', 'social'], {
    description: 'Where the text will stand.',
  }),
};

/** What both modes take. */
const COMMON_FIELDS = {
  model: orNull(
    Type.String({
      minLength: 1,
      maxLength: 200,
      pattern: TEXT,
      default: 'svc-tiny',
      description: 'Id or alias of a model; GET /models lists them.',
    }),
  ),
  stream: orNull(
    Type.Boolean({
      description: 'Default true, unless the Accept header names application/json and not text/event-stream.',
    }),
  ),
  stream_options: orNull(
    Type.Object(
      {
        include_usage: Type.Optional(
          Type.Boolean({ description: 'Whether a chunk with the usage comes before the end.' }),
        ),
        include_obfuscation: Type.Optional(Type.Boolean({ description: 'Has no effect.' })),
      },
      { additionalProperties: false },
    ),
  ),
  chat_id: orNull(
    Type.String({
      minLength: 1,
      maxLength: 64,
      pattern: TEXT,
      description: 'The chat that goes on; left out for a new one.',
    }),
  ),
  save_chat: orNull(Type.Boolean({ default: true, description: 'Whether the chat keeps what is said.' })),
};

/** What OpenAI's clients send too. */
const TOLERATED_FIELDS = {
  n: orNull(Type.Literal(1, { description: 'There is one answer.' })),
  frequency_penalty: orNull(Type.Literal(0)),
  presence_penalty: orNull(Type.Literal(0)),
  logprobs: orNull(Type.Literal(false)),
  parallel_tool_calls: orNull(Type.Literal(true)),
  user: orNull(Type.String({ maxLength: 512, description: 'Has no effect.' })),
  safety_identifier: orNull(Type.String({ maxLength: 512, description: 'Has no effect.' })),
  prompt_cache_key: orNull(Type.String({ maxLength: 512, description: 'Has no effect.' })),
  service_tier: orNull(Type.Enum(['auto', 'default'])),
  store: orNull(Type.Boolean({ description: 'Has no effect: see `save_chat`.' })),
  metadata: Type.Unknown({ description: 'Has no effect.' }),
};

export const CompletionBody = Type.Partial(
  Type.Object({ ...CHAT_FIELDS, ...CORRECTION_FIELDS, ...COMMON_FIELDS, ...TOLERATED_FIELDS }),
  {
    additionalProperties: false,
    examples: [
      {
        model: 'svc-tiny',
        messages: [
          { role: 'system', content: 'Answer in one sentence.' },
          { role: 'user', content: 'What is a tandem exchange?' },
        ],
        stream: false,
        max_tokens: 200,
      },
      {
        text: 'we dont ship untill monday',
        dictionary: [{ term: 'tandem', replacement: 'Tandem' }],
        style: { tone: 'professional', autoCapitalize: true, autoPunctuate: true },
        appContext: 'email',
        stream: false,
      },
    ],
  },
);

/** Fields of one mode alone; the rest may be sent in both. */
export const CORRECTION_ONLY = ['dictionary', 'style', 'appContext'] as const;
