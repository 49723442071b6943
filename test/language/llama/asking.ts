import type { LanguageEngine } from '../../../language/engine.ts';
import type { CompletionPart, CompletionRequest, ToolCall } from '../../../language/llm.ts';
import { eventually } from '../../eventually.ts';
import { isRunning } from '../../is-running.ts';

export interface Asked {
  text: string;
  reasoning: string;
  toolCalls: ToolCall[];
  finished: Extract<CompletionPart, { type: 'finished' }> | null;
}

export type Question = Partial<CompletionRequest>;

export async function ask(engine: LanguageEngine, question: Question | string): Promise<Asked> {
  const asked: Asked = { text: '', reasoning: '', toolCalls: [], finished: null };
  for await (const part of stream(engine, question)) {
    if (part.type === 'text') asked.text += part.text;
    else if (part.type === 'reasoning') asked.reasoning += part.text;
    else if (part.type === 'finished') asked.finished = part;
    else if (part.type === 'toolCall')
      asked.toolCalls.push({ id: part.id ?? '', name: part.name ?? '', arguments: part.arguments });
  }
  return asked;
}

export async function* stream(
  engine: LanguageEngine,
  question: Question | string,
): AsyncGenerator<CompletionPart, void> {
  const { signal } = new AbortController();
  const [model] = await engine.models(signal);
  const asked = typeof question === 'string' ? { messages: [{ role: 'user' as const, content: question }] } : question;
  yield* engine.stream({
    messages: [{ role: 'user', content: 'Hi' }],
    signal,
    ...asked,
    model: asked.model ?? model?.id ?? '',
  });
}

export async function collected<T>(parts: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const part of parts) all.push(part);
  return all;
}

export function untilGone(pid: number): Promise<void> {
  return eventually(() => {
    if (isRunning(pid)) throw new Error(`${pid} still runs`);
  });
}
