import { Type } from 'typebox';
import { principalOf } from '../auth.ts';
import { mayReadWallet } from '../billing-headers.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { PAGE_QUERY, pageOf, paginationOf, REFUSALS, success, successOf } from '../schemas/envelope.ts';
import { CollectionBody, MemoryTypeSchema } from '../schemas/memory.ts';
import { CollectionSchema, presentCollection, presentUsage, UsageSchema } from '../schemas/memory-views.ts';
import { memoryCallerOf } from './memory.ts';

const TAGS = ['memory'];

export function memoryCollectionRoutes(app: HttpApp, context: HttpContext): void {
  const { memory } = context;

  app.get(
    '/memory/collections',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listMemoryCollections',
        summary: 'List collections',
        description:
          'Returns the collections you can access: your personal one (which exists after your first ingestion), then those of teams, then those of the workspace.',
        querystring: Type.Object({ ...PAGE_QUERY, type: Type.Optional(MemoryTypeSchema) }),
        response: { 200: successOf(pageOf('collections', CollectionSchema), 'One page of collections.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { page, limit, type } = request.query;
      const by = memoryCallerOf(request);
      const { rows, total } = await memory.collections({ by, page: { page, limit }, type: type ?? null });
      return success({ collections: rows.map(presentCollection), pagination: paginationOf({ page, limit }, total) });
    },
  );

  app.post(
    '/memory/collections',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'createMemoryCollection',
        summary: 'Create a collection',
        description:
          'Creates a collection. Only its members, you and `member_ids`, read and write a `team` collection. The whole workspace reads `knowledge` and `hive`; only owners and admins create and write them. A workspace can have 200 collections.',
        body: CollectionBody,
        response: { 201: successOf(CollectionSchema, 'The collection was created.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { name, type = 'team', member_ids: memberIds = [] } = request.body;
      const by = memoryCallerOf(request);
      const created = await memory.createCollection({ name: name.trim(), type, memberIds, by });
      return reply.code(201).send(success(presentCollection(created)));
    },
  );

  app.delete(
    '/memory/collections/:id',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'deleteMemoryCollection',
        summary: 'Delete a collection',
        description:
          'Permanently deletes a collection with its memories. Admins and owners can delete every collection that they can read, except personal ones. Other users can delete the team collections that they created.',
        params: Type.Object({ id: Type.String({ maxLength: 64, description: 'Id of the collection.' }) }),
        response: {
          200: successOf(
            Type.Object({
              collection_id: Type.String({ format: 'uuid' }),
              deleted: Type.Literal(true),
              memories: Type.Integer({ description: 'Number of memories deleted with it.', examples: [3] }),
            }),
            'The collection was deleted.',
          ),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const { id } = request.params;
      const { memories } = await memory.removeCollection({ collectionId: id, by: memoryCallerOf(request) });
      return success({ collection_id: id, deleted: true, memories });
    },
  );

  app.get(
    '/memory/usage',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getMemoryUsage',
        summary: 'Get memory usage',
        description:
          'Returns what memory operations cost in a month. Owners see the whole workspace and the wallet balance, other users their own operations. An API key with scopes sees the balance only with `billing:manage`.',
        querystring: Type.Object({
          month: Type.Optional(
            Type.String({
              pattern: '^20[0-9]{2}-(0[1-9]|1[0-2])$',
              description: 'Month in UTC, such as 2026-01. Default: the current month.',
            }),
          ),
        }),
        response: { 200: successOf(UsageSchema, 'Usage by operation.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { month } = request.query;
      const usage = await memory.usage({ by: memoryCallerOf(request), month: month ?? null });
      return success(presentUsage(usage, { showsWallet: mayReadWallet(principalOf(request)) }));
    },
  );
}
