import type { Answering, AnswerPart, AnswerPiece, FinishedAnswer } from '../actors/chat/chat-desk.ts';
import type { TokenLogprob } from '../language/llm.ts';
import { TandemError } from '../machines/errors.ts';
import { LATE, within } from '../runtime/waiting.ts';
import type { Principal } from './auth.ts';
import { billingHeaders } from './billing-headers.ts';
import { openaiError } from './openai-errors.ts';
import { toRefusal } from './refusals.ts';

/** Inserts a heartbeat whenever no part has come for `everyMs`. Reads a part only when asked for one. */
export async function* withHeartbeats(
  parts: AsyncGenerator<AnswerPart, void>,
  everyMs: number,
): AsyncGenerator<AnswerPart | 'heartbeat', void> {
  let next: ReturnType<typeof parts.next> | null = null;
  for (;;) {
    if (next === null) {
      next = parts.next();
      // Awaited below. Avoids an unhandled rejection if the consumer stops first.
      next.catch(() => undefined);
    }
    const result = await within(next, { ms: everyMs });
    if (result === LATE) yield 'heartbeat';
    else if (result.done) return;
    else {
      next = null;
      yield result.value;
    }
  }
}

/**
 * Formats an answer as Server-Sent Events, in the order of the platform specification: the id of a new chat, the answer,
 * and how it ended. An error frame has the formats of both the specification and OpenAI.
 */
export async function* completionFrames(
  parts: AsyncIterable<AnswerPart | 'heartbeat'>,
  { answering, withUsage, principal }: { answering: Answering; withUsage: boolean; principal: Principal },
): AsyncGenerator<string, void> {
  const { id, chatId, isNewChat, createdAt } = answering;
  const same = { id, object: 'chat.completion.chunk', created: secondsOf(createdAt), model: answering.model };
  const noUsage = withUsage ? { usage: null } : {};
  if (isNewChat) yield frame({ type: 'chat_id', chat_id: chatId, ...same, choices: [] });
  let role: { role?: 'assistant' } = { role: 'assistant' };
  try {
    for await (const part of parts) {
      if (part === 'heartbeat') {
        yield ': heartbeat\n\n';
        continue;
      }
      if (part.type === 'finished') {
        yield* endOf(part);
        return;
      }
      const delta = { ...role, ...deltaOf(part) };
      role = {};
      const logprobs = part.type === 'logprobs' ? { logprobs: presentLogprobs(part.tokens) } : {};
      yield frame({ ...same, choices: [{ index: 0, delta, ...logprobs, finish_reason: null }], ...noUsage });
    }
  } catch (error) {
    const refusal = toRefusal(error);
    const { message, code } = refusal;
    yield frame({ type: 'error', message, code, error: openaiError(refusal) });
  }

  function* endOf({ reason, usage, model, charge, responseTimeMs }: FinishedAnswer): Generator<string> {
    const used = { usage: presentUsage(usage) };
    const last = { ...same, model };
    yield frame({ ...last, choices: [{ index: 0, delta: role, finish_reason: reason }], ...noUsage });
    if (withUsage) yield frame({ ...last, choices: [], ...used });
    const billing = charge === null ? null : billingHeaders(charge, principal);
    yield frame({ type: 'done', response_time_ms: responseTimeMs, ...last, choices: [], ...used, billing });
    yield 'data: [DONE]\n\n';
  }
}

/** Collects an answer into one JSON object. @throws what the parts throw */
export async function wholeCompletion(answering: Answering): Promise<{ body: object; finished: FinishedAnswer }> {
  const { id, chatId, isNewChat, createdAt } = answering;
  let [text, reasoning] = ['', ''];
  const calls = new Map<number, { id: string; name: string; arguments: string }>();
  const logprobs: TokenLogprob[] = [];
  for await (const part of answering.parts) {
    if (part.type === 'text') text += part.text;
    else if (part.type === 'reasoning') reasoning += part.text;
    else if (part.type === 'logprobs') logprobs.push(...part.tokens);
    else if (part.type === 'toolCall') {
      const call = calls.get(part.index) ?? { id: part.id ?? '', name: '', arguments: '' };
      calls.set(part.index, {
        ...call,
        name: call.name || (part.name ?? ''),
        arguments: call.arguments + part.arguments,
      });
    } else {
      const toolCalls = [...calls].sort(([a], [b]) => a - b).map(([, call]) => presentToolCall(call));
      const message = {
        role: 'assistant',
        content: text === '' && toolCalls.length > 0 ? null : text,
        refusal: null,
        ...(reasoning !== '' && { reasoning_content: reasoning }),
        ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
      };
      const body = {
        id,
        object: 'chat.completion',
        created: secondsOf(createdAt),
        model: part.model,
        choices: [
          {
            ...{ index: 0, message, finish_reason: part.reason },
            logprobs: logprobs.length === 0 ? null : presentLogprobs(logprobs),
          },
        ],
        usage: presentUsage(part.usage),
        ...(isNewChat && { chat_id: chatId }),
        response_time_ms: part.responseTimeMs,
      };
      return { body, finished: part };
    }
  }
  throw new TandemError('LLM_UNAVAILABLE', 'The answer of the language model was cut off. Try again.');
}

export function presentToolCall({ id, name, arguments: written }: { id: string; name: string; arguments: string }) {
  return { id, type: 'function' as const, function: { name, arguments: written } };
}

function deltaOf(part: AnswerPiece) {
  if (part.type === 'text') return { content: part.text };
  if (part.type === 'reasoning') return { reasoning_content: part.text };
  if (part.type === 'logprobs') return {};
  const { index, id, name, arguments: written } = part;
  const begins = id === null ? {} : { id, type: 'function' };
  return { tool_calls: [{ index, ...begins, function: { ...(name !== null && { name }), arguments: written } }] };
}

/** As OpenAI has them. Refusals are not told apart from answers. */
function presentLogprobs(tokens: readonly TokenLogprob[]) {
  const content = tokens.map(({ alternatives, ...token }) => ({ ...token, top_logprobs: alternatives }));
  return { content, refusal: null };
}

function presentUsage({ promptTokens, completionTokens }: FinishedAnswer['usage']) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

function secondsOf(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}

function frame(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}
