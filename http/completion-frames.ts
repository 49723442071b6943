import type { AnswerDelta, AnswerPart, AnswerStream, FinishedAnswer } from '../actors/chat/chat-desk.ts';
import type { TokenLogprob } from '../language/llm.ts';
import { TandemError } from '../machines/errors.ts';
import { LATE, within } from '../runtime/waiting.ts';
import type { Principal } from './auth.ts';
import { billingHeaders } from './billing-headers.ts';
import { openaiError } from './openai-errors.ts';
import { toRefusal } from './refusals.ts';

/** Inserts a heartbeat if no part comes for `everyMs`. Reads a part only on demand. */
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
 * Formats an answer as Server-Sent Events in the specified order: id of a new chat, answer, end. Error frames combine
 * the formats of the specification and OpenAI.
 */
export async function* completionFrames(
  parts: AsyncIterable<AnswerPart | 'heartbeat'>,
  { answering, withUsage, principal }: { answering: AnswerStream; withUsage: boolean; principal: Principal },
): AsyncGenerator<string, void> {
  const { id, chatId, isNewChat, createdAt } = answering;
  const same = { id, object: 'chat.completion.chunk', created: secondsOf(createdAt), model: answering.model };
  const noUsage = withUsage ? { usage: null } : {};
  if (isNewChat) yield frame({ type: 'chat_id', chat_id: chatId, ...same, choices: [] });
  const begun = new Set<number>();
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
      const { choice: index } = part;
      const delta = { ...roleOf(index), ...deltaOf(part) };
      const logprobs = part.type === 'logprobs' ? { logprobs: presentLogprobs(part.tokens) } : {};
      yield frame({ ...same, choices: [{ index, delta, ...logprobs, finish_reason: null }], ...noUsage });
    }
  } catch (error) {
    const refusal = toRefusal(error);
    const { message, code } = refusal;
    yield frame({ type: 'error', message, code, error: openaiError(refusal) });
  }

  /** The first delta of each choice has its role. */
  function roleOf(index: number): { role?: 'assistant' } {
    if (begun.has(index)) return {};
    begun.add(index);
    return { role: 'assistant' };
  }

  function* endOf({ reasons, usage, model, charge, responseTimeMs }: FinishedAnswer): Generator<string> {
    const used = { usage: presentUsage(usage) };
    const last = { ...same, model };
    for (const [index, finish_reason] of reasons.entries()) {
      yield frame({ ...last, choices: [{ index, delta: roleOf(index), finish_reason }], ...noUsage });
    }
    if (withUsage) yield frame({ ...last, choices: [], ...used });
    const billing = charge === null ? null : billingHeaders(charge, principal);
    yield frame({ type: 'done', response_time_ms: responseTimeMs, ...last, choices: [], ...used, billing });
    yield 'data: [DONE]\n\n';
  }
}

/** Collects the answers into one JSON object. @throws errors of the parts */
export async function wholeCompletion(answering: AnswerStream): Promise<{ body: object; finished: FinishedAnswer }> {
  const { id, chatId, isNewChat, createdAt } = answering;
  const answers: WholeAnswer[] = [];
  for await (const part of answering.parts) {
    if (part.type !== 'finished') {
      answers[part.choice] ??= new WholeAnswer();
      answers[part.choice]!.add(part);
      continue;
    }
    const body = {
      id,
      object: 'chat.completion',
      created: secondsOf(createdAt),
      model: part.model,
      choices: part.reasons.map((finish_reason, index) => {
        return { index, finish_reason, ...(answers[index] ?? new WholeAnswer()).present() };
      }),
      usage: presentUsage(part.usage),
      ...(isNewChat && { chat_id: chatId }),
      response_time_ms: part.responseTimeMs,
    };
    return { body, finished: part };
  }
  throw new TandemError('LLM_UNAVAILABLE', 'The answer of the language model was cut off. Try again.');
}

class WholeAnswer {
  #text = '';
  #reasoning = '';
  readonly #calls = new Map<number, { id: string; name: string; arguments: string }>();
  readonly #logprobs: TokenLogprob[] = [];

  add(piece: AnswerDelta): void {
    switch (piece.type) {
      case 'text':
        this.#text += piece.text;
        break;
      case 'reasoning':
        this.#reasoning += piece.text;
        break;
      case 'logprobs':
        this.#logprobs.push(...piece.tokens);
        break;
      case 'toolCall': {
        const call = this.#calls.get(piece.index) ?? { id: piece.id ?? '', name: '', arguments: '' };
        const name = call.name || (piece.name ?? '');
        this.#calls.set(piece.index, { ...call, name, arguments: call.arguments + piece.arguments });
      }
    }
  }

  present() {
    const toolCalls = [...this.#calls].sort(([a], [b]) => a - b).map(([, call]) => presentToolCall(call));
    const message = {
      role: 'assistant',
      content: this.#text === '' && toolCalls.length > 0 ? null : this.#text,
      refusal: null,
      ...(this.#reasoning !== '' && { reasoning_content: this.#reasoning }),
      ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    };
    return { message, logprobs: this.#logprobs.length === 0 ? null : presentLogprobs(this.#logprobs) };
  }
}

export function presentToolCall({ id, name, arguments: written }: { id: string; name: string; arguments: string }) {
  return { id, type: 'function' as const, function: { name, arguments: written } };
}

function deltaOf(part: AnswerDelta) {
  if (part.type === 'text') return { content: part.text };
  if (part.type === 'reasoning') return { reasoning_content: part.text };
  if (part.type === 'logprobs') return {};
  const { index, id, name, arguments: written } = part;
  const begins = id === null ? {} : { id, type: 'function' };
  return { tool_calls: [{ index, ...begins, function: { ...(name !== null && { name }), arguments: written } }] };
}

/** In OpenAI's format. Refusals count as answers. */
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
