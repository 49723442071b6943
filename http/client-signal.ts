import type { FastifyReply } from 'fastify';
import { type ErrorCode, TandemError } from '../machines/errors.ts';

/**
 * Aborted when the client leaves before it was answered, or the server closes; the reason is a `TandemError`.
 * @param left the code of the first, where its kind of request has one of its own
 */
export function clientSignal(
  reply: FastifyReply,
  closing: AbortSignal,
  left: ErrorCode = 'CLIENT_CANCELLED',
): AbortSignal {
  const ended = new AbortController();
  const shutDown = () => ended.abort(new TandemError('SHUTTING_DOWN', 'The server is shutting down. Try again.'));
  if (closing.aborted) shutDown();
  closing.addEventListener('abort', shutDown, { once: true, signal: ended.signal });
  reply.raw.once('close', () => {
    if (reply.raw.writableEnded) closing.removeEventListener('abort', shutDown);
    else ended.abort(new TandemError(left, 'The client closed the connection.'));
  });
  return ended.signal;
}
