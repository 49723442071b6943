import { Type } from 'typebox';
import { nanoToUsd } from '../../runtime/money.ts';
import { inTransaction } from '../../storage/database.ts';
import { recordAudit } from '../../storage/queries/audit.ts';
import { listMemberships, type MembershipOfUser } from '../../storage/queries/memberships.ts';
import { requireWorkspaceQuota } from '../../storage/queries/quotas.ts';
import { openWorkspace } from '../../storage/queries/workspaces.ts';
import { callerOf, scopesAllow } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import {
  PAGE_QUERY,
  PaginationSchema,
  paginationOf,
  REFUSALS,
  responseOf,
  success,
  successOf,
  TimeSchema,
} from '../schemas/envelope.ts';
import { RoleSchema, WorkspaceNameSchema } from '../schemas/workspace.ts';

const TAGS = ['workspaces'];

export function workspaceRoutes(app: HttpApp, { sql, quotas, now }: HttpContext): void {
  app.get(
    '/workspaces',
    {
      config: { access: 'user' },
      schema: {
        tags: TAGS,
        operationId: 'listWorkspaces',
        summary: 'List workspaces',
        description:
          'Returns the workspaces you are a member of, oldest first. An API key only sees its own workspace.',
        querystring: Type.Object(PAGE_QUERY),
        response: {
          200: responseOf(
            Type.Object(
              { success: Type.Literal(true), data: Type.Array(WorkspaceSchema), pagination: PaginationSchema },
              { description: 'One page of workspaces.' },
            ),
          ),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const caller = callerOf(request);
      const workspaceId = request.identity?.key?.workspaceId;
      const { rows, total } = await listMemberships(sql, { userId: caller.userId, workspaceId }, request.query);
      const seesMoney = scopesAllow(caller, 'billing:manage');
      return {
        ...success(rows.map((row) => presentWorkspace(row, { seesMoney }))),
        pagination: paginationOf(request.query, total),
      };
    },
  );

  app.post(
    '/workspaces',
    {
      config: { access: 'user', credentials: 'session' },
      schema: {
        tags: TAGS,
        operationId: 'createWorkspace',
        summary: 'Create a workspace',
        description:
          'Creates a workspace on the free plan with an empty wallet. You become its owner. The number of workspaces that a user created and owns is limited (QUOTA_EXCEEDED).',
        body: Type.Object({ name: WorkspaceNameSchema }, { additionalProperties: false, examples: [{ name: 'Acme' }] }),
        response: { 201: successOf(WorkspaceSchema, 'The workspace was created.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { userId, apiKeyId } = callerOf(request);
      const at = now();
      const workspace = await inTransaction(sql, async (tx) => {
        await requireWorkspaceQuota(tx, { userId, quotas });
        const opened = await openWorkspace(tx, { name: request.body.name, plan: 'free', ownerUserId: userId, now: at });
        await recordAudit(tx, {
          workspaceId: opened.id,
          actor: { userId, apiKeyId },
          action: 'workspace.created',
          target: { type: 'workspace', id: opened.id },
          details: { name: opened.name },
          requestId: request.id,
          now: at,
        });
        return opened;
      });
      return reply
        .code(201)
        .send(success(presentWorkspace({ ...workspace, role: 'owner', balanceNano: 0n }, { seesMoney: true })));
    },
  );
}

const WorkspaceSchema = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Id of the workspace.' }),
    name: Type.String({ description: 'Display name.' }),
    role: RoleSchema,
    plan: Type.Enum(['free', 'starter', 'pro', 'enterprise'], { description: 'Plan.' }),
    is_owner: Type.Boolean({ description: 'True if you are an owner.' }),
    balance: Type.Optional(
      Type.Number({
        description:
          'Amount you can spend, in USD. Returned to owners only, and to keys with scopes only with `billing:manage`.',
      }),
    ),
    created_at: TimeSchema,
  },
  {
    examples: [
      {
        id: '0b5c1c1e-6d1f-4f0e-9a53-0f6a2f6a7a11',
        name: 'Acme',
        role: 'owner',
        plan: 'pro',
        is_owner: true,
        balance: 12.5,
        created_at: '2026-01-31T09:30:00.000Z',
      },
    ],
  },
);

function presentWorkspace(
  { id, name, role, plan, balanceNano, createdAt }: MembershipOfUser,
  { seesMoney }: { seesMoney: boolean },
) {
  const isOwner = role === 'owner';
  return {
    id,
    name,
    role,
    plan,
    is_owner: isOwner,
    ...(isOwner && seesMoney ? { balance: nanoToUsd(balanceNano) } : {}),
    created_at: createdAt.toISOString(),
  };
}
