import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Answering, AskRequest } from '../../actors/chat/chat-desk.ts';
import { TandemError } from '../../machines/errors.ts';
import { chatNotFound, deleteChat, findChat, listChatMessages, listChats } from '../../storage/queries/chats.ts';
import { principalOf } from '../auth.ts';
import { billingHeaders } from '../billing-headers.ts';
import { completionFrames, presentToolCall, wholeCompletion, withBeats } from '../completion-frames.ts';
import { modelNamedBy, readCompletionBody, wantsStream } from '../completion-request.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { endWithClient } from '../credential-watch.ts';
import { CompletionBody } from '../schemas/chat.ts';
import { ChatMessageSchema, ChatSchema, CompletionResponse } from '../schemas/chat-answers.ts';
import {
  PAGE_QUERY,
  PaginationSchema,
  pageOf,
  paginationOf,
  REFUSALS,
  success,
  successOf,
} from '../schemas/envelope.ts';
import { takenInTime } from '../spoken-lines.ts';

const TAGS = ['chat'];
/** A conversation is longer than what other operations take. */
const BODY_LIMIT_BYTES = 512 * 1024;
const IdParams = Type.Object({ id: Type.String({ maxLength: 64, description: 'Of the chat.' }) });

export function chatRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, chat, limits, logger } = context;

  app.post(
    '/v1/chat/completions',
    {
      config: { access: 'writer' },
      bodyLimit: BODY_LIMIT_BYTES,
      schema: {
        tags: TAGS,
        operationId: 'createChatCompletion',
        summary: 'Ask a language model, or have a text corrected',
        description: DESCRIPTION,
        body: CompletionBody,
        response: { 200: CompletionResponse, ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const { workspaceId, userId, apiKeyId } = principalOf(request);
      const ask: AskRequest = {
        ...{ workspaceId, userId, apiKeyId, model: modelNamedBy(body), what: readCompletionBody(body) },
        chatId: body.chat_id ?? null,
        savesChat: body.save_chat ?? true,
      };
      const withUsage = body.stream_options?.include_usage ?? false;
      if (wantsStream(body, request.headers.accept))
        return await answerInFrames({ request, reply }, { ask, withUsage });
      return await answerWhole({ request, reply }, ask);
    },
  );

  app.get(
    '/chats',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listChats',
        summary: "The caller's chats, the one that was continued last first",
        querystring: Type.Object(PAGE_QUERY),
        response: { 200: successOf(pageOf('chats', ChatSchema), 'One page of chats.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { rows, total } = await listChats(sql, principalOf(request), request.query);
      return success({ chats: rows.map(presentChat), pagination: paginationOf(request.query, total) });
    },
  );

  app.get(
    '/chats/:id',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getChat',
        summary: 'One chat, with what was said in it',
        params: IdParams,
        querystring: Type.Object(PAGE_QUERY),
        response: { 200: successOf(ShownChatSchema, 'The chat, and one page of its messages.'), ...REFUSALS },
      },
    },
    async (request) => {
      const row = await findChat(sql, keyOf(request));
      if (row === null) throw chatNotFound();
      const { rows, total } = await listChatMessages(sql, row.id, request.query);
      const messages = rows.map(({ role, content, toolCalls, toolCallId, model, createdAt }) => ({
        role,
        content,
        ...(toolCalls !== null && { tool_calls: toolCalls.map(presentToolCall) }),
        ...(toolCallId !== null && { tool_call_id: toolCallId }),
        ...(model !== null && { model }),
        created_at: createdAt.toISOString(),
      }));
      return success({ ...presentChat(row), messages, pagination: paginationOf(request.query, total) });
    },
  );

  app.delete(
    '/chats/:id',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'deleteChat',
        summary: 'Delete a chat and what was said in it',
        description: 'An answer that is under way goes on, and is not kept.',
        params: IdParams,
        response: { 200: successOf(DeletedChatSchema, 'It is gone.'), ...REFUSALS },
      },
    },
    async (request) => {
      const key = keyOf(request);
      if (!(await deleteChat(sql, key))) throw chatNotFound();
      return success({ chat_id: key.id, deleted: true });
    },
  );

  async function answerInFrames(
    { request, reply }: Exchange,
    { ask, withUsage }: { ask: AskRequest; withUsage: boolean },
  ): Promise<FastifyReply> {
    const { ended, answering } = await asked({ request, reply }, ask);
    const parts = withBeats(answering.parts, context.heartbeatMs);
    let first: Awaited<ReturnType<typeof parts.next>>;
    try {
      // What fails before anything has come is a refusal with a status of its own.
      first = await parts.next();
    } catch (error) {
      throw whyEnded(error, { ended, request, reply });
    }
    async function* all() {
      if (!first.done) yield first.value;
      yield* parts;
    }
    const frames = takenInTime(completionFrames(all(), { answering, withUsage }), {
      withinMs: context.listenerPatienceMs,
      onStalled: () => reply.raw.destroy(),
    });
    return reply
      .headers({
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-cache, no-transform',
        // nginx would hold frames back.
        'x-accel-buffering': 'no',
      })
      .send(Readable.from(frames));
  }

  async function answerWhole({ request, reply }: Exchange, ask: AskRequest): Promise<object> {
    const { ended, answering } = await asked({ request, reply }, ask);
    try {
      const { body, finished } = await wholeCompletion(answering);
      if (finished.charge !== null) reply.headers(billingHeaders(finished.charge));
      return body;
    } catch (error) {
      throw whyEnded(error, { ended, request, reply });
    }
  }

  /** Has a slot until the response is out, or its client gone. */
  async function asked(
    { request, reply }: Exchange,
    ask: AskRequest,
  ): Promise<{ ended: AbortController; answering: Answering }> {
    const principal = principalOf(request);
    const slot = await limits.acquireSlot({ userId: principal.userId, kind: 'llm' });
    const ended = new AbortController();
    ended.signal.addEventListener('abort', () => void slot.release(), { once: true });
    endWithClient(context, { principal, reply, ended });
    try {
      return { ended, answering: await chat.ask(ask, ended.signal) };
    } catch (error) {
      throw whyEnded(error, { ended, request, reply });
    }
  }

  function whyEnded(error: unknown, { ended, request, reply }: Exchange & { ended: AbortController }): unknown {
    ended.abort();
    if (!reply.raw.destroyed) return error;
    const cancelled = new TandemError('CHAT_CLIENT_CANCELLED', 'The client closed the connection.');
    const { code, status } = cancelled;
    // No response goes out, so that nothing else is logged.
    logger.info({ requestId: request.id, code, status }, 'completion cancelled');
    return cancelled;
  }
}

interface Exchange {
  request: FastifyRequest;
  reply: FastifyReply;
}

function keyOf(request: FastifyRequest<{ Params: Static<typeof IdParams> }>) {
  const { workspaceId, userId } = principalOf(request);
  return { id: request.params.id, workspaceId, userId };
}

function presentChat({
  id,
  title,
  messageCount,
  createdAt,
  updatedAt,
}: NonNullable<Awaited<ReturnType<typeof findChat>>>) {
  return {
    chat_id: id,
    title,
    message_count: messageCount,
    created_at: createdAt.toISOString(),
    updated_at: updatedAt.toISOString(),
  };
}

const ShownChatSchema = Type.Object({
  ...ChatSchema.properties,
  messages: Type.Array(ChatMessageSchema),
  pagination: PaginationSchema,
});

const DeletedChatSchema = Type.Object({
  chat_id: ChatSchema.properties.chat_id,
  deleted: Type.Literal(true),
});

const DESCRIPTION = [
  'Takes messages to answer, or a text to correct; never both. With a `chat_id` what was said in that chat goes before the',
  'messages, the oldest of it left out where the model has no room. The most an answer may cost is held, or as much as',
  'there is in the wallet, and then it ends with `length`; what it comes to is charged by the token with its end. What',
  'fails costs nothing. Whoever closes the connection stops the model and pays for the prompt and what was produced by',
  'then. One answer at a time in a chat: another request for it is refused with CHAT_BUSY. A user has 8 completions and',
  'evaluations at a time. The body may have 512 KiB.',
].join(' ');
