import { AnswerError } from './answer-error.ts';
import type { FunctionCallItem, HistoryItem } from './node-llama-cpp.ts';
import type { AnswerRequest } from './protocol.ts';

/**
 * Messages as the library has them: what an assistant said and called, and what came of it, is one item. `instruction`
 * joins what the system says. @throws AnswerError `refused`
 */
export function historyOf(messages: AnswerRequest['messages'], instruction: string | null): HistoryItem[] {
  const history: HistoryItem[] = [];
  const calls = new Map<string, FunctionCallItem>();
  for (const message of messages) {
    if (message.role === 'assistant') {
      const response = lastResponse(history);
      if (message.content !== null && message.content !== '') response.push(message.content);
      for (const { id, name, arguments: text } of message.toolCalls ?? []) {
        const call: FunctionCallItem = { type: 'functionCall', name, params: jsonOr(text), result: null };
        calls.set(id, call);
        response.push(call);
      }
    } else if (message.role === 'tool') {
      const call = calls.get(message.toolCallId);
      if (call === undefined) throw new AnswerError('refused', 'a tool message answers no tool call before it');
      call.result = message.content;
    } else {
      history.push({ type: message.role, text: message.content });
    }
  }
  return instruction === null ? history : withInstruction(history, instruction);
}

/** Of the turn of the assistant that goes on, or begins. */
function lastResponse(history: HistoryItem[]): Extract<HistoryItem, { type: 'model' }>['response'] {
  const last = history.at(-1);
  if (last?.type === 'model') return last.response;
  const item: HistoryItem = { type: 'model', response: [] };
  history.push(item);
  return item.response;
}

/** Arguments of a call as the model wrote them, which may be no JSON. */
function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function withInstruction(history: readonly HistoryItem[], instruction: string): HistoryItem[] {
  const [first, ...others] = history;
  if (first?.type !== 'system') return [{ type: 'system', text: instruction }, ...history];
  return [{ type: 'system', text: `${first.text}\n\n${instruction}` }, ...others];
}
