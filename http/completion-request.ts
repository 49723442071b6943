import type { Static } from 'typebox';
import type { ChatAsk, CorrectionAsk } from '../actors/chat/chat-desk.ts';
import type { ChatMessage, CompletionRequest, JsonSchema, ToolDefinition } from '../language/llm.ts';
import { CORRECTION_ONLY, type CompletionBody } from './schemas/chat.ts';
import { type InvalidField, validationFailed } from './validation.ts';

type Body = Static<typeof CompletionBody>;
type Message = NonNullable<Body['messages']>[number];

/** Platform specification, Chat completions. */
const DEFAULT_TOP_K = 20;
/** Alias of the default model, unless the operator uses this name for another one. */
const DEFAULT_MODEL = 'svc-tiny';

/** Parses a body of either mode. @throws TandemError `VALIDATION_FAILED` */
export function readCompletionBody(body: Body): ChatAsk | CorrectionAsk {
  const { messages, text } = body;
  if ((messages === undefined) === (text === undefined)) {
    if (messages === undefined) refuse('messages', 'or text is required');
    refuse('text', 'must not be combined with messages');
  }
  if (text !== undefined && (body.n ?? 1) > 1) refuse('n', 'must be 1 with text');
  return text === undefined ? chatOf(body, messages!) : correctionOf(body, text);
}

/** Null: the default model, or rule-based correction without one. */
export function modelNamedBy({ model, text }: Body): string | null {
  const named = model ?? DEFAULT_MODEL;
  return text !== undefined && named === DEFAULT_MODEL ? null : named;
}

/** True unless the request asks for JSON. */
export function wantsStream({ stream }: Body, accept: string | undefined): boolean {
  if (typeof stream === 'boolean') return stream;
  return !/application\/json/i.test(accept ?? '') || /text\/event-stream/i.test(accept ?? '');
}

function correctionOf({ dictionary = [], style = {}, appContext }: Body, text: string): CorrectionAsk {
  return {
    mode: 'correct',
    text,
    dictionary,
    style: {
      tone: style.tone ?? null,
      autoCapitalize: style.autoCapitalize ?? true,
      autoPunctuate: style.autoPunctuate ?? true,
      useContractions: style.useContractions ?? null,
      expandAbbreviations: style.expandAbbreviations ?? false,
    },
    appContext: appContext ?? null,
  };
}

function chatOf(body: Body, messages: readonly Message[]): ChatAsk {
  const misplaced = CORRECTION_ONLY.filter((name) => body[name] !== undefined);
  if (misplaced.length > 0) {
    throw validationFailed(misplaced.map((path) => ({ path, message: 'is only allowed with text' })));
  }
  const { temperature, top_p: topP, top_k: topK, seed, stop, parallel_tool_calls: parallelToolCalls } = body;
  const maxTokens = body.max_completion_tokens ?? body.max_tokens;
  const tools = toolsOf(body);
  const responseSchema = responseSchemaOf(body);
  const alternatives = body.top_logprobs ?? null;
  if (alternatives !== null && body.logprobs !== true) refuse('top_logprobs', 'is only allowed with logprobs: true');
  return {
    mode: 'chat',
    messages: messages.map((message, index) => messageOf(message, `messages.${index}`)),
    topK: topK ?? DEFAULT_TOP_K,
    enableThinking: body.chat_template_kwargs?.enable_thinking ?? false,
    ...(tools.length > 0 && { tools, toolChoice: toolChoiceOf(body, tools) }),
    ...(responseSchema !== null && { responseSchema }),
    ...(body.logprobs === true && { logprobs: { alternatives: alternatives ?? 0 } }),
    ...given({ temperature, topP, maxTokens, seed, parallelToolCalls, stop: typeof stop === 'string' ? [stop] : stop }),
    ...given({ choices: body.n }),
  };
}

function messageOf({ role, content = null, ...message }: Message, path: string): ChatMessage {
  const calls = message.tool_calls ?? [];
  if (calls.length > 0 && role !== 'assistant') refuse(`${path}.tool_calls`, 'is only allowed in assistant messages');
  if (message.tool_call_id !== undefined && role !== 'tool') {
    refuse(`${path}.tool_call_id`, 'is only allowed in tool messages');
  }
  const text = typeof content === 'string' || content === null ? content : textOf(content, path);
  if (role === 'assistant') {
    if (text === null && calls.length === 0) refuse(`${path}.content`, 'is required without tool_calls');
    const toolCalls = calls.map(({ id, function: { name, arguments: written } }) => ({ id, name, arguments: written }));
    return { role, content: text, ...(toolCalls.length > 0 && { toolCalls }) };
  }
  if (text === null) refuse(`${path}.content`, 'is required');
  if (role !== 'tool') return { role: role === 'developer' ? 'system' : role, content: text };
  if (message.tool_call_id === undefined) refuse(`${path}.tool_call_id`, 'is required');
  return { role, content: text, toolCallId: message.tool_call_id };
}

function textOf(parts: Exclude<NonNullable<Message['content']>, string>, path: string): string {
  return parts
    .map(({ type, text }, index) => {
      if (type === 'text' && text !== undefined) return text;
      return refuse(`${path}.content.${index}`, 'must be text. Other content is not supported');
    })
    .join('\n');
}

function toolsOf({ tool, tools }: Body): ToolDefinition[] {
  if (tool !== undefined && tools !== undefined) refuse('tool', 'must not be combined with tools');
  const path = tool === undefined ? 'tools' : 'tool';
  const named = new Set<string>();
  return (tool ?? tools?.map((one) => one.function) ?? []).map(({ name, description, parameters }, index) => {
    if (named.has(name)) refuse(`${path}.${index}`, 'must have a unique name');
    named.add(name);
    return {
      name,
      description: description ?? null,
      parameters: (parameters as JsonSchema | null | undefined) ?? null,
    };
  });
}

function toolChoiceOf({ tool_choice: choice = 'auto' }: Body, tools: readonly ToolDefinition[]) {
  if (typeof choice === 'string') return choice;
  const { name } = choice.function;
  if (!tools.some((tool) => tool.name === name)) refuse('tool_choice.function.name', 'must be the name of a tool');
  return { name };
}

function responseSchemaOf({ response_format: format }: Body): CompletionRequest['responseSchema'] | null {
  if (format === undefined || format.type === 'text') return null;
  if (format.type === 'json_object') return { name: 'json_object', schema: { type: 'object' } };
  if (format.json_schema === undefined) refuse('response_format.json_schema', 'is required');
  const { name, schema = {} } = format.json_schema;
  return { name, schema: schema as JsonSchema };
}

/** Drops fields that are absent or null. */
function given<Fields extends Record<string, unknown>>(fields: Fields) {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(entries) as { [Name in keyof Fields]?: NonNullable<Fields[Name]> };
}

function refuse(path: InvalidField['path'], message: string): never {
  throw validationFailed([{ path, message }]);
}
