import { randomUUID } from 'node:crypto';
import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx } from '../../storage/database.ts';
import {
  createRubric,
  deleteRubric,
  findRubric,
  listRubrics,
  type RubricReader,
  type RubricRow,
  updateRubric,
} from '../../storage/queries/rubrics.ts';
import { type Principal, principalOf, roleAllows } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { recordAction } from '../recorded-action.ts';
import { PAGE_QUERY, pageOf, paginationOf, REFUSALS, success, successOf } from '../schemas/envelope.ts';
import { presentRubric, RubricBody, RubricPatchBody, RubricSchema, readRubricFields } from '../schemas/rubric.ts';

const TAGS = ['judge'];
const IdParams = Type.Object({ id: Type.String({ maxLength: 64, description: 'Id of the rubric.' }) });

export function judgeRubricRoutes(app: HttpApp, { sql, now }: HttpContext): void {
  app.get(
    '/judge/rubrics',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listRubrics',
        summary: 'List rubrics',
        description:
          'Returns your own rubrics and the shared ones, newest first. Owners and admins see all rubrics of the workspace.',
        querystring: Type.Object({
          ...PAGE_QUERY,
          shared: Type.Optional(
            Type.Boolean({ description: 'True: only shared rubrics. False: only those that are not shared.' }),
          ),
          mine: Type.Optional(
            Type.Boolean({ description: 'True: only your own rubrics. False: only those of other users.' }),
          ),
        }),
        response: { 200: successOf(pageOf('rubrics', RubricSchema), 'One page of rubrics.'), ...REFUSALS },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      const { page, limit, shared, mine } = request.query;
      const { rows, total } = await listRubrics(sql, { reader: readerOf(principal), shared, mine }, { page, limit });
      const rubrics = rows.map((row) => presentRubric(row, principal));
      return success({ rubrics, pagination: paginationOf({ page, limit }, total) });
    },
  );

  app.post(
    '/judge/rubrics',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'createRubric',
        summary: 'Create a rubric',
        description:
          'A rubric is a set of questions, each with the answers it can have. Sharing one requires the admin or owner role. A workspace can have 500 rubrics.',
        body: RubricBody,
        response: { 201: successOf(RubricSchema, 'The rubric was created.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const principal = principalOf(request);
      const { workspaceId, userId } = principal;
      const { name, questions, description = null, model = null, shared = false } = readRubricFields(request.body);
      if (shared) requireMayShare(principal);
      const fields = { name: name!, questions: questions!, description, model, shared };
      const at = now();
      const rubric = await inTransaction(sql, async (tx) => {
        const created = await createRubric(tx, {
          ...{ id: randomUUID(), workspaceId, createdByUserId: userId, ...fields, now: at },
        });
        await recordAction(tx, request, { action: 'rubric.created', ...entryOf(created), now: at });
        return created;
      });
      return reply.code(201).send(success(presentRubric(rubric, principal)));
    },
  );

  app.get(
    '/judge/rubrics/:id',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getRubric',
        summary: 'Get a rubric',
        description: 'Returns a rubric with its questions.',
        params: IdParams,
        response: { 200: successOf(RubricSchema, 'The rubric.'), ...REFUSALS },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      return success(presentRubric(await requireRubric(sql, { id: request.params.id, principal }), principal));
    },
  );

  app.patch(
    '/judge/rubrics/:id',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'updateRubric',
        summary: 'Update a rubric',
        description:
          'Changes only the fields you send; `questions` replaces the whole map. Only the user who created the rubric, admins and owners can change it.',
        params: IdParams,
        body: RubricPatchBody,
        response: { 200: successOf(RubricSchema, 'The rubric was updated.'), ...REFUSALS },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      const patch = readRubricFields(request.body);
      const at = now();
      const rubric = await inTransaction(sql, async (tx) => {
        const { id, workspaceId } = await requireOwnRubric(tx, { id: request.params.id, principal });
        if (patch.shared === true) requireMayShare(principal);
        const updated = await updateRubric(tx, { id, workspaceId }, { patch, now: at });
        const details = { changed: Object.keys(patch), shared: updated.shared };
        await recordAction(tx, request, { action: 'rubric.updated', ...entryOf(updated), details, now: at });
        return updated;
      });
      return success(presentRubric(rubric, principal));
    },
  );

  app.delete(
    '/judge/rubrics/:id',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'deleteRubric',
        summary: 'Delete a rubric',
        description: 'Deletes a rubric. Evaluations made with it are kept.',
        params: IdParams,
        response: {
          200: successOf(
            Type.Object({ id: Type.String({ format: 'uuid' }), deleted: Type.Literal(true) }),
            'The rubric was deleted.',
          ),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      const at = now();
      const { id } = await inTransaction(sql, async (tx) => {
        const rubric = await requireOwnRubric(tx, { id: request.params.id, principal });
        await deleteRubric(tx, rubric.id);
        await recordAction(tx, request, { action: 'rubric.deleted', ...entryOf(rubric), now: at });
        return rubric;
      });
      return success({ id, deleted: true });
    },
  );
}

/** @throws TandemError RUBRIC_NOT_FOUND, also if the caller may not see it */
export async function requireRubric(
  sql: SqlOrTx,
  { id, principal, lock = false }: { id: string; principal: Principal; lock?: boolean },
): Promise<RubricRow> {
  const rubric = await findRubric(sql, { id, reader: readerOf(principal), lock });
  if (rubric === null) throw new TandemError('RUBRIC_NOT_FOUND', 'You have access to no rubric with this id.');
  return rubric;
}

async function requireOwnRubric(
  tx: SqlOrTx,
  { id, principal }: { id: string; principal: Principal },
): Promise<RubricRow> {
  const rubric = await requireRubric(tx, { id, principal, lock: true });
  if (rubric.createdByUserId === principal.userId || roleAllows(principal.role, 'admin')) return rubric;
  throw new TandemError(
    'RUBRIC_NOT_OWNED',
    'Another user created this rubric. Only that user, owners and admins can change it.',
  );
}

function requireMayShare({ role }: Principal): void {
  if (roleAllows(role, 'admin')) return;
  throw new TandemError('FORBIDDEN', 'Sharing a rubric requires the admin or owner role.');
}

function readerOf({ workspaceId, userId, role }: Principal): RubricReader {
  return { workspaceId, userId, maySeeAll: roleAllows(role, 'admin') };
}

function entryOf({ id, name, shared }: RubricRow) {
  return { target: { type: 'rubric', id }, details: { name, shared } };
}
