import type { ToolCall } from '../../language/llm.ts';
import { firstCharacters } from '../../runtime/first-characters.ts';
import type { ChatKey, ChatTurn, NewChatMessage } from '../../storage/queries/chats.ts';
import type { Answer } from './answer.ts';
import type { AskRequest } from './chat-desk.ts';
import type { CountedMessage } from './conversation.ts';
import type { TokenCounter } from './token-count.ts';

const TITLE_CHARACTERS = 80;

export async function keptTurn({
  request,
  unsaved,
  answer,
  model,
  chat,
  counter,
}: {
  request: AskRequest;
  unsaved: readonly CountedMessage[];
  answer: Answer;
  model: string;
  chat: ChatKey;
  counter: TokenCounter;
}): Promise<Omit<ChatTurn, 'now'>> {
  const { what } = request;
  const asked = what.mode === 'chat' ? unsaved : [await counter.message({ role: 'user' as const, content: what.text })];
  const toolCalls = completeCalls(answer);
  const isSilent = answer.text === '' && toolCalls.length > 0;
  const answerMessage = await counter.message({ role: 'assistant', content: isSilent ? null : answer.text, toolCalls });
  const messages = [...asked, answerMessage].map(rowOf);
  messages.at(-1)!.model = model;
  return { chat, title: request.chatId === null ? titleOf(asked) : null, messages };
}

/** Drops tool calls that were cut off: they cannot have a result, and without results the chat could not continue. */
function completeCalls({ toolCalls, end }: Answer): ToolCall[] {
  if (end === null) return [];
  const isWhole = end.reason === 'stop' || end.reason === 'tool_calls';
  return isWhole ? toolCalls : toolCalls.filter(({ arguments: given }) => isJson(given));
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function rowOf({ message, tokens }: CountedMessage): NewChatMessage {
  const { role, content } = message;
  const calls = role === 'assistant' ? (message.toolCalls ?? []) : [];
  return {
    role,
    content,
    toolCalls:
      calls.length === 0 ? null : calls.map(({ id, name, arguments: given }) => ({ id, name, arguments: given })),
    toolCallId: role === 'tool' ? message.toolCallId : null,
    model: null,
    tokens,
  };
}

/** Start of the first user message, in one line. */
function titleOf(asked: readonly CountedMessage[]): string {
  const first = asked.find(({ message }) => message.role === 'user') ?? asked[0];
  const line = (first?.message.content ?? '').slice(0, 1_000).replace(/\s+/g, ' ').trim();
  return firstCharacters(line, TITLE_CHARACTERS) || 'Chat';
}
