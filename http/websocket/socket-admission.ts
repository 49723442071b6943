import type { IncomingMessage } from 'node:http';
import type { ErrorMessage } from '../../actors/stt/live-stt.ts';
import { TandemError } from '../../machines/errors.ts';
import { nanoToUsd } from '../../runtime/money.ts';
import { priceBookOf } from '../../storage/price-book.ts';
import { walletOf } from '../../storage/queries/billing.ts';
import { authenticate, enterWorkspace, type Principal, requireAccess, requireCredentials } from '../auth.ts';
import type { HttpContext } from '../context.ts';
import type { Scope } from '../permissions.ts';
import { rateLimited } from '../rate-limits.ts';
import { toRefusal } from '../refusals.ts';
import { requireSameOrigin } from '../same-origin.ts';
import { usedSessionCookie } from '../session-cookie.ts';
import type { Outlet } from './outlet.ts';

export interface Admitted {
  principal: Principal;
  availableNano: bigint;
}

export type AdmissionContext = Pick<
  HttpContext,
  'sql' | 'apiKeys' | 'sessionTokens' | 'limits' | 'logger' | 'now' | 'publicUrl' | 'trustedProxies'
>;

/** Never log these. */
export interface SocketCredentials {
  /** An API key or a session token; empty if none was sent. */
  credential: string;
  /** Session token of the cookie. Null without one, or if other credentials were sent. */
  cookie: string | null;
  workspaceId: string | undefined;
}

/**
 * Reads the credentials of a handshake from the Authorization header, the subprotocols (because browsers cannot set
 * headers), the query or the cookie, in this order. The schemes `bearer` and `token` are equivalent. Other schemes may
 * be for a proxy.
 * @throws TandemError UNAUTHORIZED for two different cookies
 */
export function socketCredentialsOf({ headers, url }: IncomingMessage): SocketCredentials {
  const query = new URLSearchParams(url?.split('?', 2)[1] ?? '');
  const fromHeader = /^(?:bearer|token) +(\S+) *$/i.exec(headers.authorization ?? '')?.[1];
  const [scheme = '', key] = (headers['sec-websocket-protocol'] ?? '').split(',').map((part) => part.trim());
  const fromProtocols = /^(?:bearer|token)$/i.test(scheme) ? key : undefined;
  const credential = fromHeader || fromProtocols || query.get('apiKey') || query.get('token') || '';
  return {
    credential,
    cookie: credential === '' ? usedSessionCookie({ headers }) : null,
    workspaceId: query.get('workspace_id') || undefined,
  };
}

/** Returns an error for a handshake with a cookie that comes from another site; otherwise null. */
export function cookieObjection(request: IncomingMessage, context: AdmissionContext): TandemError | null {
  try {
    if (socketCredentialsOf(request).cookie !== null) requireSameOrigin(request, { ...context, isSafe: false });
    return null;
  } catch (error) {
    return toRefusal(error);
  }
}

/**
 * Admits a client. Checks in this order: credentials, role and scope, rate limit, wallet unless the service is free.
 * @throws TandemError
 */
export async function admitToSocket(
  credentials: SocketCredentials,
  { context, address, service }: { context: AdmissionContext; address: string; service: 'stt' | 'tts' },
): Promise<Admitted> {
  const { sql, limits } = context;
  const scope: Scope = `${service}:write`;
  const principal = await identify(credentials, { context, scope }).catch(async (error: unknown) => {
    const refusal = toRefusal(error);
    if (refusal.status < 500) {
      // Limits guessing as over REST.
      const state = await limits.consumeAddress(address);
      if (state.exceeded) throw rateLimited(state);
    }
    throw refusal;
  });
  const state = await limits.consumeWorkspace(principal.workspaceId, principal.plan);
  if (state.exceeded) throw rateLimited(state);
  const { availableNano } = await walletOf(sql, principal.workspaceId);
  if (availableNano <= 0n && (await priceBookOf(sql, principal.workspaceId))[service] > 0n) {
    throw new TandemError('INSUFFICIENT_CREDITS', 'The wallet is empty. Top up the wallet, then reconnect.', {
      details: { available: nanoToUsd(availableNano) },
    });
  }
  return { principal, availableNano };
}

async function identify(
  { credential, cookie, workspaceId }: SocketCredentials,
  { context, scope }: { context: AdmissionContext; scope: Scope },
): Promise<Principal> {
  if (credential === '' && cookie === null) throw new TandemError('UNAUTHORIZED', NO_CREDENTIALS);
  const authorization = credential === '' ? undefined : `Bearer ${credential}`;
  const identity = await authenticate({ authorization, cookie }, context);
  const principal = await enterWorkspace(identity, { sql: context.sql, workspaceId });
  requireCredentials(principal, { scope });
  requireAccess(principal, 'writer');
  return principal;
}

const NO_CREDENTIALS =
  'Send credentials: the header Authorization: Bearer sk_..., the subprotocols token and the key, or apiKey in the query.';

/** Sends the error as a message and closes the connection. Logs an unexpected one with `failure`, a constant text. */
export function closeWithRefusal(
  outlet: Outlet,
  error: unknown,
  { logger, failure }: { logger: AdmissionContext['logger']; failure: string },
): void {
  const refusal = toRefusal(error);
  if (refusal.status === 500) logger.error({ err: refusal.cause ?? refusal }, failure);
  const message = errorMessageOf(refusal);
  outlet.send(message);
  outlet.close(refusal.code === 'SHUTTING_DOWN' ? 1012 : refusal.status < 500 ? 1008 : 1011, message.code);
}

/** Converts an error to a message. On a socket, all credential errors have the same code. */
export function errorMessageOf(refusal: TandemError): ErrorMessage {
  const isAboutCredentials = refusal.status === 401 || refusal.code === 'WORKSPACE_NOT_FOUND';
  return {
    type: 'error',
    code: isAboutCredentials ? 'AUTH_FAILED' : refusal.code,
    message: refusal.message,
    ...(refusal.details !== undefined && { details: refusal.details }),
    ...(refusal.retryAfterS !== null && { retry_after: Math.ceil(refusal.retryAfterS) }),
  };
}
