import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { saveMarketingConsent } from '../../storage/queries/users.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { REFUSALS, responseOf, success } from '../schemas/envelope.ts';
import { readUnsubscribeToken } from '../unsubscribe-token.ts';

const TAGS = ['accounts'];
const TokenQuery = Type.Object({
  token: Type.String({ description: 'From the link in the mail.', examples: ['17.c2lnbmF0dXJl'] }),
});

/** The link in a mail. Programs that look at mails follow links, so only a POST acts. */
export function unsubscribeRoutes(app: HttpApp, context: HttpContext): void {
  app.register(async (scope) => {
    // What RFC 8058 §3.1 has mail programs send. The token says it all: the body is not looked at.
    for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data']) {
      scope.addContentTypeParser(type, { parseAs: 'buffer' }, (_request, _body, done) => done(null, undefined));
    }
    addRoutes(scope.withTypeProvider() as HttpApp, context);
  });
}

function addRoutes(app: HttpApp, { sql, urlSigningSecret, now }: HttpContext): void {
  app.get(
    '/unsubscribe',
    {
      config: { access: 'public' },
      schema: {
        tags: TAGS,
        operationId: 'showUnsubscribe',
        summary: 'A page that asks whether to stop mails; changes nothing',
        security: [],
        querystring: TokenQuery,
        response: { 200: PAGE, ...REFUSALS },
      },
    },
    async (request, reply) => {
      requireUser(request.query.token);
      return sendPage(reply, 'Stop our mails?', '<form method="post"><button>Unsubscribe</button></form>');
    },
  );

  app.post(
    '/unsubscribe',
    {
      config: { access: 'public' },
      schema: {
        tags: TAGS,
        operationId: 'unsubscribe',
        summary: 'Stop mails: one click (RFC 8058), as often as you like',
        description: 'Answers a page to whoever accepts HTML, else JSON. The body is not looked at.',
        security: [],
        querystring: TokenQuery,
        response: { 200: PAGE, ...REFUSALS },
      },
    },
    async (request, reply) => {
      const userId = requireUser(request.query.token);
      await saveMarketingConsent(sql, { userId, consent: false, source: 'unsubscribe', now: now() });
      if (request.headers.accept?.includes('text/html')) {
        return sendPage(reply, 'You are unsubscribed', '<p>We will send you no more of these mails.</p>');
      }
      return reply.send(success({ unsubscribed: true }));
    },
  );

  /** @throws TandemError INVALID_UNSUBSCRIBE_TOKEN */
  function requireUser(token: string): number {
    const userId = readUnsubscribeToken(token, urlSigningSecret);
    if (userId !== null) return userId;
    throw new TandemError('INVALID_UNSUBSCRIBE_TOKEN', 'This link is not complete. Follow the one in the mail again.');
  }
}

const PAGE = responseOf({
  description: 'A page.',
  content: { 'text/html': { schema: Type.String({ examples: ['<!doctype html>...'] }) } },
});

/** Fixed text alone, so nothing needs escaping. */
function sendPage(reply: FastifyReply, title: string, content: string): FastifyReply {
  const head = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title></head>`;
  return reply.type('text/html; charset=utf-8').send(`${head}<body><h1>${title}</h1>${content}</body></html>`);
}
