import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { TandemError } from '../machines/errors.ts';
import { SharedLookups } from '../runtime/shared-lookups.ts';
import type { Sql } from '../storage/database.ts';
import { fingerprintOf } from '../storage/queries/api-key-secret.ts';
import { type ApiKeyBearer, findApiKey, findApiKeyById, touchApiKey } from '../storage/queries/api-keys.ts';
import { findMembership } from '../storage/queries/memberships.ts';
import { findSession, touchSession } from '../storage/queries/sessions.ts';
import type { Plan, Role } from '../storage/queries/workspaces.ts';
import type { Access, Credentials, Permission, Scope } from './permissions.ts';
import type { SessionTokens, VerifiedToken } from './session-tokens.ts';

/** Independent of a workspace. */
export interface Caller {
  userId: number;
  placedVia: 'api_key' | 'session';
  apiKeyId: number | null;
  apiKeyName: string | null;
  /** Scopes of the key. Empty: everything that the user's role allows. */
  scopes: readonly Scope[];
  sessionId: string | null;
  expiresAt: Date | null;
}

export interface Principal extends Caller {
  workspaceId: string;
  plan: Plan;
  role: Role;
}

/** Valid credentials. A key belongs to a workspace; with a session, each request names one. */
export interface Identity {
  caller: Caller;
  /** Null for a session. */
  key: ApiKeyBearer | null;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set except on public routes. Use `callerOf`. */
    identity: Identity | null;
    /** Set on routes that act on a workspace. Use `principalOf`. */
    principal: Principal | null;
  }
  interface FastifyContextConfig {
    access?: Access;
    /** Default: any. */
    credentials?: Credentials;
    /** Scope that a key with scopes needs. */
    scope?: Scope | null;
    /** Exempt from the rate limit, for load balancer health checks. */
    unlimited?: boolean;
    /** Receives an upload after authentication and sets `body` to its fields. No body timeout applies. */
    receiveBody?: (request: FastifyRequest, reply: FastifyReply) => Promise<void>;
  }
}

interface AuthenticateOptions {
  sql: Sql;
  apiKeys: ApiKeyLookups;
  sessionTokens: SessionTokens;
  now: () => Date;
  logger: Logger;
}

/** Finds valid API keys. Concurrent requests with one key share queries. */
export type ApiKeyLookups = SharedLookups<ApiKeyBearer | null>;

export function createApiKeyLookups({ sql, now }: { sql: Sql; now: () => Date }): ApiKeyLookups {
  return new SharedLookups((keyHash) => findApiKey(sql, { keyHash: Buffer.from(keyHash, 'hex'), now: now() }));
}

interface PresentedCredentials {
  authorization: string | undefined;
  /** Session token of the cookie, after `requireSameOrigin`. */
  cookie?: string | null;
}

/**
 * Authenticates `Authorization: Bearer` with an API key (`sk_...`) or a session token. Without that header, uses the
 * session token of the cookie. Updates the time of last use.
 * @throws TandemError UNAUTHORIZED
 */
export async function authenticate(
  { authorization, cookie = null }: PresentedCredentials,
  options: AuthenticateOptions,
): Promise<Identity> {
  if (authorization === undefined && cookie !== null) return await authenticateSession(cookie, options);
  const credential = /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
  if (credential === undefined) {
    throw new TandemError('UNAUTHORIZED', 'Send an API key: Authorization: Bearer sk_...');
  }
  if (credential.startsWith('sk_')) return await authenticateKey(credential, options);
  if (credential.split('.').length === 3) return await authenticateSession(credential, options);
  throw new TandemError('UNAUTHORIZED', 'The credential is neither an API key (sk_...) nor a session token.');
}

/**
 * Resolves the workspace: that of the key, or the one named by a session's request.
 * @throws TandemError WORKSPACE_NOT_FOUND if none is named, or the user is not a member
 */
export async function enterWorkspace(
  { caller, key }: Identity,
  { sql, workspaceId }: { sql: Sql; workspaceId: string | undefined },
): Promise<Principal> {
  if (key !== null) {
    if (key.role === null) {
      throw workspaceNotFound('The user of this API key is no longer a member of its workspace. Use another key.');
    }
    requireSameWorkspace(key.workspaceId, workspaceId);
    return { ...caller, workspaceId: key.workspaceId, plan: key.plan, role: key.role };
  }
  if (workspaceId === undefined) {
    throw workspaceNotFound('workspace_id is required with a session token, in the query or in the body.');
  }
  const membership = await findMembership(sql, { workspaceId, userId: caller.userId });
  if (membership === null) throw workspaceNotFound('You are not a member of a workspace with this id.');
  return { ...caller, ...membership };
}

/** @throws TandemError WORKSPACE_NOT_FOUND if the request names another workspace than the credentials' */
export function requireSameWorkspace(workspaceId: string, named: string | undefined): void {
  if (named !== undefined && named.toLowerCase() !== workspaceId) {
    throw workspaceNotFound('workspace_id differs from the workspace of the credentials. Omit it, or use other ones.');
  }
}

/**
 * Whether an admitted caller's credentials were revoked, or its user has a role with which it may not stay. False if the
 * database cannot be reached.
 */
export async function isRevoked(
  { apiKeyId, sessionId, userId, workspaceId }: Principal,
  { sql, now, mayStay }: { sql: Sql; now: Date; mayStay: (role: Role) => boolean },
): Promise<boolean> {
  const hasLost = (role: Role | null | undefined) => role == null || !mayStay(role);
  try {
    if (apiKeyId !== null) return hasLost((await findApiKeyById(sql, { id: apiKeyId, now }))?.role);
    const session = await findSession(sql, { id: sessionId ?? '', userId, now });
    return session === null || hasLost((await findMembership(sql, { workspaceId, userId }))?.role);
  } catch {
    return false;
  }
}

export function callerOf(request: FastifyRequest): Caller {
  if (request.identity === null) throw new Error('a public route has no caller');
  return request.identity.caller;
}

export function principalOf(request: FastifyRequest): Principal {
  if (request.principal === null) throw new Error('this route does not act on a workspace, so it has no principal');
  return request.principal;
}

/** @throws TandemError FORBIDDEN if the route requires a session, or a scope that the API key lacks */
export function requireCredentials(caller: Caller, { credentials = 'any', scope = null }: Partial<Permission>): void {
  if (credentials === 'session' && caller.placedVia !== 'session') {
    throw new TandemError(
      'FORBIDDEN',
      'This operation requires a session token, not an API key. Log in with POST /auth/login.',
    );
  }
  if (scope !== null && !scopesAllow(caller, scope)) {
    const message = `This operation requires the scope ${scope}. The API key has ${caller.scopes.join(', ')}.`;
    throw new TandemError('FORBIDDEN', message, { details: { required_scope: scope } });
  }
}

/** Sessions and keys without scopes are limited only by the user's role. */
export function scopesAllow({ scopes }: Caller, scope: Scope): boolean {
  return scopes.length === 0 || scopes.includes(scope);
}

/** @throws TandemError FORBIDDEN if the caller's role does not allow it */
export function requireAccess({ role }: Principal, access: Access): void {
  if (!roleAllows(role, access))
    throw new TandemError('FORBIDDEN', REFUSALS[access] ?? 'Your role does not allow this.');
}

export function roleAllows(role: Role, access: Access): boolean {
  switch (access) {
    case 'owner':
      return role === 'owner';
    case 'admin':
      return role === 'owner' || role === 'admin';
    case 'writer':
      return role !== 'viewer';
    default:
      return true;
  }
}

const REFUSALS: Partial<Record<Access, string>> = {
  owner: 'This operation requires the owner role.',
  admin: 'This operation requires the admin or owner role.',
  writer: 'Viewers have read-only access. Ask an owner or admin of the workspace for another role.',
};

async function authenticateKey(
  credential: string,
  { sql, apiKeys, now, logger }: AuthenticateOptions,
): Promise<Identity> {
  // The hash is looked up in an index, so the timing reveals nothing about the key.
  const key = await apiKeys.get(fingerprintOf(credential).keyHash.toString('hex'));
  if (key === null) {
    throw new TandemError('UNAUTHORIZED', 'The API key is invalid, has expired or was deleted. Use another one.');
  }
  touchApiKey(sql, { ...key, now: now() }).catch(warnOfTouch(logger));
  return identityOfKey(key);
}

function warnOfTouch(logger: Logger): (error: unknown) => void {
  return (error) => logger.warn({ err: error }, 'updating last use of credentials failed');
}

export function identityOfKey(key: ApiKeyBearer): Identity {
  const caller: Caller = {
    userId: key.createdByUserId,
    placedVia: 'api_key',
    apiKeyId: key.id,
    apiKeyName: key.name,
    scopes: key.scopes as Scope[],
    sessionId: null,
    expiresAt: key.expiresAt,
  };
  return { caller, key };
}

async function authenticateSession(
  credential: string,
  { sql, sessionTokens, now, logger }: AuthenticateOptions,
): Promise<Identity> {
  const at = now();
  const { userId, sessionId, expiresAt } = await sessionTokens.verify(credential, at);
  const session = await findSession(sql, { id: sessionId, userId, now: at });
  if (session === null) throw new TandemError('UNAUTHORIZED', 'The session has ended. Log in again.');
  touchSession(sql, { ...session, now: at }).catch(warnOfTouch(logger));
  return identityOfSession({ userId, sessionId, expiresAt });
}

export function identityOfSession({ userId, sessionId, expiresAt }: VerifiedToken): Identity {
  const caller: Caller = {
    userId,
    placedVia: 'session',
    apiKeyId: null,
    apiKeyName: null,
    scopes: [],
    sessionId,
    expiresAt,
  };
  return { caller, key: null };
}

function workspaceNotFound(message: string): TandemError {
  return new TandemError('WORKSPACE_NOT_FOUND', message);
}
