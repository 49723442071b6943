import type { FastifyReply } from 'fastify';
import { TandemError } from '../machines/errors.ts';

/** Aborted when the client leaves before it was answered, or the server closes; the reason is a `TandemError`. */
export function clientSignal(reply: FastifyReply, closing: AbortSignal): AbortSignal {
  const ended = new AbortController();
  const shutDown = () => ended.abort(new TandemError('SHUTTING_DOWN', 'The server is shutting down. Try again.'));
  if (closing.aborted) shutDown();
  closing.addEventListener('abort', shutDown, { once: true, signal: ended.signal });
  reply.raw.once('close', () => {
    if (reply.raw.writableEnded) closing.removeEventListener('abort', shutDown);
    else ended.abort(new TandemError('STT_CLIENT_CANCELLED', 'The client closed the connection.'));
  });
  return ended.signal;
}
