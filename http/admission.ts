import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { TandemError } from '../machines/errors.ts';
import type { RateLimitState } from '../storage/limits/limits.ts';
import {
  authenticate,
  enterWorkspace,
  type Identity,
  type Principal,
  requireAccess,
  requireCredentials,
  requireSameWorkspace,
} from './auth.ts';
import { addressOf } from './client-address.ts';
import { type HttpContext, linkSecrets } from './context.ts';
import { applyPermission } from './permissions.ts';
import { rateLimited, rateLimitHeaders } from './rate-limits.ts';
import { toRefusal } from './refusals.ts';
import { requireSameOrigin } from './same-origin.ts';
import { usedSessionCookie } from './session-cookie.ts';
import { authenticateStreamToken } from './stream-tokens.ts';
import { validationFailed } from './validation.ts';

/** After a body that took longer, the credentials are checked again: they may have ended meanwhile. */
const LATE_BODY_MS = 1_000;

export interface AdmissionOptions {
  context: HttpContext;
  /** Called for server errors during authentication. */
  onFailure: (request: FastifyRequest, failure: TandemError) => void;
}

/**
 * Admits requests: checks credentials, rate limit and role. A session names its workspace in the query, the path or the
 * body. If in the body, its rate limit and role are checked after the body was received. Credentials and role are checked
 * again after a body that took long.
 */
export function admitRequests(app: FastifyInstance, { context, onFailure }: AdmissionOptions): void {
  const { sql, limits, now } = context;
  const checkedAtMs = new WeakMap<FastifyRequest, number>();
  app.decorateRequest('identity', null);
  app.decorateRequest('principal', null);
  app.decorateRequest('streamTarget', null);
  app.addHook('onRoute', applyPermission);

  app.addHook('onRequest', async (request, reply) => {
    const { access = 'public', unlimited = false } = request.routeOptions.config ?? {};
    const arrival = access === 'public' ? null : await identify(request);
    // Not before: a slow database must not get each check twice.
    checkedAtMs.set(request, now().getTime());
    const state = await consume(request, { arrival, unlimited });
    applyRateLimit(reply, state);
    if (arrival !== null) admit(request, arrival);
  });

  app.addHook('preValidation', async (request, reply) => {
    const { access = 'public', receiveBody } = request.routeOptions.config ?? {};
    if (request.identity === null) return;
    await receiveBody?.(request, reply);
    if (now().getTime() - checkedAtMs.get(request)! > LATE_BODY_MS) admit(request, await identify(request));
    const named = takeWorkspaceId(request.body);
    if (access === 'user') return;
    if (request.principal !== null) {
      requireSameWorkspace(request.principal.workspaceId, named);
      return;
    }
    const principal = await enterWorkspace(request.identity, { sql, workspaceId: named });
    applyRateLimit(reply, await limits.consumeWorkspace(principal.workspaceId, principal.plan));
    requireAccess(principal, access);
    request.principal = principal;
  });

  function admit(request: FastifyRequest, arrival: Arrival | TandemError): void {
    if (arrival instanceof TandemError) throw arrival;
    const { access = 'public', ...permission } = request.routeOptions.config ?? {};
    request.identity = arrival.identity;
    requireCredentials(arrival.identity.caller, permission);
    if (arrival.principal === null) return;
    requireAccess(arrival.principal, access);
    request.principal = arrival.principal;
  }

  /** Authenticates a request, or returns the error. A request with invalid credentials counts against its address. */
  async function identify(request: FastifyRequest): Promise<Arrival | TandemError> {
    try {
      const streaming = await streamTokenOf(request);
      if (streaming !== null) return streaming;
      const cookie = usedSessionCookie(request);
      if (cookie !== null) requireSameOrigin(request.raw, { isSafe: SAFE_METHODS.has(request.method), ...context });
      const { authorization } = request.headers;
      const identity = await authenticate({ authorization, cookie }, context);
      const workspaceId = workspaceNamedBy(request);
      const isKnown = identity.key !== null || workspaceId !== undefined;
      return { identity, principal: isKnown ? await enterWorkspace(identity, { sql, workspaceId }) : null };
    } catch (error) {
      const refusal = toRefusal(error);
      if (refusal.status === 500) onFailure(request, refusal);
      return refusal;
    }
  }

  async function streamTokenOf(request: FastifyRequest): Promise<Arrival | null> {
    const { token } = request.query as { token?: unknown };
    const { acceptsStreamToken = false } = request.routeOptions.config;
    if (!acceptsStreamToken || typeof token !== 'string' || request.headers.authorization !== undefined) return null;
    const signed = { sql, secrets: linkSecrets(context), now: context.now() };
    const { identity, workspaceId, callId } = await authenticateStreamToken(token, signed);
    request.streamTarget = { callId };
    return { identity, principal: await enterWorkspace(identity, { sql, workspaceId }) };
  }

  async function consume(
    request: FastifyRequest,
    { arrival, unlimited }: { arrival: Arrival | TandemError | null; unlimited: boolean },
  ): Promise<RateLimitState> {
    if (arrival !== null && !(arrival instanceof TandemError) && arrival.principal !== null) {
      return await limits.consumeWorkspace(arrival.principal.workspaceId, arrival.principal.plan);
    }
    const address = addressOf(request);
    // Credentials that could not be checked say nothing about the client.
    const isOurFault = arrival instanceof TandemError && arrival.status >= 500;
    return await (unlimited || isOurFault ? limits.peekAddress(address) : limits.consumeAddress(address));
  }
}

/** RFC 9110 §9.2.1. */
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

interface Arrival {
  identity: Identity;
  /** Null for a session that has not named its workspace yet. */
  principal: Principal | null;
}

function applyRateLimit(reply: FastifyReply, state: RateLimitState): void {
  reply.headers(rateLimitHeaders(state));
  if (state.exceeded) throw rateLimited(state);
}

function workspaceNamedBy(request: FastifyRequest): string | undefined {
  if (request.routeOptions.url?.startsWith('/workspaces/:id')) return (request.params as { id: string }).id;
  const named = (request.query as Record<string, unknown> | undefined)?.workspace_id;
  return typeof named === 'string' && named !== '' ? named : undefined;
}

/** Removes `workspace_id` from the body, because it is not a field of the operation. */
function takeWorkspaceId(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !Object.hasOwn(body, 'workspace_id')) return undefined;
  const fields = body as { workspace_id?: unknown };
  const named = fields.workspace_id;
  delete fields.workspace_id;
  if (typeof named !== 'string') throw validationFailed([{ path: 'workspace_id', message: 'must be a string' }]);
  return named;
}
