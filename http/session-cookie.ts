import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { TandemError } from '../machines/errors.ts';
import type { HttpContext } from './context.ts';
import { isOverHttps, requireSameOrigin } from './same-origin.ts';
import type { MintedToken } from './session-tokens.ts';

/** Holds a browser's session token, unreadable for scripts. */
export const SESSION_COOKIE = 'tandem_session';

type CookieContext = Pick<HttpContext, 'publicUrl' | 'trustedProxies' | 'now'>;

/**
 * Returns the session token of the cookie; null without one.
 * @throws TandemError UNAUTHORIZED for two different cookies. Another site on the same domain can add one, and browsers
 * do not say which is ours.
 */
export function sessionCookieOf({ cookie }: IncomingHttpHeaders): string | null {
  const tokens = new Set(
    (cookie ?? '')
      .split(';')
      .map((pair) => pair.trim())
      .filter((pair) => pair.startsWith(`${SESSION_COOKIE}=`))
      .map((pair) => pair.slice(SESSION_COOKIE.length + 1)),
  );
  tokens.delete('');
  if (tokens.size > 1) {
    throw new TandemError(
      'UNAUTHORIZED',
      `The request has several ${SESSION_COOKIE} cookies. Delete the cookies of this site, then log in again.`,
    );
  }
  return [...tokens][0] ?? null;
}

/**
 * Returns the cookie's session token if the request authenticates with it. Null if not: an Authorization header, even
 * an invalid one, takes precedence.
 * @throws TandemError UNAUTHORIZED
 */
export function usedSessionCookie({ headers }: Pick<FastifyRequest, 'headers'>): string | null {
  return headers.authorization === undefined ? sessionCookieOf(headers) : null;
}

/**
 * Prevents another site from logging its visitors in here with an account that it can read. Clients other than browsers
 * send neither header.
 * @throws TandemError CROSS_ORIGIN_REQUEST
 */
export function requireOwnLoginPage({ raw }: FastifyRequest, context: CookieContext): void {
  if (raw.headers.origin === undefined && raw.headers['sec-fetch-site'] === undefined) return;
  requireSameOrigin(raw, { isSafe: false, ...context });
}

/** Puts a new session into the cookie if the client asked for that. Otherwise returns its fields for the body. */
export function handOverSession(
  { token, expiresAt }: MintedToken,
  {
    asCookie,
    reply,
    context,
  }: { asCookie: boolean; reply: Pick<FastifyReply, 'header' | 'request'>; context: CookieContext },
): { token?: string; token_type?: 'Bearer'; expires_at: string } {
  const expires = { expires_at: expiresAt.toISOString() };
  if (!asCookie) return { token, token_type: 'Bearer', ...expires };
  const maxAgeS = Math.max(0, Math.floor((expiresAt.getTime() - context.now().getTime()) / 1000));
  setCookie(reply, { value: token, maxAgeS, context });
  return expires;
}

export function clearSessionCookie(reply: Pick<FastifyReply, 'header' | 'request'>, context: CookieContext): void {
  setCookie(reply, { value: '', maxAgeS: 0, context });
}

/**
 * Lax keeps the user logged in when a link from another site opens the console. `requireSameOrigin` rejects other
 * cross-site requests.
 */
function setCookie(
  reply: Pick<FastifyReply, 'header' | 'request'>,
  { value, maxAgeS, context }: { value: string; maxAgeS: number; context: CookieContext },
): void {
  const secure = isOverHttps(reply.request.raw, context) ? '; Secure' : '';
  const cookie = `${SESSION_COOKIE}=${value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=Lax${secure}`;
  reply.header('set-cookie', cookie);
}
