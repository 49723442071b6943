import type { ChatMessage } from '../../language/llm.ts';
import { TandemError } from '../../machines/errors.ts';

/** A message with what it takes of a context. */
export interface CountedMessage {
  message: ChatMessage;
  tokens: number;
}

export interface Conversation {
  /** For the model, in order. */
  messages: CountedMessage[];
  /** Of the new ones, those that the chat does not have yet. */
  unsaved: CountedMessage[];
}

/**
 * What a chat remembers, and then what is new. Messages of the system come first, each once. Of the rest the oldest turns
 * go when all of it does not fit: a turn is what a user said and all that followed on it, so calls of tools stay with
 * their results. The turn that the new messages go on with, by results of its tools, stays.
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
  const known = new Set(stored.filter(isSystem).map(({ message }) => message.content));
  const unsaved = fresh.filter((one) => !isSystem(one) || !known.has(one.message.content));
  const said = unsaved.filter((one) => !isSystem(one));
  const room = budgetTokens - tokensOf(unsaved);
  const remembered = rememberedOf(stored.filter(isSystem), { budgetTokens: room / 2 });
  const system = [...remembered, ...unsaved.filter(isSystem)];
  const goesOn = said[0]?.message.role === 'tool';
  let left = room - tokensOf(remembered);
  const kept: CountedMessage[] = [];
  const turns = turnsOf(stored.filter((one) => !isSystem(one)));
  for (const [index, turn] of turns.toReversed().entries()) {
    left -= tokensOf(turn);
    if (left < 0 && !(goesOn && index === 0)) break;
    kept.unshift(...turn);
  }
  return { messages: [...system, ...kept, ...said], unsaved };
}

/**
 * What the system was told first, and the newest of the rest: whoever tells it something else with each request, such as
 * the time, would fill the context with that.
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
 * Each call of a tool is answered by one message of that id, before anybody else says something.
 * @throws TandemError `VALIDATION_FAILED`; paths count the last `freshCount` messages, which are the caller's
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

/** Enough of them to know which are meant. */
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
