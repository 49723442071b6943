import { createTextCorrection } from '../../language/correction/correct-text.ts';
import type { LanguageModels } from '../../language/llm.ts';
import { countTokens } from '../../language/tokens.ts';
import { type ChatDeskOptions, createChatDesk } from './chat-desk.actor.ts';
import type { ChatDesk } from './chat-desk.ts';
import { failLostCompletions } from './lost-completions.ts';

export interface OpenChatOptions extends Omit<ChatDeskOptions, 'models' | 'correction' | 'countTokens'> {
  models: LanguageModels;
}

/** Gives back what completions of earlier runs of this node held, and takes new ones. */
export async function openChat(options: OpenChatOptions): Promise<ChatDesk> {
  const { models, clock } = options;
  await failLostCompletions({ ...options, now: new Date(clock.now()) });
  return createChatDesk({ ...options, countTokens, correction: createTextCorrection({ models, countTokens }) });
}
