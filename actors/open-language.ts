import type { LanguageModels } from '../language/llm.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Storage } from '../storage/open-storage.ts';
import type { ChatDesk } from './chat/chat-desk.ts';
import { openChat } from './chat/open-chat.ts';
import { createDocumentDesk } from './documents/document-desk.actor.ts';
import type { DocumentDesk } from './documents/document-desk.ts';
import type { JudgeDesk } from './judge/judge-desk.ts';
import { openJudge } from './judge/open-judge.ts';
import type { Logger } from './logger.ts';
import type { MemoryDesk } from './memory/memory-desk.ts';
import { type EmbeddingSettings, openMemory } from './memory/open-memory.ts';
import type { MemoryIndexChoice } from './memory/open-vector-index.ts';
import type { TextEmbedding } from './memory/text-embedding.ts';

/** As in `settings.ts`. */
export interface LanguageDeskSettings extends EmbeddingSettings {
  readonly memoryIndex: MemoryIndexChoice;
}

export interface OpenLanguageOptions {
  storage: Storage;
  models: LanguageModels;
  clock: Clock;
  logger: Logger;
}

export interface Language extends AsyncDisposable {
  readonly chat: ChatDesk;
  readonly judge: JudgeDesk;
  readonly memory: MemoryDesk & TextEmbedding;
  readonly documents: DocumentDesk;
}

/** Longest that the start waits for the memory queue. After that, memory requests answer `MEMORY_INFRA_NOT_READY`. */
const MEMORY_READY_WITHIN_MS = 3_000;

/** Opens chat, judge, memory and documents, after releasing wallet holds of this node's earlier boots. */
export async function openLanguage(settings: LanguageDeskSettings, options: OpenLanguageOptions): Promise<Language> {
  const { storage, ...given } = options;
  const { folder, sql, jobs, limits, nodes } = storage;
  const shared = { ...folder, ...given, sql, jobs, nodes };
  await using opening = new AsyncDisposableStack();
  const chat = await openChat(shared);
  opening.defer(() => chat.close());
  const judge = await openJudge(shared);
  opening.defer(() => judge.close());
  const memory = openMemory({ ...shared, embeddings: settings, index: settings.memoryIndex });
  opening.defer(() => memory.close());
  const documents = createDocumentDesk({ sql, limits, tempDir: folder.tempDir });
  opening.defer(() => documents.close());
  await memory.ready({ withinMs: MEMORY_READY_WITHIN_MS });
  const opened = opening.move();
  return { ...{ chat, judge: judge.desk, memory, documents }, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}
