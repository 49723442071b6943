import { AnswerError } from './answer-error.ts';
import type { FunctionCallItem, HistoryItem } from './node-llama-cpp.ts';
import type { AnswerRequest } from './protocol.ts';

/**
 * Converts messages to the library's history, where an assistant's text, calls and their results are one item.
 * `instruction` is appended to the system message.
 * @throws AnswerError `refused` for a tool message without a tool call before it
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

/** The assistant's current turn, or a new one. */
function lastResponse(history: HistoryItem[]): Extract<HistoryItem, { type: 'model' }>['response'] {
  const last = history.at(-1);
  if (last?.type === 'model') return last.response;
  const item: HistoryItem = { type: 'model', response: [] };
  history.push(item);
  return item.response;
}

/** Parses a call's arguments, which the model may have written as invalid JSON. */
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
