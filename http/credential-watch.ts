import type { FastifyReply } from 'fastify';
import { TandemError } from '../machines/errors.ts';
import { isRevoked, type Principal } from './auth.ts';
import type { HttpContext } from './context.ts';

/** Longer timers fire at once; so does nothing else that stays open for weeks. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Aborts a response that stays open when its client leaves, the server closes or its credentials end. Call it when
 * `ended` has its listeners: all three may have happened already.
 */
export function endWithClient(
  context: Pick<HttpContext, 'sql' | 'now' | 'heartbeatMs' | 'revocations' | 'closing'>,
  { principal, reply, ended }: { principal: Principal; reply: FastifyReply; ended: AbortController },
): void {
  endWithCredentials(context, { principal, ended });
  const shutDown = () => ended.abort(new TandemError('SHUTTING_DOWN', 'The server is shutting down. Try again.'));
  reply.raw.once('close', () => ended.abort());
  context.closing.addEventListener('abort', shutDown, { once: true, signal: ended.signal });
  if (context.closing.aborted) shutDown();
  if (reply.raw.destroyed) ended.abort();
}

/**
 * Aborts what stays open when its credentials end: at once when they are revoked in this process or expire, and when
 * the next heartbeat is due if another process revoked them.
 */
export function endWithCredentials(
  { sql, now, heartbeatMs, revocations }: Pick<HttpContext, 'sql' | 'now' | 'heartbeatMs' | 'revocations'>,
  { principal, ended }: { principal: Principal; ended: AbortController },
): void {
  const end = () => ended.abort(new TandemError('UNAUTHORIZED', 'The credentials have ended.'));
  revocations.watch(principal, end, ended.signal);
  const looking = setInterval(async () => {
    if (await isRevoked(principal, { sql, now: now() })) end();
  }, heartbeatMs);
  const msLeft = principal.expiresAt === null ? MAX_TIMER_MS : principal.expiresAt.getTime() - now().getTime();
  const expiry = msLeft < MAX_TIMER_MS ? setTimeout(end, Math.max(0, msLeft)) : undefined;
  ended.signal.addEventListener(
    'abort',
    () => {
      clearInterval(looking);
      clearTimeout(expiry);
    },
    { once: true },
  );
}
