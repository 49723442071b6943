import type { FastifyReply } from 'fastify';
import { TandemError } from '../machines/errors.ts';
import type { Role } from '../storage/queries/workspaces.ts';
import { isRevoked, type Principal, roleAllows } from './auth.ts';
import type { HttpContext } from './context.ts';

/** Longer timers would fire immediately. No connection stays open for weeks. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export interface WatchedConnection {
  principal: Principal;
  ended: AbortController;
  /** Whether the connection stays open if its user gets this role. Default: with every role but viewer. */
  mayStay?: (role: Role) => boolean;
}

/**
 * Aborts a long response if its client disconnects, the server closes or its credentials end. Add the listeners of
 * `ended` first, because any of these may already have happened.
 */
export function abortWithClient(
  context: Pick<HttpContext, 'sql' | 'now' | 'heartbeatMs' | 'revocations' | 'closing'>,
  { reply, ...watched }: WatchedConnection & { reply: FastifyReply },
): void {
  const { ended } = watched;
  abortWithCredentials(context, watched);
  const shutDown = () => ended.abort(new TandemError('SHUTTING_DOWN', 'The server is shutting down. Try again.'));
  reply.raw.once('close', () => ended.abort());
  context.closing.addEventListener('abort', shutDown, { once: true, signal: ended.signal });
  if (context.closing.aborted) shutDown();
  if (reply.raw.destroyed) ended.abort();
}

/** Runs the work on an upload, and aborts `ended` if the credentials end first. */
export async function whileAuthorized<Result>(
  context: Parameters<typeof abortWithCredentials>[0],
  watched: WatchedConnection,
  work: () => Promise<Result>,
): Promise<Result> {
  abortWithCredentials(context, watched);
  try {
    return await work();
  } finally {
    watched.ended.abort();
  }
}

/**
 * Aborts a long connection when its credentials end, or its user gets a role with which it may not stay: immediately if
 * they expire or this process causes it, at the next heartbeat if another process does.
 */
export function abortWithCredentials(
  { sql, now, heartbeatMs, revocations }: Pick<HttpContext, 'sql' | 'now' | 'heartbeatMs' | 'revocations'>,
  { principal, ended, mayStay = (role) => roleAllows(role, 'writer') }: WatchedConnection,
): void {
  const end = () => ended.abort(new TandemError('UNAUTHORIZED', 'The credentials were revoked or have expired.'));
  revocations.watch({ principal, mayStay }, end, ended.signal);
  const looking = setInterval(async () => {
    if (await isRevoked(principal, { sql, now: now(), mayStay })) end();
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
