import type OpenAI from 'openai';
import type { ChatMessage, CompletionRequest, JsonSchema, ToolDefinition } from '../../llm.ts';

/** Fields that some servers reject. The request is repeated without a rejected field. */
export const OPTIONAL_FIELDS = [
  'stream_options',
  'chat_template_kwargs',
  'top_k',
  'temperature',
  'top_p',
  'seed',
  'logprobs',
  'parallel_tool_calls',
  /** Newer OpenAI models name it `max_completion_tokens`. */
  'max_tokens',
  /** Without it, `json_object` plus the schema in the prompt. */
  'json_schema',
  /** Without it, only the schema in the prompt. */
  'response_format',
] as const;

export type OptionalField = (typeof OPTIONAL_FIELDS)[number];

export type ChatBody = OpenAI.ChatCompletionCreateParamsStreaming & Record<string, unknown>;

/** Builds the request body without the fields that the server rejects. */
export function chatBody(
  request: CompletionRequest & { model: string },
  without: ReadonlySet<OptionalField>,
): ChatBody {
  const { model, temperature, topP, topK, seed, maxTokens, stop = [], tools = [], logprobs } = request;
  const format = responseFormat(request, without);
  const schemaInPrompt = format?.type === 'json_schema' ? undefined : request.responseSchema?.schema;
  const messages = schemaInPrompt === undefined ? request.messages : withSchema(request.messages, schemaInPrompt);
  const limit = without.has('max_tokens') ? 'max_completion_tokens' : 'max_tokens';
  const body: ChatBody = {
    model,
    stream: true,
    messages: messages.map(messageOf),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
    ...(topK !== undefined && { top_k: topK }),
    ...(seed !== undefined && { seed }),
    ...(maxTokens !== undefined && { [limit]: maxTokens }),
    ...(logprobs !== undefined && { logprobs: true, top_logprobs: logprobs.alternatives }),
    ...(stop.length > 0 && { stop: [...stop] }),
    ...(tools.length > 0 && { tools: tools.map(toolOf), ...toolChoice(request), ...parallelism(request) }),
    ...(format !== null && { response_format: format }),
    stream_options: { include_usage: true },
    // Reasoning models think by default.
    chat_template_kwargs: { enable_thinking: request.enableThinking ?? false },
  };
  for (const field of without) if (field !== 'response_format') delete body[field];
  if (without.has('logprobs')) delete body.top_logprobs;
  return body;
}

export function optionalFieldsOf(body: ChatBody): OptionalField[] {
  return OPTIONAL_FIELDS.filter((field) => {
    if (field === 'json_schema') return body.response_format?.type === 'json_schema';
    if (field === 'response_format') return body.response_format?.type === 'json_object';
    return field in body;
  });
}

function responseFormat({ responseSchema }: CompletionRequest, without: ReadonlySet<OptionalField>) {
  if (responseSchema === undefined || without.has('response_format')) return null;
  if (without.has('json_schema')) return { type: 'json_object' as const };
  const { schema } = responseSchema;
  const name = responseSchema.name.replace(/[^\w-]/g, '_').slice(0, 64) || 'answer';
  return { type: 'json_schema' as const, json_schema: { name, schema, strict: isStrict(schema, 0) } };
}

/**
 * Whether the schema qualifies for OpenAI's strict mode: every object requires all its properties and allows no other.
 */
function isStrict(schema: unknown, depth: number): boolean {
  if (typeof schema !== 'object' || schema === null) return true;
  if (depth > 16) return false;
  if (Array.isArray(schema)) return schema.every((item) => isStrict(item, depth + 1));
  const { type, properties, required, additionalProperties } = schema as JsonSchema;
  if (type === 'object') {
    const names = Object.keys((properties ?? {}) as object);
    const isClosed = additionalProperties === false && Array.isArray(required);
    if (!isClosed || !names.every((name) => required.includes(name))) return false;
  }
  return Object.values(schema).every((item) => isStrict(item, depth + 1));
}

/** Appends to the first system message, because some models accept only one. */
function withSchema(messages: readonly ChatMessage[], schema: JsonSchema): ChatMessage[] {
  const instruction = `Answer with one JSON value of this JSON Schema, and nothing else:\n${JSON.stringify(schema)}`;
  const [first, ...rest] = messages;
  if (first?.role !== 'system') return [{ role: 'system', content: instruction }, ...messages];
  return [{ role: 'system', content: `${first.content}\n\n${instruction}` }, ...rest];
}

function messageOf(message: ChatMessage): OpenAI.ChatCompletionMessageParam {
  switch (message.role) {
    case 'system':
    case 'user':
      return { role: message.role, content: message.content };
    case 'tool':
      return { role: 'tool', content: message.content, tool_call_id: message.toolCallId };
    case 'assistant': {
      const { content, toolCalls = [] } = message;
      const calls = toolCalls.map(({ id, name, arguments: written }) => ({
        id,
        type: 'function' as const,
        function: { name, arguments: written },
      }));
      return { role: 'assistant', content, ...(calls.length > 0 && { tool_calls: calls }) };
    }
  }
}

function toolOf({ name, description, parameters }: ToolDefinition): OpenAI.ChatCompletionTool {
  return {
    type: 'function',
    function: {
      name,
      ...(description !== null && { description }),
      // Some servers crash on a tool without parameters.
      parameters: { ...(parameters ?? { type: 'object', properties: {} }) },
    },
  };
}

/** Sent only if it differs from the default, because some servers do not know it. */
function parallelism({ parallelToolCalls = true }: CompletionRequest) {
  return parallelToolCalls ? {} : { parallel_tool_calls: false };
}

function toolChoice({ toolChoice: choice }: CompletionRequest) {
  if (choice === undefined) return {};
  if (typeof choice === 'string') return { tool_choice: choice };
  return { tool_choice: { type: 'function' as const, function: { name: choice.name } } };
}
