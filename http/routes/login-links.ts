import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { takeLoginLink } from '../../storage/queries/login-links.ts';
import { revokeSession } from '../../storage/queries/sessions.ts';
import { settledPasswordHash } from '../../storage/queries/users.ts';
import { addressOf } from '../client-address.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { REFUSALS, success, successOf } from '../schemas/envelope.ts';
import { AsCookieSchema, LoggedInSchema } from '../schemas/session.ts';
import { handOverSession, requireOwnLoginPage } from '../session-cookie.ts';
import { sessionClientOf } from '../session-tokens.ts';

/** Exchanges the links that `tandem users login-link` and the server's start print. */
export function loginLinkRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, sessionTokens, limits, now } = context;

  app.post(
    '/auth/login-link',
    {
      config: { access: 'public' },
      schema: {
        tags: ['accounts'],
        operationId: 'logInWithLink',
        summary: 'Log in with a link',
        description:
          'Exchanges the token of a login link for a session, once. `tandem users login-link EMAIL` prints a link that expires after 15 minutes. While its owner has no password, the server prints one at its start that expires after a day. After 10 wrong tokens from one network within 15 minutes, further attempts are rejected with LOGIN_THROTTLED. Tandem extension.',
        security: [],
        body: LoginLinkBody,
        response: { 200: successOf(LoggedInSchema, 'The session and its user.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { token, cookie: asCookie = false } = request.body;
      if (asCookie) requireOwnLoginPage(request, context);
      // Counts as a login with an e-mail address that no user has.
      const attempt = { email: '', address: addressOf(request) };
      await limits.logins.attempt(attempt);
      const user = await takeLoginLink(sql, { token, now: now() });
      if (user === null) throw invalidLink();
      await limits.logins.forgive(attempt);
      const minted = await sessionTokens.mint({ userId: user.id, now: now(), client: sessionClientOf(request) });
      // A new password ends all sessions and cancels links, but this session may have been opened only then.
      if ((await settledPasswordHash(sql, user.id)) !== user.passwordHash) {
        await revokeSession(sql, { id: minted.sessionId, now: now() });
        throw invalidLink();
      }
      return success({
        ...handOverSession(minted, { asCookie, reply, context }),
        user: { id: user.id, email: user.email, name: user.name },
      });
    },
  );
}

const LoginLinkBody = Type.Object(
  {
    token: Type.String({ minLength: 1, maxLength: 100, description: 'Token from the login link.' }),
    cookie: Type.Optional(AsCookieSchema),
  },
  { additionalProperties: false, examples: [{ token: 'link_c2VjcmV0' }] },
);

function invalidLink(): TandemError {
  return new TandemError(
    'UNAUTHORIZED',
    'This login link is invalid, expired or already used. Create another one on the server: bin/tandem users login-link EMAIL.',
  );
}
