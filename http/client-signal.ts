import type { FastifyReply } from 'fastify';
import { type ErrorCode, TandemError } from '../machines/errors.ts';

/**
 * Aborts with a `TandemError` if the client disconnects before the response, or the server closes.
 * @param cancelledCode error code for a disconnected client
 */
export function clientSignal(
  reply: FastifyReply,
  closing: AbortSignal,
  cancelledCode: ErrorCode = 'CLIENT_CANCELLED',
): AbortSignal {
  const ended = new AbortController();
  const shutDown = () => ended.abort(new TandemError('SHUTTING_DOWN', 'The server is shutting down. Try again.'));
  if (closing.aborted) shutDown();
  closing.addEventListener('abort', shutDown, { once: true, signal: ended.signal });
  reply.raw.once('close', () => {
    if (reply.raw.writableEnded) closing.removeEventListener('abort', shutDown);
    else ended.abort(new TandemError(cancelledCode, 'The client closed the connection.'));
  });
  return ended.signal;
}
