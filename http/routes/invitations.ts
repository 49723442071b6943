import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { inTransaction } from '../../storage/database.ts';
import {
  acceptInvitation,
  createInvitation,
  type InvitationRow,
  listInvitations,
  requireInvitation,
  revokeInvitation,
  statusOf,
} from '../../storage/queries/invitations.ts';
import { getUserProfile } from '../../storage/queries/users.ts';
import { operatorWorkspaceId } from '../../storage/queries/workspaces.ts';
import { callerOf, principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { recordAction } from '../recorded-action.ts';
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
import { InvitationTokenSchema } from '../schemas/invitation.ts';
import { EmailSchema, RoleSchema } from '../schemas/workspace.ts';
import { validationFailed } from '../validation.ts';

const TAGS = ['workspaces'];
const HOUR_MS = 3_600_000;
const DEFAULT_HOURS = 72;
const WorkspaceParams = Type.Object({ id: Type.String({ description: 'Id of the workspace.' }) });
const InvitationParams = Type.Object({
  id: Type.String({ description: 'Id of the workspace.' }),
  invitation_id: Type.String({ description: 'Id of the invitation.' }),
});

export function invitationRoutes(app: HttpApp, { sql, now }: HttpContext): void {
  app.get(
    '/workspaces/:id/invitations',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'listInvitations',
        summary: 'List invitations',
        description: 'Returns the invitations of the workspace, newest first, without their tokens. Tandem extension.',
        params: WorkspaceParams,
        querystring: Type.Object(PAGE_QUERY),
        response: { 200: successOf(pageOf('invitations', InvitationSchema), 'One page of invitations.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const { rows, total } = await listInvitations(sql, { workspaceId }, request.query);
      const at = now();
      const invitations = rows.map((row) => presentInvitation(row, at));
      return success({ invitations, pagination: paginationOf(request.query, total) });
    },
  );

  app.post(
    '/workspaces/:id/invitations',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'createInvitation',
        summary: 'Invite a person',
        description:
          'Creates an invitation and returns its token, once. Send the token to the person: Tandem sends no e-mail. With an account, the person joins with POST /invitations/accept. Without one, the person registers with POST /auth/register and the token, if REGISTRATION is `invite` or `open`. An invitation with `kind: account` makes an account with a workspace of its own; only the first workspace of the server can create it. A new invitation revokes a pending one of the same kind and address. Only owners can invite owners. Tandem extension.',
        params: WorkspaceParams,
        body: InvitationBody,
        response: { 201: successOf(CreatedInvitationSchema, 'The invitation and its token.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { workspaceId, userId, role: actorRole } = principalOf(request);
      const { email, kind = 'member', expires_in_hours: hours = DEFAULT_HOURS } = request.body;
      const role = readRole(kind, request.body.role);
      if (kind === 'account' && (await operatorWorkspaceId(sql)) !== workspaceId) {
        throw new TandemError(
          'FORBIDDEN',
          'Only the first workspace of the server can invite people to make an account.',
        );
      }
      const at = now();
      const invitation = await inTransaction(sql, async (tx) => {
        const created = await createInvitation(tx, {
          ...{ workspaceId, kind, role, email, now: at },
          invitedBy: { userId, role: actorRole },
          expiresAt: new Date(at.getTime() + hours * HOUR_MS),
        });
        const target = { type: 'invitation', id: created.id };
        const details = { email: created.email, kind, role };
        await recordAction(tx, request, { action: 'invitation.created', target, details, now: at });
        return created;
      });
      return reply.code(201).send(success({ ...presentInvitation(invitation, at), token: invitation.token }));
    },
  );

  app.delete(
    '/workspaces/:id/invitations/:invitation_id',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'revokeInvitation',
        summary: 'Revoke an invitation',
        description: 'Revokes a pending invitation. Its token stops working immediately. Tandem extension.',
        params: InvitationParams,
        response: { 200: successOf(InvitationSchema, 'The invitation was revoked.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const { invitation_id: id } = request.params;
      const at = now();
      const revoked = await inTransaction(sql, async (tx) => {
        const invitation = await revokeInvitation(tx, { id, workspaceId, now: at });
        const target = { type: 'invitation', id };
        await recordAction(tx, request, { action: 'invitation.revoked', target, now: at });
        return invitation;
      });
      return success(presentInvitation(revoked, at));
    },
  );

  app.post(
    '/invitations/accept',
    {
      config: { access: 'user', credentials: 'session' },
      schema: {
        tags: TAGS,
        operationId: 'acceptInvitation',
        summary: 'Accept an invitation',
        description:
          'Joins the workspace of an invitation that was made for your e-mail address. The token works once. Without an account, register with POST /auth/register and the token instead. Tandem extension.',
        body: Type.Object(
          { token: InvitationTokenSchema },
          { additionalProperties: false, examples: [{ token: TOKEN_EXAMPLE }] },
        ),
        response: { 200: successOf(JoinedSchema, 'You are a member of the workspace.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { userId } = callerOf(request);
      const { email } = await getUserProfile(sql, userId);
      const at = now();
      const joined = await inTransaction(sql, async (tx) => {
        const invitation = await requireInvitation(tx, { token: request.body.token, email, now: at });
        const member = await acceptInvitation(tx, { invitation, userId, requestId: request.id, now: at });
        if (member === null) {
          throw new TandemError('INVALID_INVITATION', 'This invitation makes an account, and you have one already.');
        }
        return { workspace_id: invitation.workspaceId, role: member.role };
      });
      return success(joined);
    },
  );
}

const TOKEN_EXAMPLE = 'inv_8Jm0yq3v1c5s7u9w2x4z6A8C0E2G4I6K8M0O2Q4S6U8';

const InvitationBody = Type.Object(
  {
    email: EmailSchema,
    role: Type.Optional({ ...RoleSchema, description: 'Role in the workspace. Required unless `kind` is `account`.' }),
    kind: Type.Optional(
      Type.Enum(['member', 'account'], {
        default: 'member',
        description: '`member`: joins the workspace. `account`: makes an account with a workspace of its own.',
      }),
    ),
    expires_in_hours: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 720, default: DEFAULT_HOURS, description: 'Hours until it expires.' }),
    ),
  },
  { additionalProperties: false, examples: [{ email: 'edith@example.com', role: 'developer' }] },
);

const INVITATION_FIELDS = {
  id: Type.String({ format: 'uuid', description: 'Id of the invitation.' }),
  kind: Type.Enum(['member', 'account'], { description: 'Effect of the invitation.' }),
  email: Type.String({ description: 'E-mail address that can accept it.' }),
  role: nullable({ ...RoleSchema, description: 'Role in the workspace. Null with `kind: account`.' }),
  status: Type.Enum(['pending', 'accepted', 'revoked', 'expired'], {
    description: 'Only a pending one can be accepted.',
  }),
  invited_by_user_id: nullable(Type.Integer({ description: 'User who created it. Null: the operator.' })),
  accepted_by_user_id: nullable(Type.Integer({ description: 'User who accepted it.' })),
  created_at: TimeSchema,
  expires_at: { ...TimeSchema, description: 'When the token stops working.' },
};

const INVITATION_EXAMPLE = {
  id: '3f0b3c57-9d0e-4b5e-8f6a-1d2c3b4a5e6f',
  kind: 'member',
  email: 'edith@example.com',
  role: 'developer',
  status: 'pending',
  invited_by_user_id: 17,
  accepted_by_user_id: null,
  created_at: '2026-01-31T09:30:00.000Z',
  expires_at: '2026-02-03T09:30:00.000Z',
};

const InvitationSchema = Type.Object(INVITATION_FIELDS, { examples: [INVITATION_EXAMPLE] });

const CreatedInvitationSchema = Type.Object(
  {
    ...INVITATION_FIELDS,
    token: { ...InvitationTokenSchema, description: 'Token to send to the person. Shown once.' },
  },
  { examples: [{ ...INVITATION_EXAMPLE, token: TOKEN_EXAMPLE }] },
);

const JoinedSchema = Type.Object(
  { workspace_id: Type.String({ format: 'uuid', description: 'Workspace that you joined.' }), role: RoleSchema },
  { examples: [{ workspace_id: '0b5c1c1e-6d1f-4f0e-9a53-0f6a2f6a7a11', role: 'developer' }] },
);

/** @throws TandemError VALIDATION_FAILED */
function readRole(kind: InvitationRow['kind'], role: InvitationRow['role'] | undefined): InvitationRow['role'] {
  if (kind === 'member' && role === undefined) throw validationFailed([{ path: 'role', message: 'is required' }]);
  if (kind === 'account' && role !== undefined) {
    throw validationFailed([{ path: 'role', message: 'must not be combined with kind account' }]);
  }
  return role ?? null;
}

function presentInvitation(row: InvitationRow, now: Date) {
  return {
    id: row.id,
    kind: row.kind,
    email: row.email,
    role: row.role,
    status: statusOf(row, now),
    invited_by_user_id: row.createdByUserId,
    accepted_by_user_id: row.acceptedByUserId,
    created_at: row.createdAt.toISOString(),
    expires_at: row.expiresAt.toISOString(),
  };
}
