import { api, apiErrorOf } from '../../app/api.ts';
import { ApiError } from '../../app/api-error.ts';
import { chatText } from '../../text/playground.ts';
import { eventsOf } from '../lines.ts';

export interface ChatSettings {
  /** Null: the default of the server. */
  model: string | null;
  system: string;
  temperature: number | null;
  maxTokens: number | null;
}

export interface ChatMessage {
  role: 'user' | 'assistant';
  content: string;
}

/** Body of `POST /v1/chat/completions`. The page keeps the conversation, so the server need not store it. */
export function completionRequestOf({ model, system, temperature, maxTokens }: ChatSettings, messages: ChatMessage[]) {
  return {
    ...(model !== null && { model }),
    messages: [...(system.trim() === '' ? [] : [{ role: 'system' as const, content: system }]), ...messages],
    ...(temperature !== null && { temperature }),
    ...(maxTokens !== null && { max_completion_tokens: maxTokens }),
    stream: true,
    save_chat: false,
  };
}

/** Statistics of a complete answer. */
export interface AnswerEnd {
  model: string;
  finishReason: string | null;
  promptTokens: number;
  completionTokens: number;
  usd: number | null;
  tookMs: number;
}

interface Frame {
  type?: 'done' | 'error' | 'chat_id';
  model?: string;
  choices?: { delta?: { content?: string | null; reasoning_content?: string | null }; finish_reason?: string | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number };
  billing?: Record<string, unknown>;
  code?: string;
  message?: string;
}

interface Deltas {
  signal: AbortSignal;
  onContent: (text: string) => void;
  onThought: (text: string) => void;
}

/** Streams the answer to a conversation. @throws ApiError */
export async function complete(
  body: ReturnType<typeof completionRequestOf>,
  { signal, onContent, onThought }: Deltas,
): Promise<AnswerEnd> {
  const startedAt = performance.now();
  const { data, error, response } = await api.POST('/v1/chat/completions', { body, parseAs: 'stream', signal });
  if (!response.ok || !data) throw apiErrorOf(response, error);
  let finishReason: string | null = null;
  for await (const event of eventsOf(data as ReadableStream<Uint8Array<ArrayBuffer>>)) {
    const frame = event as Frame;
    if (frame.type === 'error') {
      throw new ApiError({ status: 500, code: frame.code ?? 'FAILED', message: frame.message ?? chatText.brokenOff });
    }
    if (frame.type === 'done') return endOf(frame, { finishReason, tookMs: performance.now() - startedAt });
    const [choice] = frame.choices ?? [];
    if (choice?.delta?.content) onContent(choice.delta.content);
    if (choice?.delta?.reasoning_content) onThought(choice.delta.reasoning_content);
    finishReason = choice?.finish_reason ?? finishReason;
  }
  throw new ApiError({ status: 0, code: 'INTERRUPTED', message: chatText.brokenOff });
}

function endOf({ model, usage, billing }: Frame, more: { finishReason: string | null; tookMs: number }): AnswerEnd {
  const usd = billing?.['x-credit-charged'];
  return {
    ...more,
    model: model ?? '',
    promptTokens: usage?.prompt_tokens ?? 0,
    completionTokens: usage?.completion_tokens ?? 0,
    usd: usd === undefined ? null : Number(usd),
  };
}
