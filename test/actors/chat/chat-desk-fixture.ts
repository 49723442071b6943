import { type ChatDeskOptions, createChatDesk } from '../../../actors/chat/chat-desk.actor.ts';
import type {
  AnswerPart,
  AnswerStream,
  AskRequest,
  ChatAsk,
  ChatDesk,
  CorrectionAsk,
} from '../../../actors/chat/chat-desk.ts';
import { createTextCorrection } from '../../../language/correction/correct-text.ts';
import type { ChatMessage } from '../../../language/llm.ts';
import { walletOf } from '../../../storage/ledger.ts';
import type { ChatMessageRow } from '../../../storage/queries/chats.ts';
import type { CompletionRow } from '../../../storage/queries/completions.ts';
import { FakeLanguageModels } from '../../language/fake-language-models.ts';
import { NOW, seedWorkspace, USD } from '../../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../../storage/test-database.ts';
import { createTestClock, createTestLogger } from '../fakes.ts';

export const TOKEN_NANO = 20_000n;

/** Counts four characters as a token, so that tests can calculate costs. */
export const countTokens = (text: string) => Math.ceil(text.length / 4);

type MoreOfRequest = Partial<Omit<AskRequest, 'what'>> & { what?: Partial<ChatAsk> | CorrectionAsk };

/** A chat desk on its own database, with scripted models. */
export interface ChatDeskFixture extends AsyncDisposable {
  database: TestDatabase;
  models: FakeLanguageModels;
  workspaceId: string;
  userId: number;
  /** Creates a workspace and uses it for the following requests. */
  fund(balanceNano?: bigint): Promise<void>;
  deskOf(options?: Partial<ChatDeskOptions>): {
    desk: ChatDesk;
    clock: ReturnType<typeof createTestClock>;
    logger: ReturnType<typeof createTestLogger>;
  };
  /** A request of one user message or of the given messages, unless `what` is a correction. */
  request(content: string | readonly ChatMessage[], more?: MoreOfRequest): AskRequest;
  wallet(): ReturnType<typeof walletOf>;
  rows(): Promise<CompletionRow[]>;
  kept(chatId: string): Promise<ChatMessageRow[]>;
  /** Tokens of the usage log and the amount charged for them. */
  charged(): Promise<{ tokens: number; amountNano: bigint }>;
}

export async function createChatDeskFixture(): Promise<ChatDeskFixture> {
  const database = await createTestDatabase();
  const { sql } = database;
  const fixture: ChatDeskFixture = {
    database,
    models: new FakeLanguageModels(),
    workspaceId: '',
    userId: 0,
    async fund(balanceNano = USD) {
      const { workspace, user } = await seedWorkspace(sql, { balanceNano });
      fixture.workspaceId = workspace.id;
      fixture.userId = user.id;
      fixture.models = new FakeLanguageModels();
    },
    deskOf(options = {}) {
      const { models } = fixture;
      const clock = createTestClock(NOW);
      const logger = createTestLogger();
      const correction = createTextCorrection({ models, countTokens });
      const parts = { sql, models, correction, countTokens, clock, logger, node: 'node-1', boot: 'boot-2' };
      return { desk: createChatDesk({ ...parts, ...options }), clock, logger };
    },
    request(content, { what = {}, ...more } = {}) {
      const { workspaceId, userId } = fixture;
      const messages = typeof content === 'string' ? [{ role: 'user' as const, content }] : content;
      const asked = what.mode === 'correct' ? what : { mode: 'chat' as const, messages, ...what };
      return { workspaceId, userId, apiKeyId: null, chatId: null, savesChat: true, model: null, what: asked, ...more };
    },
    wallet: () => walletOf(sql, fixture.workspaceId),
    rows: async () =>
      await sql<CompletionRow[]>`
        select * from completions where workspace_id = ${fixture.workspaceId} order by created_at, id`,
    kept: async (chatId) =>
      await sql<ChatMessageRow[]>`select * from chat_messages where chat_id = ${chatId} order by position`,
    async charged() {
      const [row] = await sql<{ tokens: number; amountNano: bigint }[]>`
        select coalesce(sum(u.quantity), 0)::int as tokens, coalesce(sum(e.result_nano), 0)::bigint as amount_nano
        from usage_logs u join entries e on e.id = u.entry_id where u.workspace_id = ${fixture.workspaceId}`;
      return row!;
    },
    async [Symbol.asyncDispose]() {
      await database.drop();
    },
  };
  return fixture;
}

export const listening = () => new AbortController().signal;

export async function partsOf({ parts }: Pick<AnswerStream, 'parts'>): Promise<AnswerPart[]> {
  const taken: AnswerPart[] = [];
  for await (const part of parts) taken.push(part);
  return taken;
}

/** The text and the end of a completion. */
export async function answerOf(answering: AnswerStream) {
  const parts = await partsOf(answering);
  const finished = parts.at(-1);
  if (finished?.type !== 'finished') throw new Error('the answer did not end');
  const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
  return { ...answering, parts, text, finished };
}
