import { Type } from 'typebox';
import { nullable } from './envelope.ts';

/** Rejects NUL and lone surrogates, which cannot be stored. */
const TEXT = '^[^\\u0000\\ud800-\\udfff]*$';
const TOOL_NAME = '^[A-Za-z0-9_-]{1,64}$';

const TextSchema = Type.String({ pattern: TEXT, description: 'Text without NUL characters and lone surrogates.' });
const IdSchema = Type.String({
  minLength: 1,
  maxLength: 256,
  pattern: TEXT,
  description: 'Id of the tool call, as the model returned it.',
});

const ContentSchema = nullable(
  Type.Union([
    TextSchema,
    Type.Array(
      Type.Object(
        {
          type: Type.String({
            maxLength: 32,
            description: '`text`. Other content types are rejected.',
            examples: ['text'],
          }),
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
        name: Type.String({
          minLength: 1,
          maxLength: 256,
          pattern: TEXT,
          description: 'Name, as the model returned it.',
        }),
        arguments: TextSchema,
        parsed_arguments: Type.Optional(Type.Unknown({ description: 'Ignored. OpenAI clients add it.' })),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);

const MessageSchema = Type.Object(
  {
    role: Type.Enum(['system', 'developer', 'user', 'assistant', 'tool'], {
      description: '`developer` is an alias of `system`.',
    }),
    content: Type.Optional(ContentSchema),
    tool_calls: Type.Optional(nullable(Type.Array(ToolCallSchema, { maxItems: 128 }))),
    tool_call_id: Type.Optional(IdSchema),
    name: Type.Optional(Type.String({ maxLength: 256, description: 'Ignored.' })),
    refusal: Type.Optional(nullable(Type.String({ description: 'Ignored. Part of answers.' }))),
    reasoning_content: Type.Optional(nullable(Type.String({ description: 'Ignored. Part of answers.' }))),
    parsed: Type.Optional(Type.Unknown({ description: 'Ignored. OpenAI clients add it.' })),
    annotations: Type.Optional(Type.Array(Type.Unknown(), { description: 'Ignored.' })),
    audio: Type.Optional(Type.Null()),
    function_call: Type.Optional(Type.Null()),
  },
  { additionalProperties: false },
);

const JsonObjectSchema = Type.Object({}, { description: 'JSON Schema of the arguments or of the answer.' });

const ToolSchema = Type.Object(
  {
    name: Type.String({
      pattern: TOOL_NAME,
      description: 'Function name: up to 64 letters, digits, underscores and hyphens.',
    }),
    description: Type.Optional(nullable(TextSchema)),
    parameters: Type.Optional(nullable(JsonObjectSchema)),
    strict: Type.Optional(nullable(Type.Boolean({ description: 'Ignored.' }))),
  },
  { additionalProperties: false },
);

const WEATHER = {
  name: 'weather_of',
  description: 'Returns the current weather of a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

const CHAT_FIELDS = {
  messages: Type.Array(MessageSchema, {
    minItems: 1,
    maxItems: 1000,
    description:
      'Conversation so far, oldest first. Follow an assistant message that has tool calls with one `tool` message per call, before any other message.',
    examples: [[{ role: 'user', content: 'Explain what a tandem exchange is.' }]],
  }),
  tool: Type.Array(ToolSchema, {
    maxItems: 128,
    description: 'Functions that the model can call. You run them and send the results in `tool` messages.',
    examples: [[WEATHER]],
  }),
  tools: Type.Array(
    Type.Object({ type: Type.Literal('function'), function: ToolSchema }, { additionalProperties: false }),
    {
      maxItems: 128,
      description: 'Same as `tool`, in the format of OpenAI.',
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
    { description: '`auto` (default), `none`, `required`, or the function that the model must call.' },
  ),
  response_format: Type.Object(
    {
      type: Type.Enum(['text', 'json_object', 'json_schema']),
      json_schema: Type.Optional(
        Type.Object(
          {
            name: Type.String({
              pattern: TOOL_NAME,
              description: 'Schema name: up to 64 letters, digits, underscores and hyphens.',
            }),
            description: Type.Optional(nullable(TextSchema)),
            schema: Type.Optional(JsonObjectSchema),
            strict: Type.Optional(nullable(Type.Boolean())),
          },
          { additionalProperties: false },
        ),
      ),
    },
    { additionalProperties: false, description: 'Format of the answer: text (default), JSON, or JSON of a schema.' },
  ),
  temperature: nullable(
    Type.Number({ minimum: 0, maximum: 2, description: 'Sampling temperature. Higher is more random.' }),
  ),
  top_p: nullable(
    Type.Number({ minimum: 0, maximum: 1, description: 'Sample from the most likely tokens up to this probability.' }),
  ),
  top_k: nullable(
    Type.Integer({ minimum: 1, maximum: 1000, default: 20, description: 'Sample from the top-k tokens.' }),
  ),
  max_tokens: nullable(
    Type.Integer({
      minimum: 1,
      maximum: 131_072,
      description: 'Maximum number of tokens in the answer. Default: 4096, or what fits into the context of the model.',
    }),
  ),
  max_completion_tokens: nullable(
    Type.Integer({
      minimum: 1,
      maximum: 131_072,
      description: 'Newer name of `max_tokens`. Takes precedence over it.',
    }),
  ),
  stop: nullable(
    Type.Union(
      [
        Type.String({ minLength: 1, maxLength: 256 }),
        Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { minItems: 1, maxItems: 4 }),
      ],
      { description: 'Up to four sequences that end the answer.' },
    ),
  ),
  logprobs: nullable(
    Type.Boolean({
      default: false,
      description:
        'Return the log probability of each token of the answer. Null in the answer if the model cannot: models from a file, and some servers.',
    }),
  ),
  top_logprobs: nullable(
    Type.Integer({
      minimum: 0,
      maximum: 20,
      description: 'Number of most likely tokens to return at each position. Requires `logprobs`.',
    }),
  ),
  n: nullable(
    Type.Integer({
      minimum: 1,
      maximum: 8,
      default: 1,
      description:
        'Number of answers to generate. You pay for the prompt once and for the tokens of all answers. The chat keeps the first answer. Must be 1 with `text`.',
    }),
  ),
  parallel_tool_calls: nullable(
    Type.Boolean({ default: true, description: 'False allows at most one tool call in an answer.' }),
  ),
  seed: nullable(
    Type.Integer({
      minimum: Number.MIN_SAFE_INTEGER,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Seed for sampling, passed on to the model.',
    }),
  ),
  chat_template_kwargs: Type.Object(
    {
      enable_thinking: Type.Optional(
        Type.Boolean({
          default: false,
          description: 'Let a reasoning model think first. Its thoughts are returned in `reasoning_content`.',
        }),
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
      'Text to correct, instead of `messages`. Must not be blank, and must not contain NUL characters or lone surrogates.',
  }),
  dictionary: Type.Array(
    Type.Object(
      {
        term: Type.String({ minLength: 1, maxLength: 200, pattern: TEXT, description: 'Term to replace.' }),
        replacement: Type.String({ maxLength: 200, pattern: TEXT, description: 'Replacement of the term.' }),
      },
      { additionalProperties: false },
    ),
    {
      maxItems: 100,
      description: 'Replacements to apply to the text.',
      examples: [[{ term: 'tandem', replacement: 'Tandem' }]],
    },
  ),
  style: Type.Object(
    {
      tone: Type.Optional(
        Type.String({
          maxLength: 100,
          pattern: TEXT,
          examples: ['professional'],
          description: 'Tone of the text, such as professional, casual or friendly.',
        }),
      ),
      autoCapitalize: Type.Optional(Type.Boolean({ default: true, description: 'Correct capitalisation.' })),
      autoPunctuate: Type.Optional(Type.Boolean({ default: true, description: 'Correct punctuation.' })),
      useContractions: Type.Optional(
        Type.Boolean({
          description:
            'True contracts (do not, don’t), false expands. If absent, a professional tone or the context `document` expands; otherwise both forms are kept.',
        }),
      ),
      expandAbbreviations: Type.Optional(Type.Boolean({ default: false, description: 'Expand abbreviations.' })),
    },
    { additionalProperties: false, description: 'Style of the corrected text.' },
  ),
  appContext: Type.Enum(['email', 'chat', 'document', 'message', 'social'], {
    description: 'Kind of text. Influences the style.',
  }),
};

const COMMON_FIELDS = {
  model: nullable(
    Type.String({
      minLength: 1,
      maxLength: 200,
      pattern: TEXT,
      default: 'svc-tiny',
      description: 'Id or alias of a model from GET /models.',
    }),
  ),
  stream: nullable(
    Type.Boolean({
      description:
        'Stream the answer as Server-Sent Events. Default: true, unless the Accept header has application/json and not text/event-stream.',
    }),
  ),
  stream_options: nullable(
    Type.Object(
      {
        include_usage: Type.Optional(
          Type.Boolean({ description: 'Send a chunk with the token usage before the end of the stream.' }),
        ),
        include_obfuscation: Type.Optional(Type.Boolean({ description: 'Ignored.' })),
      },
      { additionalProperties: false },
    ),
  ),
  chat_id: nullable(
    Type.String({
      minLength: 1,
      maxLength: 64,
      pattern: TEXT,
      description: 'Chat to continue. Omit it to start a new chat.',
    }),
  ),
  save_chat: nullable(Type.Boolean({ default: true, description: 'Save the messages and the answer in the chat.' })),
};

/** Fields of OpenAI clients that have no effect here. */
const TOLERATED_FIELDS = {
  frequency_penalty: nullable(Type.Literal(0, { description: 'Must be 0.' })),
  presence_penalty: nullable(Type.Literal(0, { description: 'Must be 0.' })),
  user: nullable(Type.String({ maxLength: 512, description: 'Ignored.' })),
  safety_identifier: nullable(Type.String({ maxLength: 512, description: 'Ignored.' })),
  prompt_cache_key: nullable(Type.String({ maxLength: 512, description: 'Ignored.' })),
  service_tier: nullable(Type.Enum(['auto', 'default'], { description: 'Ignored.' })),
  store: nullable(Type.Boolean({ description: 'Ignored. Use `save_chat`.' })),
  metadata: Type.Unknown({ description: 'Ignored.' }),
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
          { role: 'user', content: 'Explain what a tandem exchange is.' },
        ],
        stream: false,
        max_tokens: 200,
      },
      {
        text: 'we dont ship on monday, its a holiday',
        dictionary: [{ term: 'tandem', replacement: 'Tandem' }],
        style: { tone: 'professional', autoCapitalize: true, autoPunctuate: true },
        appContext: 'email',
        stream: false,
      },
    ],
  },
);

export const CORRECTION_ONLY = ['dictionary', 'style', 'appContext'] as const;
