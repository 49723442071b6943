import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { responseOf } from './schemas/envelope.ts';

export const PAGE = responseOf({
  description: 'An HTML page.',
  content: { 'text/html': { schema: Type.String({ examples: ['<!doctype html>...'] }) } },
});

/** Inserts title and content without escaping. */
export function sendPage(reply: FastifyReply, title: string, content: string): FastifyReply {
  const head = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title></head>`;
  return reply.type('text/html; charset=utf-8').send(`${head}<body><h1>${title}</h1>${content}</body></html>`);
}
