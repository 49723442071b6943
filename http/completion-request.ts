import type { Static } from 'typebox';
import type { ChatAsk, CorrectionAsk } from '../actors/chat/chat-desk.ts';
import type { ChatMessage, CompletionRequest, JsonSchema, ToolDefinition } from '../language/llm.ts';
import { CORRECTION_ONLY, type CompletionBody } from './schemas/chat.ts';
import { type InvalidField, validationFailed } from './validation.ts';

type Body = Static<typeof CompletionBody>;
type Message = NonNullable<Body['messages']>[number];

/** Platform specification, Chat completions. */
const DEFAULT_TOP_K = 20;
/** Stands for whatever is usual, unless the operator gave that name to another one. */
const USUAL_MODEL = 'svc-tiny';

/** What is asked for, in whichever of the two modes. @throws TandemError `VALIDATION_FAILED` */
export function readCompletionBody(body: Body): ChatAsk | CorrectionAsk {
  const { messages, text } = body;
  if ((messages === undefined) === (text === undefined)) {
    refuse(messages === undefined ? 'messages' : 'text', 'is what to send, or the other of messages and text');
  }
  return text === undefined ? chatOf(body, messages!) : correctionOf(body, text);
}

/** Null: the usual one, or the rules that correct texts where there is none. */
export function modelNamedBy({ model, text }: Body): string | null {
  const named = model ?? USUAL_MODEL;
  return text !== undefined && named === USUAL_MODEL ? null : named;
}

/** Contracts, Chat: SSE unless the request says otherwise. */
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
  const strays = CORRECTION_ONLY.filter((name) => body[name] !== undefined);
  if (strays.length > 0)
    throw validationFailed(strays.map((path) => ({ path, message: 'goes with text, not messages' })));
  const { temperature, top_p: topP, top_k: topK, seed, stop } = body;
  const maxTokens = body.max_completion_tokens ?? body.max_tokens;
  const tools = toolsOf(body);
  const responseSchema = responseSchemaOf(body);
  return {
    mode: 'chat',
    messages: messages.map((message, index) => messageOf(message, `messages.${index}`)),
    topK: topK ?? DEFAULT_TOP_K,
    enableThinking: body.chat_template_kwargs?.enable_thinking ?? false,
    ...(tools.length > 0 && { tools, toolChoice: toolChoiceOf(body, tools) }),
    ...(responseSchema !== null && { responseSchema }),
    ...given({ temperature, topP, maxTokens, seed, stop: typeof stop === 'string' ? [stop] : stop }),
  };
}

function messageOf({ role, content = null, ...message }: Message, path: string): ChatMessage {
  const calls = message.tool_calls ?? [];
  if (calls.length > 0 && role !== 'assistant') refuse(`${path}.tool_calls`, 'are of messages of the assistant');
  if (message.tool_call_id !== undefined && role !== 'tool') refuse(`${path}.tool_call_id`, 'is of messages of a tool');
  const text = typeof content === 'string' || content === null ? content : textOf(content, path);
  if (role === 'assistant') {
    if (text === null && calls.length === 0) refuse(`${path}.content`, 'is required where no tool is called');
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
      return refuse(`${path}.content.${index}`, 'is no text, and nothing else is understood');
    })
    .join('\n');
}

function toolsOf({ tool, tools }: Body): ToolDefinition[] {
  if (tool !== undefined && tools !== undefined) refuse('tool', 'and tools are the same: send one of them');
  const path = tool === undefined ? 'tools' : 'tool';
  const named = new Set<string>();
  return (tool ?? tools?.map((one) => one.function) ?? []).map(({ name, description, parameters }, index) => {
    if (named.has(name)) refuse(`${path}.${index}`, 'has the name of another one');
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
  if (!tools.some((tool) => tool.name === name)) refuse('tool_choice.function.name', 'is none of the tools');
  return { name };
}

function responseSchemaOf({ response_format: format }: Body): CompletionRequest['responseSchema'] | null {
  if (format === undefined || format.type === 'text') return null;
  if (format.type === 'json_object') return { name: 'json_object', schema: { type: 'object' } };
  if (format.json_schema === undefined) refuse('response_format.json_schema', 'is required');
  const { name, schema = {} } = format.json_schema;
  return { name, schema: schema as JsonSchema };
}

/** Neither what was left out, nor null, which says the same. */
function given<Fields extends Record<string, unknown>>(fields: Fields) {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(entries) as { [Name in keyof Fields]?: NonNullable<Fields[Name]> };
}

function refuse(path: InvalidField['path'], message: string): never {
  throw validationFailed([{ path, message }]);
}
