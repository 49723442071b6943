import { Type } from 'typebox';
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
        summary: 'Collections that you may see',
        description:
          'Yours first, which is there once you ingested something, then those of teams, then the workspace’s.',
        querystring: Type.Object({ ...PAGE_QUERY, type: Type.Optional(MemoryTypeSchema) }),
        response: { 200: successOf(pageOf('collections', CollectionSchema), 'A page of them.'), ...REFUSALS },
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
        summary: 'Make a collection for a team or the workspace',
        description:
          'Of a `team` its members see and write it: you and `member_ids`. `knowledge` and `hive` are read by everybody in the workspace, and made and written by owners and admins. A workspace has at most 200.',
        body: CollectionBody,
        response: { 201: successOf(CollectionSchema, 'Made.'), ...REFUSALS },
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
        summary: 'Delete a collection with all memories in it, for good',
        description: 'For owners and admins, and for whoever made a team’s. A personal collection stays.',
        params: Type.Object({ id: Type.String({ maxLength: 64, description: 'UUID of the collection.' }) }),
        response: {
          200: successOf(
            Type.Object({
              collection_id: Type.String({ format: 'uuid' }),
              deleted: Type.Literal(true),
              memories: Type.Integer({ description: 'That were in it.', examples: [3] }),
            }),
            'Deleted.',
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
        summary: 'What memory cost in a month',
        description: 'For owners of the whole workspace, with the wallet; for all others of what they did themselves.',
        querystring: Type.Object({
          month: Type.Optional(
            Type.String({
              pattern: '^20[0-9]{2}-(0[1-9]|1[0-2])$',
              description: 'Such as 2026-01, in UTC. Default: this one.',
            }),
          ),
        }),
        response: { 200: successOf(UsageSchema, 'By operation.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { month } = request.query;
      return success(presentUsage(await memory.usage({ by: memoryCallerOf(request), month: month ?? null })));
    },
  );
}
