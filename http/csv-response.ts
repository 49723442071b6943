import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Role } from '../storage/queries/workspaces.ts';
import { principalOf, roleAllows } from './auth.ts';
import type { HttpContext } from './context.ts';
import { abortWithClient } from './credential-watch.ts';

/**
 * Streams a CSV file. Breaks it off if the server closes or the credentials end, because a truncated table must not look
 * complete.
 */
export function respondWithCsv(
  context: HttpContext,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  { name, records }: { name: string; records: AsyncGenerator<string> },
): FastifyReply {
  const { access = 'public' } = request.routeOptions.config;
  const ended = new AbortController();
  ended.signal.addEventListener('abort', () => reply.raw.destroy(), { once: true });
  const mayStay = (role: Role) => roleAllows(role, access);
  abortWithClient(context, { principal: principalOf(request), reply, ended, mayStay });
  return reply
    .headers({
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': `attachment; filename="${name}-${context.now().toISOString().slice(0, 10)}.csv"`,
    })
    .send(Readable.from(records));
}
