import type { IncomingMessage } from 'node:http';
import type { ErrorMessage } from '../../actors/stt/live-stt.ts';
import { TandemError } from '../../machines/errors.ts';
import { walletOf } from '../../storage/queries/billing.ts';
import { authenticate, enterWorkspace, type Principal, requireAccess, requireCredentials } from '../auth.ts';
import type { HttpContext } from '../context.ts';
import type { Scope } from '../permissions.ts';
import { rateLimited } from '../rate-limits.ts';
import { toRefusal } from '../refusals.ts';

/** A client that may open a session. */
export interface Admitted {
  principal: Principal;
  /** Wallet amount that can be spent. */
  availableNano: bigint;
}

export type AdmissionContext = Pick<HttpContext, 'sql' | 'sessionTokens' | 'limits' | 'logger' | 'now'>;

/** Must never be logged. */
export interface SocketCredentials {
  /** An API key or a session token; empty if none was sent. */
  credential: string;
  workspaceId: string | undefined;
}

/**
 * Reads the credentials of a handshake: from the Authorization header, from the subprotocols, because browsers cannot
 * set headers, or from the query. The schemes `bearer` and `token` are the same. Other schemes may be for a proxy.
 */
export function socketCredentialsOf({ headers, url }: IncomingMessage): SocketCredentials {
  const query = new URLSearchParams(url?.split('?', 2)[1] ?? '');
  const fromHeader = /^(?:bearer|token) +(\S+) *$/i.exec(headers.authorization ?? '')?.[1];
  const [scheme = '', key] = (headers['sec-websocket-protocol'] ?? '').split(',').map((part) => part.trim());
  const fromProtocols = /^(?:bearer|token)$/i.test(scheme) ? key : undefined;
  return {
    credential: fromHeader || fromProtocols || query.get('apiKey') || query.get('token') || '',
    workspaceId: query.get('workspace_id') || undefined,
  };
}

/**
 * Admits a client. Checks in this order: credentials, role and scope, rate limit, wallet.
 * @throws TandemError
 */
export async function admitToSocket(
  credentials: SocketCredentials,
  { context, address, scope }: { context: AdmissionContext; address: string; scope: Scope },
): Promise<Admitted> {
  const { sql, limits } = context;
  const principal = await identify(credentials, { context, scope }).catch(async (error: unknown) => {
    const refusal = toRefusal(error);
    if (refusal.status < 500) {
      // Password guessing is limited as over REST.
      const state = await limits.consumeAddress(address);
      if (state.exceeded) throw rateLimited(state);
    }
    throw refusal;
  });
  const state = await limits.consumeWorkspace(principal.workspaceId, principal.plan);
  if (state.exceeded) throw rateLimited(state);
  const { availableNano } = await walletOf(sql, principal.workspaceId);
  if (availableNano <= 0n) {
    throw new TandemError('INSUFFICIENT_CREDITS', 'The wallet is empty. Top up the wallet, then reconnect.', {
      details: { available: Number(availableNano) / 1e9 },
    });
  }
  return { principal, availableNano };
}

async function identify(
  { credential, workspaceId }: SocketCredentials,
  { context, scope }: { context: AdmissionContext; scope: Scope },
): Promise<Principal> {
  const { sql, sessionTokens: tokens, logger, now } = context;
  if (credential === '') throw new TandemError('UNAUTHORIZED', NO_CREDENTIALS);
  const identity = await authenticate(`Bearer ${credential}`, {
    sql,
    tokens,
    now: now(),
    onTouchFailed: (error) => logger.warn({ err: error }, 'updating last use of an API key failed'),
  });
  const principal = await enterWorkspace(identity, { sql, workspaceId });
  requireCredentials(principal, { scope });
  requireAccess(principal, 'writer');
  return principal;
}

const NO_CREDENTIALS =
  'Send credentials: the header Authorization: Bearer sk_..., the subprotocols token and the key, or apiKey in the query.';

/** Converts an error to a message. All credential errors have the same code on a socket. */
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
