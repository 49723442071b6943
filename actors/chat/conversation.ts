import type { ChatMessage } from '../../language/llm.ts';
import { TandemError } from '../../machines/errors.ts';

export interface CountedMessage {
  message: ChatMessage;
  tokens: number;
}

export interface Conversation {
  /** For the model, in order. */
  messages: CountedMessage[];
  unsaved: CountedMessage[];
}

/**
 * Combines a chat's messages with new ones. System messages come first, without duplicates. If not everything fits, the
 * oldest turns are dropped. A turn is a user message and all that follows it, so tool calls stay with their results.
 * Never dropped are new messages, also if they repeat a stored one, and the turn whose tool results are among them.
 */
export function conversationOf({
  stored,
  fresh,
  budgetTokens,
}: {
  stored: readonly CountedMessage[];
  fresh: readonly CountedMessage[];
  budgetTokens: number;
}): Conversation {
  if (stored.length === 0) return { messages: [...fresh], unsaved: [...fresh] };
  const saved = new Set(stored.filter(isSystem).map(({ message }) => message.content));
  const unsaved = fresh.filter((one) => !isSystem(one) || !saved.has(one.message.content));
  const newMessages = unsaved.filter((one) => !isSystem(one));
  const room = budgetTokens - tokensOf(fresh);
  const remembered = rememberedOf(stored.filter(isSystem), { budgetTokens: room / 2 });
  const known = new Set(remembered.map(({ message }) => message.content));
  const system = [...remembered, ...fresh.filter((one) => isSystem(one) && !known.has(one.message.content))];
  const goesOn = newMessages[0]?.message.role === 'tool';
  let left = budgetTokens - tokensOf(newMessages) - tokensOf(system);
  const kept: CountedMessage[] = [];
  const turns = turnsOf(stored.filter((one) => !isSystem(one)));
  for (const [index, turn] of turns.toReversed().entries()) {
    left -= tokensOf(turn);
    if (left < 0 && !(goesOn && index === 0)) break;
    kept.unshift(...turn);
  }
  return { messages: [...system, ...kept, ...newMessages], unsaved };
}

/**
 * Keeps the first system message and the newest others. A client that changes the system message with each request, for
 * example to give the time, would otherwise fill the context.
 */
function rememberedOf(
  [first, ...more]: readonly CountedMessage[],
  { budgetTokens }: { budgetTokens: number },
): CountedMessage[] {
  if (first === undefined) return [];
  let left = budgetTokens - first.tokens;
  const newest: CountedMessage[] = [];
  for (const one of more.toReversed()) {
    left -= one.tokens;
    if (left < 0) break;
    newest.unshift(one);
  }
  return [first, ...newest];
}

export function tokensOf(messages: readonly CountedMessage[]): number {
  return messages.reduce((sum, { tokens }) => sum + tokens, 0);
}

/**
 * Checks that each tool call is answered by one message with its id before any other message.
 * @throws TandemError `VALIDATION_FAILED`; paths count only the last `freshCount` messages, which the client sent
 */
export function requireAnsweredCalls(messages: readonly ChatMessage[], { freshCount }: { freshCount: number }): void {
  let open = new Set<string>();
  for (const [index, message] of messages.entries()) {
    const path = `messages.${Math.max(0, index - (messages.length - freshCount))}`;
    if (message.role === 'tool') {
      if (!open.delete(message.toolCallId)) {
        refuse(`${path}.tool_call_id`, 'is not the id of a tool call that waits for its result');
      }
      continue;
    }
    if (open.size > 0) refuse(path, `comes before the results of the tool calls ${named(open)}`);
    if (message.role !== 'assistant') continue;
    const ids = (message.toolCalls ?? []).map(({ id }) => id);
    open = new Set(ids);
    if (open.size < ids.length) refuse(`${path}.tool_calls`, 'has two calls of one id');
  }
  if (open.size > 0) refuse('messages', `lacks the results of the tool calls ${named(open)}`);
}

/** Three ids are enough to identify them. */
function named(ids: ReadonlySet<string>): string {
  return [...ids].slice(0, 3).join(', ');
}

function isSystem({ message }: CountedMessage): boolean {
  return message.role === 'system';
}

function turnsOf(messages: readonly CountedMessage[]): CountedMessage[][] {
  const turns: CountedMessage[][] = [];
  for (const one of messages) {
    const turn = turns.at(-1);
    if (turn === undefined || one.message.role === 'user') turns.push([one]);
    else turn.push(one);
  }
  return turns;
}

function refuse(path: string, message: string): never {
  throw new TandemError('VALIDATION_FAILED', `${path} ${message}.`, { details: [{ path, message }] });
}
