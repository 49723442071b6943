import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { AnswerStream, AskRequest } from '../../actors/chat/chat-desk.ts';
import { TandemError } from '../../machines/errors.ts';
import { chatNotFound, deleteChat, findChat, listChatMessages, listChats } from '../../storage/queries/chats.ts';
import { principalOf } from '../auth.ts';
import { billingHeaders } from '../billing-headers.ts';
import { completionFrames, presentToolCall, wholeCompletion, withHeartbeats } from '../completion-frames.ts';
import { modelNamedBy, readCompletionBody, wantsStream } from '../completion-request.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { abortWithClient } from '../credential-watch.ts';
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
import { withStallTimeout } from '../stall-timeout.ts';

const TAGS = ['chat'];
/** Conversations need more room than other bodies. */
const BODY_LIMIT_BYTES = 512 * 1024;
const IdParams = Type.Object({ id: Type.String({ maxLength: 64, description: 'Id of the chat.' }) });

export function chatRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, chat, limits, logger } = context;

  app.post(
    '/v1/chat/completions',
    {
      config: { access: 'writer', billed: true, streams: 'on request' },
      bodyLimit: BODY_LIMIT_BYTES,
      schema: {
        tags: TAGS,
        operationId: 'createChatCompletion',
        summary: 'Create a chat completion or correct a text',
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
        return await respondWithStream({ request, reply }, { ask, withUsage });
      return await respondWithJson({ request, reply }, ask);
    },
  );

  app.get(
    '/chats',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listChats',
        summary: 'List chats',
        description: 'Returns your saved chats, most recently continued first.',
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
        summary: 'Get a chat',
        description: 'Returns a saved chat with one page of its messages.',
        params: IdParams,
        querystring: Type.Object(PAGE_QUERY),
        response: { 200: successOf(ShownChatSchema, 'The chat, with one page of its messages.'), ...REFUSALS },
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
        summary: 'Delete a chat',
        description: 'Deletes a chat with its messages. A running completion finishes, but is not saved.',
        params: IdParams,
        response: { 200: successOf(DeletedChatSchema, 'The chat was deleted.'), ...REFUSALS },
      },
    },
    async (request) => {
      const key = keyOf(request);
      if (!(await deleteChat(sql, key))) throw chatNotFound();
      return success({ chat_id: key.id, deleted: true });
    },
  );

  async function respondWithStream(
    { request, reply }: Exchange,
    { ask, withUsage }: { ask: AskRequest; withUsage: boolean },
  ): Promise<FastifyReply> {
    const { ended, answering } = await startCompletion({ request, reply }, ask);
    const parts = withHeartbeats(answering.parts, context.heartbeatMs);
    let first: Awaited<ReturnType<typeof parts.next>>;
    try {
      // Wait for the first part, so that an early failure gets its own HTTP status.
      first = await parts.next();
    } catch (error) {
      throw toCompletionError(error, { ended, request, reply });
    }
    async function* all() {
      if (!first.done) yield first.value;
      yield* parts;
    }
    const frames = withStallTimeout(
      completionFrames(all(), { answering, withUsage, principal: principalOf(request) }),
      {
        withinMs: context.stallTimeoutMs,
        onStalled: () => reply.raw.destroy(),
      },
    );
    return reply
      .headers({
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-cache, no-transform',
        // Stops nginx from buffering frames.
        'x-accel-buffering': 'no',
      })
      .send(Readable.from(frames));
  }

  async function respondWithJson({ request, reply }: Exchange, ask: AskRequest): Promise<object> {
    const { ended, answering } = await startCompletion({ request, reply }, ask);
    try {
      const { body, finished } = await wholeCompletion(answering);
      if (finished.charge !== null) reply.headers(billingHeaders(finished.charge, principalOf(request)));
      return body;
    } catch (error) {
      throw toCompletionError(error, { ended, request, reply });
    }
  }

  /** Starts a completion. Holds a slot until the response is sent or the client disconnects. */
  async function startCompletion(
    { request, reply }: Exchange,
    ask: AskRequest,
  ): Promise<{ ended: AbortController; answering: AnswerStream }> {
    const principal = principalOf(request);
    const slot = await limits.acquireSlot({ userId: principal.userId, kind: 'llm' });
    const ended = new AbortController();
    ended.signal.addEventListener('abort', () => void slot.release(), { once: true });
    abortWithClient(context, { principal, reply, ended });
    try {
      return { ended, answering: await chat.ask(ask, ended.signal) };
    } catch (error) {
      throw toCompletionError(error, { ended, request, reply });
    }
  }

  function toCompletionError(
    error: unknown,
    { ended, request, reply }: Exchange & { ended: AbortController },
  ): unknown {
    ended.abort();
    if (!reply.raw.destroyed) return error;
    const cancelled = new TandemError('CHAT_CLIENT_CANCELLED', 'The client closed the connection.');
    const { code, status } = cancelled;
    // Log here, because no response is sent.
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
  'Send either `messages` to answer or a `text` to correct. With `chat_id`, the saved messages of that chat precede yours;',
  'the oldest are left out if the model has no room for them. The highest possible price is reserved in the wallet, or',
  'what is left in it: then the answer ends with `finish_reason: length`. Billed per token when the answer ends; a failed',
  'request is free. If you close the connection, generation stops, and you pay for the prompt and the tokens generated so',
  'far. A chat runs one completion at a time; another one is rejected with CHAT_BUSY. Each user can run 8 completions and',
  'evaluations at a time. The body can have up to 512 KiB.',
].join(' ');
