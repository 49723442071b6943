import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { firstCharacters } from '../../runtime/first-characters.ts';
import { undisguised } from '../../runtime/undisguised.ts';
import { inTransaction } from '../../storage/database.ts';
import { checkPassword, hashPassword } from '../../storage/passwords.ts';
import { recordAudit } from '../../storage/queries/audit.ts';
import { acceptInvitation, requireInvitation } from '../../storage/queries/invitations.ts';
import { revokeSession } from '../../storage/queries/sessions.ts';
import { registerUser, replacePasswordHash, settledPasswordHash } from '../../storage/queries/users.ts';
import { findUserByEmail, getWorkspace, openWorkspace } from '../../storage/queries/workspaces.ts';
import { callerOf } from '../auth.ts';
import { addressOf } from '../client-address.ts';
import type { HttpApp, HttpContext, Registration } from '../context.ts';
import { REFUSALS, success, successOf } from '../schemas/envelope.ts';
import { InvitationTokenSchema } from '../schemas/invitation.ts';
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH, requireStrongPassword } from '../schemas/password.ts';
import { AsCookieSchema, LoggedInSchema, TOKEN_EXAMPLE, TOKEN_FIELDS } from '../schemas/session.ts';
import { EmailSchema, RoleSchema, WorkspaceNameSchema } from '../schemas/workspace.ts';
import { clearSessionCookie, handOverSession, requireOwnLoginPage, usedSessionCookie } from '../session-cookie.ts';
import { sessionClientOf } from '../session-tokens.ts';

const TAGS = ['accounts'];

export function authRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, sessionTokens, registration, revocations, now } = context;
  const { logins } = context.limits;

  app.post(
    '/auth/register',
    {
      config: { access: 'public' },
      schema: {
        tags: TAGS,
        operationId: 'register',
        summary: 'Register an account',
        description:
          'Creates a user and a workspace on the free plan with an empty wallet, and logs in. With an `invitation` to a workspace, the user joins that workspace instead. The setting REGISTRATION of the server decides who may register: with `closed` no request may, with `invite` only one with an `invitation`, with `open` every request. The number of accounts per network address is limited.',
        security: [],
        body: RegisterBody,
        response: { 201: successOf(RegisteredSchema, 'The user, the workspace and a token.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { email, password, invitation: token, cookie: asCookie = false } = request.body;
      const name = undisguised(request.body.name ?? '');
      const { workspace_name: workspaceName = `${name || email.split('@')[0]}'s workspace` } = request.body;
      if (asCookie) requireOwnLoginPage(request, context);
      requireRegistration(registration, token);
      requireStrongPassword(password, { email, name });
      await logins.register(addressOf(request));
      const at = now();
      const invited = token === undefined ? null : { token, email, now: at };
      // Check before the slow password hash.
      if (invited) await requireInvitation(sql, invited);
      const passwordHash = await hashPassword(password);
      const registered = await inTransaction(sql, async (tx) => {
        const invitation = invited && (await requireInvitation(tx, invited));
        const user = await registerUser(tx, { email, passwordHash, name, now: at });
        if (invitation !== null) {
          const member = await acceptInvitation(tx, { invitation, userId: user.id, requestId: request.id, now: at });
          if (member !== null) {
            const workspace = (await getWorkspace(tx, invitation.workspaceId))!;
            return { user, workspace, role: member.role };
          }
        }
        const opened = {
          name: firstCharacters(workspaceName, 100),
          plan: 'free',
          ownerUserId: user.id,
          now: at,
        } as const;
        const workspace = await openWorkspace(tx, opened);
        await recordAudit(tx, {
          workspaceId: workspace.id,
          actor: { userId: user.id, apiKeyId: null },
          action: 'workspace.created',
          target: { type: 'workspace', id: workspace.id },
          details: { name: workspace.name },
          requestId: request.id,
          now: at,
        });
        return { user, workspace, role: 'owner' as const };
      });
      const minted = await sessionTokens.mint({
        userId: registered.user.id,
        now: at,
        client: sessionClientOf(request),
      });
      const { id, name: workspaceTitle, plan } = registered.workspace;
      return reply.code(201).send(
        success({
          ...handOverSession(minted, { asCookie, reply, context }),
          user: registered.user,
          workspace: { id, name: workspaceTitle, plan, role: registered.role },
        }),
      );
    },
  );

  app.post(
    '/auth/login',
    {
      config: { access: 'public' },
      schema: {
        tags: TAGS,
        operationId: 'login',
        summary: 'Log in',
        description: [
          'Returns a session token. Send it as `Authorization: Bearer <token>`, and name the workspace as `workspace_id` in',
          'the query or in the body. After 10 wrong passwords for an e-mail address from one network, or 50 from one',
          'network, within 15 minutes, further attempts are rejected with LOGIN_THROTTLED. A network is an IPv4 address or an',
          'IPv6 /64.',
        ].join(' '),
        security: [],
        body: LoginBody,
        response: { 200: successOf(LoggedInSchema, 'The token and its user.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { email, password, cookie: asCookie = false } = request.body;
      if (asCookie) requireOwnLoginPage(request, context);
      const attempt = { email, address: addressOf(request) };
      await logins.attempt(attempt);
      const user = await findUserByEmail(sql, email);
      const { matches, isOutdated } = await checkPassword(password, user?.passwordHash ?? null);
      if (user === null || !matches) throw wrongLogin();
      await logins.forgive(attempt);
      if (isOutdated) {
        await replacePasswordHash(sql, { userId: user.id, from: user.passwordHash!, to: await hashPassword(password) });
      }
      const minted = await sessionTokens.mint({ userId: user.id, now: now(), client: sessionClientOf(request) });
      // A new password ends all sessions, but this one may have been opened only then.
      const passwordHash = await settledPasswordHash(sql, user.id);
      if (passwordHash !== user.passwordHash && !(await checkPassword(password, passwordHash)).matches) {
        await revokeSession(sql, { id: minted.sessionId, now: now() });
        throw wrongLogin();
      }
      return success({
        ...handOverSession(minted, { asCookie, reply, context }),
        user: { id: user.id, email: user.email, name: user.name },
      });
    },
  );

  app.post(
    '/auth/logout',
    {
      config: { access: 'user', credentials: 'session' },
      schema: {
        tags: TAGS,
        operationId: 'logout',
        summary: 'Log out',
        description:
          'Revokes the token of the session, and closes its open streams and sockets. Clears the cookie if the request has the token there.',
        response: {
          200: successOf(
            Type.Object({ logged_out: Type.Literal(true) }, { examples: [{ logged_out: true }] }),
            'The session was ended.',
          ),
          ...REFUSALS,
        },
      },
    },
    async (request, reply) => {
      const id = callerOf(request).sessionId!;
      await revokeSession(sql, { id, now: now() });
      if (usedSessionCookie(request) !== null) clearSessionCookie(reply, context);
      revocations.publish({ kind: 'session', id });
      return success({ logged_out: true });
    },
  );
}

const RegisterBody = Type.Object(
  {
    email: EmailSchema,
    password: Type.String({
      maxLength: MAX_PASSWORD_LENGTH,
      description: `At least ${MIN_PASSWORD_LENGTH} characters. Common and easily guessed passwords are rejected.`,
    }),
    name: Type.Optional(
      Type.String({
        maxLength: 100,
        pattern: '^[^\\u0000]*$',
        description: 'Name of the user. Control and bidirectional formatting characters are removed.',
      }),
    ),
    workspace_name: Type.Optional({
      ...WorkspaceNameSchema,
      description: 'Display name of the new workspace, up to 100 characters. Ignored if you join a workspace.',
    }),
    invitation: Type.Optional(InvitationTokenSchema),
    cookie: Type.Optional(AsCookieSchema),
  },
  {
    additionalProperties: false,
    examples: [
      { email: 'ada@example.com', password: 'four quite unrelated words', name: 'Ada', workspace_name: 'Acme' },
    ],
  },
);

const LoginBody = Type.Object(
  {
    email: EmailSchema,
    password: Type.String({ maxLength: MAX_PASSWORD_LENGTH, description: 'Password.' }),
    cookie: Type.Optional(AsCookieSchema),
  },
  {
    additionalProperties: false,
    examples: [{ email: 'ada@example.com', password: 'four quite unrelated words' }],
  },
);

const RegisteredSchema = Type.Object(
  {
    ...TOKEN_FIELDS,
    workspace: Type.Object({
      id: Type.String({ format: 'uuid' }),
      name: Type.String(),
      plan: Type.String(),
      role: RoleSchema,
    }),
  },
  {
    examples: [
      {
        ...TOKEN_EXAMPLE,
        workspace: { id: '0b5c1c1e-6d1f-4f0e-9a53-0f6a2f6a7a11', name: 'Acme', plan: 'free', role: 'owner' },
      },
    ],
  },
);

function wrongLogin(): TandemError {
  return new TandemError('UNAUTHORIZED', 'The e-mail address or the password is wrong.');
}

/** @throws TandemError REGISTRATION_CLOSED */
function requireRegistration(registration: Registration, invitation: string | undefined): void {
  if (registration === 'open' || (registration === 'invite' && invitation !== undefined)) return;
  throw new TandemError(
    'REGISTRATION_CLOSED',
    registration === 'invite'
      ? 'Registration requires an invitation. Ask an owner or admin of a workspace, or the operator, for one.'
      : 'Registration is closed on this server. Ask the operator for an account, or to set REGISTRATION=invite.',
  );
}
