import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { inTransaction } from '../../storage/database.ts';
import {
  changeMemberRole,
  inviteMember,
  listMembers,
  type MemberRow,
  removeMember,
} from '../../storage/queries/memberships.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { recordAction } from '../recorded-action.ts';
import { PAGE_QUERY, pageOf, paginationOf, REFUSALS, success, successOf, TimeSchema } from '../schemas/envelope.ts';
import { EmailSchema, RoleSchema } from '../schemas/workspace.ts';

const TAGS = ['workspaces'];
const WorkspaceParams = Type.Object({ id: Type.String({ description: 'Id of the workspace.' }) });
const MemberParams = Type.Object({
  id: Type.String({ description: 'Id of the workspace.' }),
  user_id: Type.String({ description: 'Id of the user.' }),
});

/** Routes for owners and admins. Admins cannot add or change owners, and a workspace always has an owner. */
export function memberRoutes(app: HttpApp, { sql, revocations, now }: HttpContext): void {
  app.get(
    '/workspaces/:id/members',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'listMembers',
        summary: 'List members',
        description: 'Returns the members of the workspace.',
        params: WorkspaceParams,
        querystring: Type.Object(PAGE_QUERY),
        response: { 200: successOf(pageOf('members', MemberSchema), 'One page of members.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const { rows, total } = await listMembers(sql, { workspaceId }, request.query);
      return success({ members: rows.map(presentMember), pagination: paginationOf(request.query, total) });
    },
  );

  app.post(
    '/workspaces/:id/members',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'addMember',
        summary: 'Add a member',
        description: 'Adds a registered user to the workspace. Only owners can add owners.',
        params: WorkspaceParams,
        body: Type.Object(
          { email: EmailSchema, role: RoleSchema },
          { additionalProperties: false, examples: [{ email: 'grace@example.com', role: 'developer' }] },
        ),
        response: { 201: successOf(MemberSchema, 'The member was added.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { workspaceId, role: actorRole } = principalOf(request);
      const at = now();
      const member = await inTransaction(sql, async (tx) => {
        const added = await inviteMember(tx, { ...request.body, workspaceId, actorRole, now: at });
        await recordAction(tx, request, {
          action: 'member.added',
          target: { type: 'user', id: added.userId },
          details: { role: added.role },
          now: at,
        });
        return added;
      });
      return reply.code(201).send(success(presentMember(member)));
    },
  );

  app.patch(
    '/workspaces/:id/members/:user_id',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'changeMemberRole',
        summary: "Change a member's role",
        description:
          'The role takes effect immediately, also for the API keys of the member. Open streams and sockets that it affects are closed; reconnect to continue. The last owner cannot be changed (LAST_OWNER).',
        params: MemberParams,
        body: Type.Object({ role: RoleSchema }, { additionalProperties: false, examples: [{ role: 'admin' }] }),
        response: { 200: successOf(MemberSchema, 'The role was changed.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId, role: actorRole } = principalOf(request);
      const userId = readUserId(request.params.user_id);
      const { role } = request.body;
      const at = now();
      const changed = await inTransaction(sql, async (tx) => {
        const { member, previousRole } = await changeMemberRole(tx, { workspaceId, userId, role, actorRole, now: at });
        await recordAction(tx, request, {
          action: 'member.role_changed',
          target: { type: 'user', id: userId },
          details: { from: previousRole, to: role },
          now: at,
        });
        return member;
      });
      // After the commit. Closes streams that showed or did what only the previous role allows.
      revocations.publish({ kind: 'member', workspaceId, userId, role });
      return success(presentMember(changed));
    },
  );

  app.delete(
    '/workspaces/:id/members/:user_id',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'removeMember',
        summary: 'Remove a member',
        description:
          'Removes a member and deletes their API keys for this workspace. Their open streams and sockets are closed immediately. The last owner cannot be removed (LAST_OWNER).',
        params: MemberParams,
        response: {
          200: successOf(
            Type.Object(
              { user_id: Type.Integer(), removed: Type.Literal(true) },
              { examples: [{ user_id: 18, removed: true }] },
            ),
            'The member was removed.',
          ),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const { workspaceId, role: actorRole } = principalOf(request);
      const userId = readUserId(request.params.user_id);
      const at = now();
      await inTransaction(sql, async (tx) => {
        const { member, revokedKeyIds } = await removeMember(tx, { workspaceId, userId, actorRole, now: at });
        await recordAction(tx, request, {
          action: 'member.removed',
          target: { type: 'user', id: userId },
          details: { role: member.role, revoked_api_keys: revokedKeyIds },
          now: at,
        });
      });
      // After the commit. Closes streams of the member's API keys too.
      revocations.publish({ kind: 'member', workspaceId, userId, role: null });
      return success({ user_id: userId, removed: true });
    },
  );
}

const MemberSchema = Type.Object(
  {
    user_id: Type.Integer({ description: 'Id of the user.' }),
    email: Type.String({ description: 'E-mail address.' }),
    name: Type.String({ description: 'Name of the user.' }),
    role: RoleSchema,
    created_at: TimeSchema,
  },
  {
    examples: [
      {
        user_id: 18,
        email: 'grace@example.com',
        name: 'Grace',
        role: 'developer',
        created_at: '2026-01-31T09:30:00.000Z',
      },
    ],
  },
);

function presentMember({ userId, email, name, role, createdAt }: MemberRow) {
  return { user_id: userId, email, name, role, created_at: createdAt.toISOString() };
}

/** The column is a 32-bit integer. */
function readUserId(text: string): number {
  if (!/^\d{1,9}$/.test(text)) {
    throw new TandemError('MEMBER_NOT_FOUND', 'The workspace has no member with this user id.');
  }
  return Number(text);
}
