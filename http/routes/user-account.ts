import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { TANDEM_VERSION } from '../../runtime/version.ts';
import { inTransaction } from '../../storage/database.ts';
import { checkPassword, hashPassword } from '../../storage/passwords.ts';
import { changePassword } from '../../storage/queries/password-changes.ts';
import { getUser } from '../../storage/queries/users.ts';
import { listWorkspacesOfUser } from '../../storage/queries/workspaces.ts';
import { callerOf } from '../auth.ts';
import { addressOf } from '../client-address.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { nullable, REFUSALS, success, successOf, TimeSchema } from '../schemas/envelope.ts';
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH, requireStrongPassword } from '../schemas/password.ts';
import { RoleSchema } from '../schemas/workspace.ts';
import { validationFailed } from '../validation.ts';

const TAGS = ['accounts'];

/** The signed-in user, and what a console must know first. */
export function userAccountRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, phones, registration, stripeWebhookSecret, hasLanguageModel, limits, revocations, now } = context;

  app.get(
    '/user',
    {
      config: { access: 'user' },
      schema: {
        tags: TAGS,
        operationId: 'getUser',
        summary: 'Get the signed-in user',
        description:
          'Returns the user of the credentials, their workspaces, and what this server offers. An API key only sees its own workspace. Tandem extension.',
        response: { 200: successOf(UserSchema, 'The user.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { userId, sessionId, expiresAt } = callerOf(request);
      const only = request.identity?.key?.workspaceId;
      const user = await getUser(sql, userId);
      const workspaces = await listWorkspacesOfUser(sql, userId);
      return success({
        ...{ id: user.id, email: user.email, name: user.name, has_password: user.passwordHash !== null },
        workspaces: workspaces
          .filter(({ id }) => only === undefined || id === only)
          .map(({ id, name, plan, role }) => ({ id, name, plan, role })),
        session: sessionId === null ? null : { id: sessionId, expires_at: expiresAt?.toISOString() ?? null },
        server: {
          version: TANDEM_VERSION,
          registration,
          features: {
            llm: hasLanguageModel,
            stripe: stripeWebhookSecret !== null,
            webrtc: phones.unavailable === null,
          },
        },
      });
    },
  );

  app.put(
    '/user/password',
    {
      config: { access: 'user', credentials: 'session' },
      schema: {
        tags: TAGS,
        operationId: 'changePassword',
        summary: 'Change the password',
        description:
          'Sets a new password, cancels unused login links, and ends all other sessions of the user unless `keep_sessions` is true. API keys stay valid. Wrong passwords count as failed logins (LOGIN_THROTTLED). Tandem extension.',
        body: PasswordBody,
        response: { 200: successOf(PasswordChangedSchema, 'The password was changed.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { userId, sessionId } = callerOf(request);
      const { current_password: current, new_password: password, keep_sessions: keepSessions = false } = request.body;
      const user = await getUser(sql, userId);
      if (user.passwordHash !== null) {
        if (current === undefined) {
          throw validationFailed([{ path: 'current_password', message: 'is required, because you have a password' }]);
        }
        const attempt = { email: user.email, address: addressOf(request) };
        await limits.logins.attempt(attempt);
        if (!(await checkPassword(current, user.passwordHash)).matches) throw wrongPassword();
        await limits.logins.forgive(attempt);
      }
      requireStrongPassword(password, user);
      const passwordHash = await hashPassword(password);
      const ended = await inTransaction(sql, (tx) =>
        changePassword(tx, {
          ...{ user, passwordHash, action: 'user.password_changed', requestId: request.id, now: now() },
          endSessions: keepSessions ? 'none' : { except: sessionId },
        }),
      );
      if (ended === null) throw wrongPassword();
      for (const id of ended) revocations.publish({ kind: 'session', id });
      return success({ password_changed: true, sessions_ended: ended.length });
    },
  );
}

/** Not UNAUTHORIZED: the session is valid, and the client must not log in again. */
function wrongPassword(): TandemError {
  return new TandemError('WRONG_PASSWORD', 'current_password is wrong. Send the password that you log in with.');
}

const UserSchema = Type.Object(
  {
    id: Type.Integer({ description: 'Id of the user.' }),
    email: Type.String({ description: 'E-mail address.' }),
    name: Type.String({ description: 'Name; may be empty.' }),
    has_password: Type.Boolean({ description: 'False for a user who can only log in with a link.' }),
    workspaces: Type.Array(
      Type.Object({
        id: Type.String({ format: 'uuid', description: 'Id of the workspace.' }),
        name: Type.String({ description: 'Display name.' }),
        plan: Type.Enum(['free', 'starter', 'pro', 'enterprise'], { description: 'Plan of the workspace.' }),
        role: RoleSchema,
      }),
      { description: 'Workspaces of the user, oldest first.' },
    ),
    session: nullable(
      Type.Object(
        {
          id: Type.String({ format: 'uuid', description: 'Id of the session.' }),
          expires_at: { ...TimeSchema, description: 'When the session expires.' },
        },
        { description: 'The session of this request. Null with an API key.' },
      ),
    ),
    server: Type.Object({
      version: Type.String({ description: 'Version of the server.' }),
      registration: Type.Enum(['closed', 'invite', 'open'], { description: 'The setting REGISTRATION.' }),
      features: Type.Object({
        llm: Type.Boolean({ description: 'A language model is configured, for chat, judge and refinement.' }),
        stripe: Type.Boolean({ description: 'Stripe payments are configured.' }),
        webrtc: Type.Boolean({ description: 'Browsers can be phones.' }),
      }),
    }),
  },
  {
    examples: [
      {
        id: 17,
        email: 'ada@example.com',
        name: 'Ada',
        has_password: true,
        workspaces: [{ id: '0b5c1c1e-6d1f-4f0e-9a53-0f6a2f6a7a11', name: 'Acme', plan: 'pro', role: 'owner' }],
        session: { id: '5f0c6f0e-8a54-4b0e-9f0e-2d2f3c1b7a10', expires_at: '2026-01-31T21:30:00.000Z' },
        server: {
          version: '0.1.0',
          registration: 'closed',
          features: { llm: true, stripe: false, webrtc: true },
        },
      },
    ],
  },
);

const PasswordBody = Type.Object(
  {
    current_password: Type.Optional(
      Type.String({ maxLength: MAX_PASSWORD_LENGTH, description: 'Required if the user has a password.' }),
    ),
    new_password: Type.String({
      maxLength: MAX_PASSWORD_LENGTH,
      description: `At least ${MIN_PASSWORD_LENGTH} characters. Common and easily guessed passwords are rejected.`,
    }),
    keep_sessions: Type.Optional(
      Type.Boolean({ default: false, description: 'True keeps the other sessions of the user.' }),
    ),
  },
  {
    additionalProperties: false,
    examples: [{ current_password: 'four quite unrelated words', new_password: 'seven lanterns at the harbour' }],
  },
);

const PasswordChangedSchema = Type.Object(
  {
    password_changed: Type.Literal(true),
    sessions_ended: Type.Integer({ description: 'Number of other sessions that ended.' }),
  },
  { examples: [{ password_changed: true, sessions_ended: 2 }] },
);
