import { randomUUID } from 'node:crypto';
import { createActor, fromPromise } from 'xstate';
import type { TextCorrection } from '../../language/correction/text-correction.ts';
import type { LanguageModels } from '../../language/llm.ts';
import type { CountTokens } from '../../language/tokens.ts';
import { type CompletionEnding, completionMachine } from '../../machines/completion.machine.ts';
import { TandemError } from '../../machines/errors.ts';
import { type Clock, type Moment, momentOf } from '../../runtime/clock.ts';
import { within } from '../../runtime/waiting.ts';
import type { Sql } from '../../storage/database.ts';
import type { Charge } from '../../storage/ledger.ts';
import { Handover } from '../handover.ts';
import type { Logger } from '../logger.ts';
import { Answer } from './answer.ts';
import { usageOf } from './answer-usage.ts';
import type { Answering, AnswerPart, AskRequest, ChatDesk, ChoicePiece, FinishedAnswer } from './chat-desk.ts';
import { type Admission, closeCompletion, openCompletion } from './completion-account.ts';
import { keptTurn } from './kept-turn.ts';
import { merged } from './merged.ts';
import { preparationOf } from './preparation.ts';
import { TokenCounter } from './token-count.ts';

export interface ChatDeskOptions {
  sql: Sql;
  models: Pick<LanguageModels, 'resolve' | 'stream'>;
  correction: TextCorrection;
  countTokens: CountTokens;
  /** Who generates: the next boot of the node ends what this one leaves behind. */
  node: string;
  boot: string;
  clock: Clock;
  logger: Logger;
}

/** What an actor's ports need to know and its context does not hold. */
interface LiveCompletion {
  id: string;
  request: AskRequest;
  listening: AbortSignal;
  chatId: string | null;
  askedAt: Moment;
  counter: TokenCounter;
  model: string;
  admission: Admission | null;
  /** One per choice. */
  answers: readonly Answer[];
  parts: Handover<ChoicePiece>;
  charge: Charge | null;
  finished: FinishedAnswer | null;
  /** Settled once it is generated, or refused. */
  admitted: PromiseWithResolvers<void>;
  isEndTold: boolean;
  /** Why it was refused, or failed. */
  error: unknown;
}

/** Whoever takes an answer so slowly gets what there is by then. */
const GENERATION_LIMIT_MS = 10 * 60_000;
/** The listener waits meanwhile to be told how it ended. */
const STORE_WITHIN_MS = 4_000;
/** Storage that does not come back must not keep the server from ending. */
const CLOSE_WITHIN_MS = 5_000;

/** Gives the machine its real ports, once, and returns what starts an actor for each completion. */
export function createChatDesk(options: ChatDeskOptions): ChatDesk {
  const { sql, models, correction, clock, logger } = options;
  const live = new Map<string, LiveCompletion>();
  const over = new Set<Promise<unknown>>();
  let closed = false;

  const machine = completionMachine.provide({
    actors: {
      admit: fromPromise(async ({ input: { completionId } }) => {
        const completion = live.get(completionId)!;
        completion.admission = await noting(completion, admit(completion));
      }),
      generate: fromPromise(async ({ input: { completionId }, signal }) => {
        const completion = live.get(completionId)!;
        completion.admitted.resolve();
        await noting(completion, generate(completion, signal));
      }),
      conclude: fromPromise(async ({ input: { completionId, ending } }) => {
        const completion = live.get(completionId)!;
        await conclude(completion, ending).catch((error: unknown) => {
          logger.warn({ completionId, err: error }, 'completion result could not be stored');
          throw error;
        });
      }),
    },
  });

  return {
    async ask(request, listening) {
      if (closed) throw shuttingDown();
      listening.throwIfAborted();
      const counter = new TokenCounter(options.countTokens);
      const isKept = request.savesChat || request.chatId !== null;
      const completion: LiveCompletion = {
        ...{ id: `chatcmpl-${randomUUID()}`, request, listening, counter },
        chatId: isKept ? (request.chatId ?? `chat_${randomUUID()}`) : null,
        ...{ askedAt: momentOf(clock), model: '', admission: null },
        ...{ answers: Array.from({ length: choicesOf(request) }, () => new Answer(counter)), parts: new Handover() },
        ...{ charge: null, finished: null },
        ...{ admitted: Promise.withResolvers<void>(), isEndTold: false, error: null },
      };
      live.set(completion.id, completion);
      start(completion);
      await completion.admitted.promise;
      return answeringOf(completion);
    },

    async close() {
      closed = true;
      await within(Promise.allSettled(over), { ms: CLOSE_WITHIN_MS, clock });
      const completionIds = [...live.keys()];
      if (live.size > 0)
        logger.error({ completionIds }, 'completion results not stored; the next start will settle them');
    },
  };

  function start(completion: LiveCompletion): void {
    const { id, listening, parts, admitted } = completion;
    const actor = createActor(machine, { input: { completionId: id, limitMs: GENERATION_LIMIT_MS }, clock });
    const ended = Promise.withResolvers<void>();
    let patience: unknown = null;
    const leave = () => actor.send({ type: 'listener.left', ofOwnAccord: !isSentAway(listening.reason) });
    const end = (error: unknown) => {
      clock.clearTimeout(patience);
      listening.removeEventListener('abort', leave);
      admitted.reject(error);
      ended.resolve();
    };
    actor.subscribe({
      next({ value, context: { ending } }) {
        if (value !== 'concluding' || ending === null || patience !== null) return;
        if (ending.outcome === 'abandoned' || completion.admission === null) tellEnd(completion, ending);
        patience = clock.setTimeout(() => tellEnd(completion, ending), STORE_WITHIN_MS);
      },
      complete() {
        const ending = actor.getSnapshot().output ?? null;
        if (ending === null) parts.fail(completion.error);
        else tellEnd(completion, ending);
        end(completion.error);
      },
      // A defect, not an outcome.
      error(error) {
        logger.error({ completionId: id, err: error }, 'completion actor failed');
        parts.fail(error);
        end(error);
      },
    });
    const gone = ended.promise.then(() => {
      live.delete(id);
      over.delete(gone);
    });
    over.add(gone);
    actor.start();
    listening.addEventListener('abort', leave, { once: true });
  }

  async function admit(completion: LiveCompletion): Promise<Admission> {
    const { id, request, chatId, askedAt, counter, listening } = completion;
    const { workspaceId, userId, apiKeyId } = request;
    const { countTokens } = options;
    const { model, ...prepared } = await preparationOf(request, { models, counter, countTokens, signal: listening });
    completion.model = model;
    const whose = { workspaceId, userId, apiKeyId, ownerNode: options.node, ownerBoot: options.boot };
    return await openCompletion(sql, {
      row: { id, ...whose, chatId, operation: request.what.mode, model, createdAt: askedAt.at },
      chat: request.chatId === null ? null : { id: request.chatId, workspaceId, userId },
      ...prepared,
    });
  }

  /** Every choice is a request of its own, because many servers ignore `n`. When one fails, the others stop. */
  async function generate({ answers, parts, ...completion }: LiveCompletion, signal: AbortSignal): Promise<void> {
    const { mostTokens } = completion.admission!;
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    const pieces = answers.map((answer, choice) =>
      answer.from(sourceOf(completion, { choice, signal: either }), { mostTokens }),
    );
    try {
      await parts.giveAll(merged(pieces), signal);
    } finally {
      over.abort();
    }
  }

  function sourceOf(
    { request, model, admission }: Pick<LiveCompletion, 'request' | 'model' | 'admission'>,
    { choice, signal }: { choice: number; signal: AbortSignal },
  ) {
    const { what, workspaceId, model: asked } = request;
    if (what.mode === 'correct') return correction.stream({ ...what, onBehalfOf: workspaceId, model: asked, signal });
    const { mode, choices = 1, seed, ...wanted } = what;
    const { messages, maxTokens } = admission!;
    return models.stream({
      ...wanted,
      ...(seed !== undefined && { seed: seed + choice }),
      // The choices wait for one another.
      ...(choices > 1 && { turnWithinMs: GENERATION_LIMIT_MS }),
      onBehalfOf: workspaceId,
      model,
      messages,
      ...(maxTokens !== null && { maxTokens }),
      signal,
    });
  }

  async function conclude(completion: LiveCompletion, ending: CompletionEnding): Promise<void> {
    const { id, request, chatId, answers, admission, counter } = completion;
    const { workspaceId, userId } = request;
    const answer = answers[0]!;
    const usage = ending.owes && admission !== null ? usageOf(answers, admission) : null;
    const isAnswered = ending.outcome === 'completed' || (ending.outcome === 'abandoned' && answer.text !== '');
    const chat = { id: chatId ?? '', workspaceId, userId };
    const isKept = request.savesChat && isAnswered && admission !== null;
    const model = modelOf(completion);
    const turn = isKept ? await keptTurn({ request, unsaved: admission.unsaved, answer, model, chat, counter }) : null;
    const error = ending.outcome === 'failed' ? failureOf(completion).code : null;
    const stored = { state: ending.outcome, model, usage, error, turn };
    const now = new Date(clock.now());
    completion.charge = await closeCompletion(sql, { id, workspaceId }, { ending: stored, now });
  }

  function tellEnd(completion: LiveCompletion, { outcome }: CompletionEnding): void {
    const { id, parts, listening, answers, charge, admission } = completion;
    if (completion.isEndTold) return;
    completion.isEndTold = true;
    if (outcome === 'completed') {
      // Without an end of its own its time was over.
      const reasons = answers.map(({ end }) => end?.reason ?? 'length');
      const responseTimeMs = Math.round(clock.monotonicMs() - completion.askedAt.monotonicMs);
      const usage = usageOf(answers, admission!);
      completion.finished = { type: 'finished', reasons, usage, model: modelOf(completion), charge, responseTimeMs };
      parts.finish();
      return;
    }
    if (listening.aborted) completion.error = listening.reason;
    else if (admission !== null) {
      completion.error = failureOf(completion);
      logger.warn({ completionId: id, code: failureOf(completion).code }, 'completion failed');
    }
    completion.admitted.reject(completion.error);
    parts.fail(completion.error);
  }
}

/** As the engine names it. */
function modelOf({ answers, model }: LiveCompletion): string {
  return answers.find(({ end }) => end?.model)?.end?.model ?? model;
}

function choicesOf({ what }: AskRequest): number {
  return what.mode === 'chat' ? (what.choices ?? 1) : 1;
}

async function* answered(completion: LiveCompletion): AsyncGenerator<AnswerPart, void> {
  const { parts } = completion;
  for (let part = await parts.take(); part !== null; part = await parts.take()) yield part;
  if (completion.finished !== null) yield completion.finished;
}

function answeringOf(completion: LiveCompletion): Answering {
  const { id, request, chatId, model, askedAt } = completion;
  const isNewChat = request.chatId === null && chatId !== null;
  return { id, chatId, isNewChat, model, createdAt: askedAt.at, parts: answered(completion) };
}

/** Not when their credentials end: who revokes a key as the last word comes would have read all of it for nothing. */
function isSentAway(reason: unknown): boolean {
  return reason instanceof TandemError && reason.code !== 'UNAUTHORIZED' && reason.code !== 'CHAT_CLIENT_CANCELLED';
}

function failureOf({ listening, error }: LiveCompletion): TandemError {
  const why = listening.aborted ? listening.reason : error;
  if (why instanceof TandemError) return why;
  const message = 'The language model failed. You were not charged. Retry.';
  return new TandemError('LLM_UNAVAILABLE', message, { cause: why, retryAfterS: 5 });
}

function shuttingDown(): TandemError {
  return new TandemError('SHUTTING_DOWN', 'The server is shutting down. Try again.', { retryAfterS: 5 });
}

async function noting<T>(completion: LiveCompletion, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    completion.error = error;
    throw error;
  }
}
