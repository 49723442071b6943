import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { saveMarketingConsent } from '../../storage/queries/users.ts';
import { type HttpApp, type HttpContext, linkSecrets } from '../context.ts';
import { acceptsPages, PAGE, sendPage, showErrorsAsPages } from '../html-page.ts';
import { REFUSALS, success } from '../schemas/envelope.ts';
import { readUnsubscribeToken } from '../unsubscribe-token.ts';

const TAGS = ['accounts'];
const TokenQuery = Type.Object({
  token: Type.String({ description: 'Token from the link in the e-mail.', examples: ['17.c2lnbmF0dXJl'] }),
});

/** Serves the link of an e-mail. Mail scanners follow links, so only POST changes anything. */
export function unsubscribeRoutes(app: HttpApp, context: HttpContext): void {
  app.register(async (scope: HttpApp) => {
    showErrorsAsPages(scope);
    // RFC 8058 §3.1 prescribes the body of mail clients. The token has everything, so ignore it.
    for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data']) {
      scope.addContentTypeParser(type, { parseAs: 'buffer' }, (_request, _body, done) => done(null, undefined));
    }
    addRoutes(scope, context);
  });
}

function addRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, now } = context;

  app.get(
    '/unsubscribe',
    {
      config: { access: 'public' },
      schema: {
        tags: TAGS,
        operationId: 'showUnsubscribe',
        summary: 'Show the unsubscribe page',
        description: 'Returns a page with an unsubscribe button. Changes nothing.',
        security: [],
        querystring: TokenQuery,
        response: { 200: PAGE, ...REFUSALS },
      },
    },
    async (request, reply) => {
      requireUser(request.query.token);
      return sendPage(
        reply,
        'Unsubscribe from our e-mails?',
        '<form method="post"><button>Unsubscribe</button></form>',
      );
    },
  );

  app.post(
    '/unsubscribe',
    {
      config: { access: 'public' },
      schema: {
        tags: TAGS,
        operationId: 'unsubscribe',
        summary: 'Unsubscribe from marketing e-mails',
        description:
          'One-click unsubscribe (RFC 8058). You can repeat it. Returns a page if the client accepts HTML, otherwise JSON. The body is ignored.',
        security: [],
        querystring: TokenQuery,
        response: { 200: PAGE, ...REFUSALS },
      },
    },
    async (request, reply) => {
      const userId = requireUser(request.query.token);
      await saveMarketingConsent(sql, { userId, consent: false, source: 'unsubscribe', now: now() });
      if (acceptsPages(request)) {
        return sendPage(reply, 'You are unsubscribed', '<p>We will not send you these e-mails any more.</p>');
      }
      return reply.send(success({ unsubscribed: true }));
    },
  );

  /** @throws TandemError INVALID_UNSUBSCRIBE_TOKEN */
  function requireUser(token: string): number {
    const userId = readUnsubscribeToken(token, linkSecrets(context));
    if (userId !== null) return userId;
    throw new TandemError('INVALID_UNSUBSCRIBE_TOKEN', 'This link is incomplete. Open the link in the e-mail again.');
  }
}
