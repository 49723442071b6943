import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { HttpApp } from './context.ts';
import { responseOf } from './schemas/envelope.ts';

export const PAGE = responseOf({
  description: 'An HTML page.',
  content: { 'text/html': { schema: Type.String({ examples: ['<!doctype html>...'] }) } },
});

/** Inserts title and content without escaping. */
export function sendPage(reply: FastifyReply, title: string, content: string): FastifyReply {
  return reply.type(HTML).send(pageOf(title, content));
}

export function acceptsPages({ headers }: FastifyRequest): boolean {
  return headers.accept?.includes('text/html') ?? false;
}

/** Shows errors of this scope as pages to browsers. */
export function showErrorsAsPages(scope: HttpApp): void {
  scope.addHook('onSend', async (request, reply, payload) => {
    if (reply.statusCode < 400 || typeof payload !== 'string' || !acceptsPages(request)) return payload;
    const { message } = JSON.parse(payload) as { message: string };
    reply.type(HTML);
    return pageOf('That did not work', `<p>${escaped(message)}</p>`);
  });
}

const HTML = 'text/html; charset=utf-8';

function pageOf(title: string, content: string): string {
  const head = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title></head>`;
  return `${head}<body><h1>${title}</h1>${content}</body></html>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
