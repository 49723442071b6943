import { createTextCorrection } from '../../language/correction/correct-text.ts';
import type { LanguageModels } from '../../language/llm.ts';
import { countTokens } from '../../language/tokens.ts';
import type { NodeDirectory } from '../../storage/nodes/node-directory.ts';
import type { LostOwner } from '../../storage/queries/nodes.ts';
import { type ChatDeskOptions, createChatDesk } from './chat-desk.actor.ts';
import type { ChatDesk } from './chat-desk.ts';
import { failLostCompletions } from './lost-completions.ts';

export interface OpenChatOptions extends Omit<ChatDeskOptions, 'models' | 'correction' | 'countTokens'> {
  models: LanguageModels;
  nodes: Pick<NodeDirectory, 'onLost'>;
}

/**
 * Opens the chat desk, after releasing holds of earlier boots. Later it releases those of lost nodes during their
 * takeover.
 */
export async function openChat(options: OpenChatOptions): Promise<ChatDesk> {
  const { models, clock, node, boot, nodes } = options;
  const failLost = async (lost: LostOwner) =>
    void (await failLostCompletions({ ...options, lost, now: new Date(clock.now()) }));
  await failLost({ node, exceptBoot: boot });
  nodes.onLost(failLost);
  return createChatDesk({ ...options, countTokens, correction: createTextCorrection({ models, countTokens }) });
}
