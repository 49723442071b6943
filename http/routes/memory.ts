import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { MemoryCaller, MemoryStatus, MemoryType } from '../../actors/memory/memory-desk.ts';
import { principalOf } from '../auth.ts';
import { BILLING_HEADERS, billingHeaders } from '../billing-headers.ts';
import { clientSignal } from '../client-signal.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import {
  PAGE_QUERY,
  pageOf,
  paginationOf,
  REFUSALS,
  type ResponseSchema,
  responseOf,
  success,
  successOf,
} from '../schemas/envelope.ts';
import {
  ContextBody,
  IngestBatchBody,
  IngestBody,
  MemoryTypeSchema,
  readAsked,
  readMemories,
  readQuery,
  readScope,
  SearchBody,
} from '../schemas/memory.ts';
import { ContextSchema, FoundSchema, presentContext, presentFound } from '../schemas/memory-recall.ts';
import {
  BatchIngestedSchema,
  IngestedSchema,
  ListedMemorySchema,
  MemorySchema,
  MemoryStatusSchema,
  presentBatch,
  presentIngested,
  presentListedMemory,
  presentMemory,
  presentStatus,
} from '../schemas/memory-views.ts';

const TAGS = ['memory'];
/** 100 000 characters, each of them written as an escape. */
const INGEST_LIMIT_BYTES = 640 * 1024;
/** JSON is parsed on the thread that answers everybody: this takes it some 10 ms. */
const BATCH_LIMIT_BYTES = 2 * 1024 * 1024;
const CONTEXT_LIMIT_BYTES = 640 * 1024;
const DEFAULT_LIMIT = 10;
const DEFAULT_MAX_TOKENS = 1_000;
const IdParams = Type.Object({ id: Type.String({ maxLength: 64, description: 'UUID of the memory.' }) });

export function memoryRoutes(app: HttpApp, context: HttpContext): void {
  const { memory, closing } = context;

  app.post(
    '/memory/ingest',
    {
      config: { access: 'member' },
      bodyLimit: INGEST_LIMIT_BYTES,
      schema: {
        tags: TAGS,
        operationId: 'ingestMemory',
        summary: 'Remember a text',
        description: INGEST_DESCRIPTION,
        body: IngestBody,
        response: { 202: billed(IngestedSchema, 'Stored; it is processed from now on.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const memories = readMemories([request.body], (field) => field);
      const ingested = await memory.ingest({ memories, by: memoryCallerOf(request) });
      if (ingested.charge !== null) reply.headers(billingHeaders(ingested.charge));
      return reply.code(202).send(success(presentIngested(ingested)));
    },
  );

  app.post(
    '/memory/ingest/batch',
    {
      config: { access: 'member' },
      bodyLimit: BATCH_LIMIT_BYTES,
      schema: {
        tags: TAGS,
        operationId: 'ingestMemories',
        summary: 'Remember up to 100 texts',
        description: BATCH_DESCRIPTION,
        body: IngestBatchBody,
        response: { 202: billed(BatchIngestedSchema, 'One result for each memory, in their order.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const memories = readMemories(request.body.memories, (field, index) => `memories.${index}.${field}`);
      const ingested = await memory.ingest({ memories, by: memoryCallerOf(request) });
      if (ingested.charge !== null) reply.headers(billingHeaders(ingested.charge));
      return reply.code(202).send(success(presentBatch(ingested)));
    },
  );

  app.post(
    '/memory/search',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'searchMemory',
        summary: 'Find memories by words and by meaning',
        description:
          'Among what the caller may see. Words "in quotes" have to occur, words after a minus must not; mistyped words are found too. Billed by the characters of the query once it was answered; a search that fails, or of which a part cannot be done, costs nothing.',
        body: SearchBody,
        response: { 200: billed(FoundSchema, 'What was found, one part of each memory.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { query, limit = DEFAULT_LIMIT } = request.body;
      const search = { ...readScope(request.body), query: readQuery(query), limit, by: memoryCallerOf(request) };
      const found = await memory.search(search, clientSignal(reply, closing));
      if (found.charge !== null) reply.headers(billingHeaders(found.charge));
      return success(presentFound(found));
    },
  );

  app.post(
    '/memory/context',
    {
      config: { access: 'member' },
      bodyLimit: CONTEXT_LIMIT_BYTES,
      schema: {
        tags: TAGS,
        operationId: 'assembleMemoryContext',
        summary: 'What is remembered about a question, as a text for a prompt',
        description:
          'Send `query`, or the `messages` of a conversation. Billed as a search. What was recalled is framed as data: it cannot pass for an instruction of yours.',
        body: ContextBody,
        response: { 200: billed(ContextSchema, 'Never more than `max_tokens`.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const asked = readAsked(body);
      const maxTokens = body.max_tokens ?? DEFAULT_MAX_TOKENS;
      const wanted = { ...readScope(body), asked, maxTokens, by: memoryCallerOf(request) };
      const assembled = await memory.context(wanted, clientSignal(reply, closing));
      if (assembled.charge !== null) reply.headers(billingHeaders(assembled.charge));
      return success(presentContext(assembled));
    },
  );

  app.get(
    '/memory',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listMemories',
        summary: 'Memories that you may see, newest first',
        querystring: Type.Object({
          ...PAGE_QUERY,
          collection_id: Type.Optional(Type.String({ maxLength: 64 })),
          type: Type.Optional(MemoryTypeSchema),
          status: Type.Optional(Type.Enum(['pending', 'processing', 'ready', 'failed'])),
        }),
        response: { 200: successOf(pageOf('memories', ListedMemorySchema), 'A page of them.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { page, limit, collection_id, type, status } = request.query;
      const found = await memory.list({
        by: memoryCallerOf(request),
        collectionId: collection_id ?? null,
        type: (type as MemoryType | undefined) ?? null,
        status: (status as MemoryStatus | undefined) ?? null,
        page: { page, limit },
      });
      const memories = found.rows.map(presentListedMemory);
      return success({ memories, pagination: paginationOf({ page, limit }, found.total) });
    },
  );

  app.get(
    '/memory/:id',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getMemory',
        summary: 'One memory, with its text and what was drawn from it',
        params: IdParams,
        response: { 200: successOf(MemorySchema, 'The memory.'), ...REFUSALS },
      },
    },
    async (request) => success(presentMemory(await memory.get(keyOf(request)))),
  );

  app.get(
    '/memory/:id/status',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getMemoryStatus',
        summary: 'How far a memory is',
        description:
          '`pending`, then `processing` in stages, then `ready` or `failed`. What breaks on our side is tried again some forty minutes long before it fails; what was charged is paid back then, and its words are found all the same.',
        params: IdParams,
        response: { 200: successOf(MemoryStatusSchema, 'How far it is.'), ...REFUSALS },
      },
    },
    async (request) => success(presentStatus(await memory.status(keyOf(request)))),
  );

  app.post(
    '/memory/:id/retry',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'retryMemory',
        summary: 'Process a memory again that failed',
        description: 'Charged as when it was ingested, since that was paid back.',
        params: IdParams,
        response: { 202: billed(MemoryStatusSchema, 'It is pending again.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { memory: retried, charge } = await memory.retry(keyOf(request));
      return reply
        .code(202)
        .headers(billingHeaders(charge))
        .send(success(presentStatus(retried)));
    },
  );

  app.delete(
    '/memory/:id',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'deleteMemory',
        summary: 'Forget a memory for good',
        description:
          'Its text, its facts and everything it was found by are erased; what it cost stays in the usage log. A fact that a deleted one had superseded stays superseded.',
        params: IdParams,
        response: {
          200: successOf(
            Type.Object(
              { id: Type.String({ format: 'uuid' }), deleted: Type.Literal(true) },
              { examples: [{ id: '3f0d2c4e-8a51-4f43-9f5b-0c9f1b7c2a11', deleted: true }] },
            ),
            'Forgotten.',
          ),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      await memory.remove(keyOf(request));
      return success({ id: request.params.id, deleted: true });
    },
  );
}

/** Whose request it is, for the desk. */
export function memoryCallerOf(request: FastifyRequest): MemoryCaller {
  const { workspaceId, userId, apiKeyId, role } = principalOf(request);
  return { workspaceId, userId, apiKeyId, role, requestId: request.id };
}

function keyOf(request: FastifyRequest): { memoryId: string; by: MemoryCaller } {
  return { memoryId: (request.params as { id: string }).id, by: memoryCallerOf(request) };
}

/** A success that may have cost something. */
function billed(data: Parameters<typeof successOf>[0], description: string): ResponseSchema {
  return responseOf({
    description,
    headers: BILLING_HEADERS,
    content: { 'application/json': { schema: successOf(data, description) } },
  });
}

const INGEST_DESCRIPTION = [
  'Found by its words as soon as this is answered, and by its meaning once it is `ready`. Each character of `text` is',
  'charged before; what cannot be processed is paid back. A text that the collection has already with the same title and',
  'metadata is neither stored nor charged again: `deduplicated_into` names what is there. `user` memories are the',
  'caller’s own; `knowledge` and `hive` are read by the whole workspace and written by owners and admins; viewers write',
  'none (POLICY_DENY). NUL and halves of surrogate pairs are left out of what is stored.',
].join(' ');

const BATCH_DESCRIPTION = [
  'Up to 2 MiB of JSON. All of it is stored and charged, or nothing: a memory that is not valid fails the request (400),',
  'and so does a wallet that does not cover the sum (402). A memory that its sender may not store where it is to go',
  '(POLICY_DENY, COLLECTION_NOT_FOUND) fails alone, with `status: failed` and its `code`, unless all of them do; then the',
  'request is refused as the first one is. Each memory is charged by an entry of its own, so that it can be paid back by',
  'itself: `x-billing-tx` is that of the first, `x-credit-charged` the sum.',
].join(' ');
