import { useEffect, useReducer, useRef } from 'react';
import { type AnswerEnd, type ChatMessage, type ChatSettings, complete, completionRequestOf } from './completion.ts';

export interface Turn extends ChatMessage {
  thoughts: string;
  /** Null while streaming, and for messages of the user. */
  end: AnswerEnd | null;
  isStopped: boolean;
}

export interface Conversation {
  turns: readonly Turn[];
  isAnswering: boolean;
  error: unknown;
}

type ConversationEvent =
  | { type: 'asked'; turns: readonly Turn[] }
  | { type: 'content' | 'thought'; text: string }
  | { type: 'answered'; end: AnswerEnd }
  | { type: 'stopped' }
  | { type: 'failed'; error: unknown }
  | { type: 'cleared' };

const EMPTY: Conversation = { turns: [], isAnswering: false, error: null };

/** Survives a switch to another tab of the playground. */
let kept: Conversation = EMPTY;

/** A conversation with a model, kept only by this page. */
export function useConversation(settings: ChatSettings) {
  const [conversation, dispatch] = useReducer(reduce, kept);
  const running = useRef<AbortController | null>(null);
  useEffect(() => {
    kept = { ...conversation, isAnswering: false };
  }, [conversation]);
  useEffect(() => () => running.current?.abort(), []);

  /** Resolves with false if the server refused or lost the message, which is then not part of the conversation. */
  const send = async (content: string): Promise<boolean> => {
    const turns = [...conversation.turns, turnOf('user', content)];
    dispatch({ type: 'asked', turns });
    const controller = new AbortController();
    running.current = controller;
    try {
      const end = await complete(completionRequestOf(settings, turns.map(messageOf)), {
        signal: controller.signal,
        onContent: (text) => dispatch({ type: 'content', text }),
        onThought: (text) => dispatch({ type: 'thought', text }),
      });
      dispatch({ type: 'answered', end });
      return true;
    } catch (error) {
      dispatch(controller.signal.aborted ? { type: 'stopped' } : { type: 'failed', error });
      return controller.signal.aborted;
    }
  };
  return {
    conversation,
    send,
    stop: () => running.current?.abort(),
    clear: () => dispatch({ type: 'cleared' }),
  };
}

function turnOf(role: ChatMessage['role'], content: string): Turn {
  return { role, content, thoughts: '', end: null, isStopped: false };
}

export function messageOf({ role, content }: Turn): ChatMessage {
  return { role, content };
}

function reduce(conversation: Conversation, event: ConversationEvent): Conversation {
  switch (event.type) {
    case 'asked':
      return { turns: [...event.turns, turnOf('assistant', '')], isAnswering: true, error: null };
    case 'content':
      return withAnswer(conversation, (turn) => ({ ...turn, content: turn.content + event.text }));
    case 'thought':
      return withAnswer(conversation, (turn) => ({ ...turn, thoughts: turn.thoughts + event.text }));
    case 'answered':
      return { ...withAnswer(conversation, (turn) => ({ ...turn, end: event.end })), isAnswering: false };
    case 'stopped':
      return { ...withAnswer(conversation, (turn) => ({ ...turn, isStopped: true })), isAnswering: false };
    // Removes the failed answer and its question.
    case 'failed':
      return { turns: conversation.turns.slice(0, -2), isAnswering: false, error: event.error };
    case 'cleared':
      return EMPTY;
  }
}

function withAnswer(conversation: Conversation, change: (turn: Turn) => Turn): Conversation {
  const last = conversation.turns.at(-1);
  return last === undefined ? conversation : { ...conversation, turns: conversation.turns.with(-1, change(last)) };
}
