import { Type } from 'typebox';
import { AUDIT_ACTIONS, type AuditRow, listAudit } from '../../storage/queries/audit.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import {
  nullable,
  PAGE_QUERY,
  pageOf,
  paginationOf,
  REFUSALS,
  success,
  successOf,
  TimeSchema,
} from '../schemas/envelope.ts';
import { readTime } from '../schemas/time.ts';

export function auditRoutes(app: HttpApp, { sql }: HttpContext): void {
  app.get(
    '/audit',
    {
      config: { access: 'admin' },
      schema: {
        tags: ['workspaces'],
        operationId: 'listAudit',
        summary: 'List audit log entries',
        description: 'Returns privileged actions in the workspace, newest first.',
        querystring: Type.Object({
          ...PAGE_QUERY,
          action: Type.Optional(Type.Enum([...AUDIT_ACTIONS], { description: 'Only this action.' })),
          actor_user_id: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: 'Only actions of this user.' }),
          ),
          from: Type.Optional(Type.String({ description: 'Only actions at or after this time. ISO 8601.' })),
          to: Type.Optional(Type.String({ description: 'Only actions before this time. ISO 8601.' })),
        }),
        response: { 200: successOf(pageOf('entries', AuditSchema), 'One page of entries.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { action, actor_user_id: actorUserId, from, to, ...page } = request.query;
      const filter = {
        workspaceId: principalOf(request).workspaceId,
        action,
        actorUserId,
        from: readTime('from', from),
        to: readTime('to', to),
      };
      const { rows, total } = await listAudit(sql, filter, page);
      return success({ entries: rows.map(presentEntry), pagination: paginationOf(page, total) });
    },
  );
}

const AuditSchema = Type.Object(
  {
    id: Type.String({ description: 'Id of the entry.' }),
    action: Type.Enum([...AUDIT_ACTIONS], { description: 'Action.' }),
    actor: Type.Object({
      user_id: nullable(Type.Integer({ description: 'User who acted. Null if the platform did.' })),
      api_key_id: nullable(Type.Integer({ description: 'API key that was used.' })),
    }),
    target: Type.Object(
      { type: Type.String({ description: 'Kind of object.' }), id: Type.String({ description: 'Id of the object.' }) },
      { description: 'Object of the action.' },
    ),
    details: Type.Object({}, { description: 'Details of the action.' }),
    request_id: nullable(Type.String({ description: 'Request that caused the action.' })),
    at: TimeSchema,
  },
  {
    examples: [
      {
        id: '42',
        action: 'member.role_changed',
        actor: { user_id: 17, api_key_id: null },
        target: { type: 'user', id: '18' },
        details: { from: 'member', to: 'admin' },
        request_id: '5a0cf7a8-0f34-4a0e-8f1e-3a8f6f1f5f7e',
        at: '2026-01-31T09:30:00.000Z',
      },
    ],
  },
);

function presentEntry(row: AuditRow) {
  return {
    id: String(row.id),
    action: row.action,
    actor: { user_id: row.actorUserId, api_key_id: row.actorApiKeyId },
    target: { type: row.targetType, id: row.targetId },
    details: row.details,
    request_id: row.requestId,
    at: row.at.toISOString(),
  };
}
