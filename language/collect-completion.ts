import type { Completion, CompletionPart, ToolCall } from './llm.ts';

/**
 * Collects a stream of parts into one completion.
 * @throws what the stream throws; Error if it ends without `finished`
 */
export async function collectCompletion(parts: AsyncIterable<CompletionPart>): Promise<Completion> {
  let text = '';
  let reasoning = '';
  const toolCalls = new Map<number, ToolCall>();
  for await (const part of parts) {
    switch (part.type) {
      case 'text':
        text += part.text;
        break;
      case 'reasoning':
        reasoning += part.text;
        break;
      case 'toolCall': {
        const call = toolCalls.get(part.index) ?? { id: '', name: '', arguments: '' };
        toolCalls.set(part.index, {
          id: call.id === '' ? (part.id ?? '') : call.id,
          name: call.name === '' ? (part.name ?? '') : call.name,
          arguments: call.arguments + part.arguments,
        });
        break;
      }
      case 'finished': {
        const calls = [...toolCalls].sort(([a], [b]) => a - b).map(([, call]) => call);
        return {
          text,
          reasoning,
          toolCalls: calls,
          finishReason: part.reason,
          usage: part.usage,
          model: part.model,
        };
      }
    }
  }
  throw new Error('the answer ended before it was finished');
}
