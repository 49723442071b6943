import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { MemoryCaller, MemoryStatus, MemoryType } from '../../actors/memory/memory-desk.ts';
import { principalOf } from '../auth.ts';
import { billingHeaders } from '../billing-headers.ts';
import { clientSignal } from '../client-signal.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { PAGE_QUERY, pageOf, paginationOf, REFUSALS, success, successOf } from '../schemas/envelope.ts';
import {
  ContextBody,
  ListFiltersSchema,
  MemoryTypeSchema,
  readContextQuery,
  readListFilters,
  readQuery,
  readScope,
  SearchBody,
} from '../schemas/memory.ts';
import { ENTITY_FILTERS, readEntities } from '../schemas/memory-entities.ts';
import { IngestBatchBody, IngestBody, readMemories, readUpdate, UpdateBody } from '../schemas/memory-ingest.ts';
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
/** 100 000 characters, each JSON-escaped. */
const INGEST_LIMIT_BYTES = 640 * 1024;
/** JSON is parsed on the main thread. This size takes about 10 ms. */
const BATCH_LIMIT_BYTES = 2 * 1024 * 1024;
const CONTEXT_LIMIT_BYTES = 640 * 1024;
const DEFAULT_LIMIT = 10;
const DEFAULT_MAX_TOKENS = 1_000;
const IdParams = Type.Object({ id: Type.String({ maxLength: 64, description: 'Id of the memory.' }) });

export function memoryRoutes(app: HttpApp, context: HttpContext): void {
  const { memory, closing } = context;

  app.post(
    '/memory/ingest',
    {
      config: { access: 'member', billed: true },
      bodyLimit: INGEST_LIMIT_BYTES,
      schema: {
        tags: TAGS,
        operationId: 'ingestMemory',
        summary: 'Ingest a text',
        description: INGEST_DESCRIPTION,
        body: IngestBody,
        response: { 202: successOf(IngestedSchema, 'The memory was stored and queued for processing.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const memories = readMemories([request.body], (field) => field);
      const ingested = await memory.ingest({ memories, by: memoryCallerOf(request) });
      if (ingested.charge !== null) reply.headers(billingHeaders(ingested.charge, principalOf(request)));
      return reply.code(202).send(success(presentIngested(ingested)));
    },
  );

  app.post(
    '/memory/ingest/batch',
    {
      config: { access: 'member', billed: true },
      bodyLimit: BATCH_LIMIT_BYTES,
      schema: {
        tags: TAGS,
        operationId: 'ingestMemories',
        summary: 'Ingest up to 100 texts',
        description: BATCH_DESCRIPTION,
        body: IngestBatchBody,
        response: { 202: successOf(BatchIngestedSchema, 'One result per memory, in the order sent.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const memories = readMemories(request.body.memories, (field, index) => `memories.${index}.${field}`);
      const ingested = await memory.ingest({ memories, by: memoryCallerOf(request) });
      if (ingested.charge !== null) reply.headers(billingHeaders(ingested.charge, principalOf(request)));
      return reply.code(202).send(success(presentBatch(ingested)));
    },
  );

  app.post(
    '/memory/search',
    {
      config: { access: 'member', billed: true },
      schema: {
        tags: TAGS,
        operationId: 'searchMemory',
        summary: 'Search memories',
        description:
          'Searches the memories you can access by meaning and by keyword, and tolerates typos. Quoted phrases must occur; words after a minus must not. Billed per character of the query. A search that fails or is `degraded` is free.',
        body: SearchBody,
        response: { 200: successOf(FoundSchema, 'Search results, one per memory.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { query, limit = DEFAULT_LIMIT } = request.body;
      const search = { ...readScope(request.body), query: readQuery(query), limit, by: memoryCallerOf(request) };
      const found = await memory.search(search, clientSignal(reply, closing));
      if (found.charge !== null) reply.headers(billingHeaders(found.charge, principalOf(request)));
      return success(presentFound(found));
    },
  );

  app.post(
    '/memory/context',
    {
      config: { access: 'member', billed: true },
      bodyLimit: CONTEXT_LIMIT_BYTES,
      schema: {
        tags: TAGS,
        operationId: 'assembleMemoryContext',
        summary: 'Assemble context for a prompt',
        description:
          'Searches memories and returns the relevant ones as text for a prompt. Memories with less than half of the best score are left out. Send `query`, or the `messages` of a conversation. Billed like a search. The text marks its content as data, so that the model does not follow instructions in it.',
        body: ContextBody,
        response: { 200: successOf(ContextSchema, 'The context, of at most `max_tokens` tokens.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const asked = readContextQuery(body);
      const maxTokens = body.max_tokens ?? DEFAULT_MAX_TOKENS;
      const wanted = { ...readScope(body), asked, maxTokens, by: memoryCallerOf(request) };
      const assembled = await memory.context(wanted, clientSignal(reply, closing));
      if (assembled.charge !== null) reply.headers(billingHeaders(assembled.charge, principalOf(request)));
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
        summary: 'List memories',
        description: 'Returns the memories you can access, newest first.',
        querystring: Type.Object({
          ...PAGE_QUERY,
          collection_id: Type.Optional(
            Type.String({ maxLength: 64, description: 'Only memories of this collection.' }),
          ),
          type: Type.Optional(MemoryTypeSchema),
          status: Type.Optional(
            Type.Enum(['pending', 'processing', 'ready', 'failed'], { description: 'Only memories with this status.' }),
          ),
          ...ENTITY_FILTERS,
          filters: Type.Optional(ListFiltersSchema),
        }),
        response: { 200: successOf(pageOf('memories', ListedMemorySchema), 'One page of memories.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { page, limit, collection_id, type, status, filters } = request.query;
      const found = await memory.list({
        by: memoryCallerOf(request),
        collectionId: collection_id ?? null,
        type: (type as MemoryType | undefined) ?? null,
        status: (status as MemoryStatus | undefined) ?? null,
        entities: readEntities(request.query),
        filters: filters === undefined ? null : readListFilters(filters),
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
        summary: 'Get a memory',
        description: 'Returns a memory with its text and the facts extracted from it.',
        params: IdParams,
        response: { 200: successOf(MemorySchema, 'The memory.'), ...REFUSALS },
      },
    },
    async (request) => success(presentMemory(await memory.get(keyOf(request)))),
  );

  app.patch(
    '/memory/:id',
    {
      config: { access: 'member', billed: true },
      bodyLimit: INGEST_LIMIT_BYTES,
      schema: {
        tags: TAGS,
        operationId: 'updateMemory',
        summary: 'Update a memory',
        description: UPDATE_DESCRIPTION,
        params: IdParams,
        body: UpdateBody,
        response: { 200: successOf(MemorySchema, 'The memory, which is `pending` if its text is new.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { memory: updated, charge } = await memory.update({ ...keyOf(request), ...readUpdate(request.body) });
      if (charge !== null) reply.headers(billingHeaders(charge, principalOf(request)));
      return success(presentMemory(updated));
    },
  );

  app.get(
    '/memory/:id/status',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getMemoryStatus',
        summary: 'Get the processing status of a memory',
        description:
          'The status is `pending`, then `processing` in several stages, then `ready` or `failed`. Server errors are retried for about 40 minutes before the memory fails. The charge for a failed memory is refunded, and keyword search still finds it.',
        params: IdParams,
        response: { 200: successOf(MemoryStatusSchema, 'The processing status.'), ...REFUSALS },
      },
    },
    async (request) => success(presentStatus(await memory.status(keyOf(request)))),
  );

  app.post(
    '/memory/:id/retry',
    {
      config: { access: 'member', billed: true },
      schema: {
        tags: TAGS,
        operationId: 'retryMemory',
        summary: 'Retry a failed memory',
        description:
          'Processes a failed memory again. Charged like its ingestion, because the first charge was refunded.',
        params: IdParams,
        response: { 202: successOf(MemoryStatusSchema, 'The memory is pending again.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { memory: retried, charge } = await memory.retry(keyOf(request));
      return reply
        .code(202)
        .headers(billingHeaders(charge, principalOf(request)))
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
        summary: 'Delete a memory',
        description:
          'Permanently deletes the text, facts and index entries of a memory. Its charges stay in the usage log. Facts that it superseded stay superseded.',
        params: IdParams,
        response: {
          200: successOf(
            Type.Object(
              { id: Type.String({ format: 'uuid' }), deleted: Type.Literal(true) },
              { examples: [{ id: '3f0d2c4e-8a51-4f43-9f5b-0c9f1b7c2a11', deleted: true }] },
            ),
            'The memory was deleted.',
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

export function memoryCallerOf(request: FastifyRequest): MemoryCaller {
  const { workspaceId, userId, apiKeyId, role } = principalOf(request);
  return { workspaceId, userId, apiKeyId, role, requestId: request.id, operationId: request.idempotentId };
}

/** Charges and refunds are found by the row's spelling of the id; the request's may be in capitals. */
function keyOf(request: FastifyRequest): { memoryId: string; by: MemoryCaller } {
  return { memoryId: (request.params as { id: string }).id.toLowerCase(), by: memoryCallerOf(request) };
}

const INGEST_DESCRIPTION = [
  'Stores a text as a memory. Keyword search finds it at once, semantic search once its status is `ready`. Each character',
  'of `text` is charged upfront, and refunded if processing fails. A text that the collection already has, with the same',
  'title and metadata, is neither stored nor charged again: `deduplicated_into` names the existing memory. `user` memories',
  'are personal. The whole workspace reads `knowledge` and `hive`; only owners and admins write them. Viewers cannot write',
  'memories (POLICY_DENY). NUL characters and lone surrogates are removed from the stored text.',
].join(' ');

const UPDATE_DESCRIPTION = [
  'Changes the text, the title or the metadata of a memory. A new text is charged like an ingestion and processed again,',
  'and its facts replace those of the old text; keyword search finds it at once. The fields and the charge are stored in',
  'one transaction. A text that equals the stored one is neither charged nor processed, so you can safely send the',
  'request again. Title and metadata are free.',
].join(' ');

const BATCH_DESCRIPTION = [
  'Stores up to 100 texts, in up to 2 MiB of JSON. An invalid memory (400) or a wallet that does not cover the total (402)',
  'fails the whole request. A memory that you cannot store in its collection (POLICY_DENY, COLLECTION_NOT_FOUND) fails',
  'alone, with `status: failed` and its `code`; if all of them fail, the request fails with the error of the first. Each',
  'memory is charged separately, so that it can be refunded separately: `x-billing-tx` is the first charge,',
  '`x-credit-charged` the total.',
].join(' ');
