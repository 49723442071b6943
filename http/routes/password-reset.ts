import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { inTransaction } from '../../storage/database.ts';
import { hashPassword } from '../../storage/passwords.ts';
import { changePassword } from '../../storage/queries/password-changes.ts';
import { userOfPasswordReset } from '../../storage/queries/password-resets.ts';
import type { UserRow } from '../../storage/queries/workspaces.ts';
import { addressOf } from '../client-address.ts';
import { type HttpApp, type HttpContext, linkSecrets } from '../context.ts';
import { acceptsPages, PAGE, sendPage, showErrorsAsPages } from '../html-page.ts';
import { REFUSALS, success } from '../schemas/envelope.ts';
import { MAX_PASSWORD_LENGTH, requireStrongPassword } from '../schemas/password.ts';

const TAGS = ['accounts'];
const TokenSchema = Type.String({
  maxLength: 100,
  description: 'Token from the reset link.',
  examples: ['17.1767326645.c2lnbmF0dXJl'],
});

/** Serves the link that `tandem users reset-password` prints, and its form. */
export function passwordResetRoutes(app: HttpApp, context: HttpContext): void {
  app.register(async (scope: HttpApp) => {
    showErrorsAsPages(scope);
    // Content type of the page's form.
    scope.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) =>
      done(null, Object.fromEntries(new URLSearchParams(body as string))),
    );
    addRoutes(scope, context);
  });
}

function addRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, limits, revocations, now } = context;

  app.get(
    '/auth/password/reset',
    {
      config: { access: 'public' },
      schema: {
        tags: TAGS,
        operationId: 'showPasswordReset',
        summary: 'Show a form for a new password',
        description: 'Opens the link that the operator created. Changes nothing.',
        security: [],
        querystring: Type.Object({ token: TokenSchema }),
        response: { 200: PAGE, ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { token } = request.query;
      // A valid token needs no escaping: letters, digits, dots, hyphens and underscores.
      await requireUser(token);
      const field = '<input type="password" name="new_password" autocomplete="new-password" required>';
      const form = `<input type="hidden" name="token" value="${token}"><label>New password ${field}</label>`;
      return sendPage(reply, 'Choose a new password', `<form method="post">${form}<button>Save</button></form>`);
    },
  );

  app.post(
    '/auth/password/reset',
    {
      config: { access: 'public' },
      schema: {
        tags: TAGS,
        operationId: 'resetPassword',
        summary: 'Reset a password',
        description:
          'Sets a new password with the token of a reset link, and ends all sessions of the user. API keys stay valid. Create the link with `tandem users reset-password EMAIL`. It works once and expires after an hour. Returns HTML if the Accept header asks for it, otherwise JSON.',
        security: [],
        body: ResetBody,
        response: { 200: PAGE, ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { token, new_password: password } = request.body;
      const user = await requireUser(token);
      requireStrongPassword(password, user);
      const passwordHash = await hashPassword(password);
      const ended = await inTransaction(sql, (tx) =>
        changePassword(tx, {
          ...{ user, passwordHash, action: 'user.password_reset', requestId: request.id, now: now() },
          endSessions: { except: null },
        }),
      );
      if (ended === null) throw invalidToken();
      for (const id of ended) revocations.publish({ kind: 'session', id });
      // A user who forgot a password has tried several before.
      await limits.logins.forgive({ email: user.email, address: addressOf(request) });
      if (acceptsPages(request)) {
        return sendPage(reply, 'Your password is changed', '<p>Log in with your new password.</p>');
      }
      return reply.send(success({ password_reset: true }));
    },
  );

  /** @throws TandemError INVALID_RESET_TOKEN */
  async function requireUser(token: string): Promise<UserRow> {
    const user = await userOfPasswordReset(sql, { token, secrets: linkSecrets(context), now: now() });
    if (user === null) throw invalidToken();
    return user;
  }
}

const ResetBody = Type.Object(
  {
    token: TokenSchema,
    new_password: Type.String({ maxLength: MAX_PASSWORD_LENGTH, description: 'At least 10 characters.' }),
  },
  {
    additionalProperties: false,
    examples: [{ token: '17.1767326645.c2lnbmF0dXJl', new_password: 'four quite unrelated words' }],
  },
);

function invalidToken(): TandemError {
  return new TandemError('INVALID_RESET_TOKEN', 'This link is invalid, expired or already used. Ask for a new one.');
}
