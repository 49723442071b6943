import type { FastifyReply, FastifyRequest } from 'fastify';
import { TandemError } from '../machines/errors.ts';
import type { Sql } from '../storage/database.ts';
import { fingerprintOf } from '../storage/queries/api-key-secret.ts';
import { type ApiKeyBearer, findApiKey, findApiKeyById, touchApiKey } from '../storage/queries/api-keys.ts';
import { findMembership } from '../storage/queries/memberships.ts';
import { findSession } from '../storage/queries/sessions.ts';
import type { Plan, Role } from '../storage/queries/workspaces.ts';
import type { Access, Credentials, Permission, Scope } from './permissions.ts';
import type { SessionTokens } from './session-tokens.ts';

/** Who is asking, whatever the workspace. */
export interface Caller {
  userId: number;
  placedVia: 'api_key' | 'session';
  apiKeyId: number | null;
  apiKeyName: string | null;
  /** What the key was limited to; empty for everything its user may do. */
  scopes: readonly Scope[];
  sessionId: string | null;
  /** When the credentials end by themselves. */
  expiresAt: Date | null;
}

/** Who is asking, and for which workspace. Every kind of credential ends up as one of these. */
export interface Principal extends Caller {
  workspaceId: string;
  plan: Plan;
  role: Role;
}

/** Good credentials. A key is tied to its workspace; a session names one with each request. */
export interface Identity {
  caller: Caller;
  /** Null for a session. */
  key: ApiKeyBearer | null;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on all but public routes; read it through `identityOf`. */
    identity: Identity | null;
    /** Set on routes that are about a workspace; read it through `principalOf`. */
    principal: Principal | null;
  }
  interface FastifyContextConfig {
    access?: Access;
    /** Default: any. */
    credentials?: Credentials;
    /** What a limited key must have been given. */
    scope?: Scope | null;
    /** Requests are not counted: a load balancer asks for health as often as it likes. */
    unlimited?: boolean;
    /** Reads an upload and makes its fields the body, once its sender is known; it may take as long as it takes. */
    receiveBody?: (request: FastifyRequest, reply: FastifyReply) => Promise<void>;
  }
}

interface AuthenticateOptions {
  sql: Sql;
  tokens: SessionTokens;
  now: Date;
  onTouchFailed: (error: unknown) => void;
}

/**
 * Reads `Authorization: Bearer` with an API key (`sk_...`) or the token of a session, and notes that a key was used.
 * @throws TandemError UNAUTHORIZED
 */
export async function authenticate(authorization: string | undefined, options: AuthenticateOptions): Promise<Identity> {
  const credential = /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
  if (credential === undefined) {
    throw new TandemError('UNAUTHORIZED', 'Send an API key: Authorization: Bearer sk_...');
  }
  if (credential.startsWith('sk_')) return await authenticateKey(credential, options);
  if (credential.split('.').length === 3) return await authenticateSession(credential, options);
  throw new TandemError('UNAUTHORIZED', 'The credential is neither an API key, which starts with sk_, nor a token.');
}

/**
 * The caller as somebody of a workspace: the one of the key, or the one a session names.
 * @throws TandemError WORKSPACE_NOT_FOUND when none is named, or the user is no member of it.
 */
export async function enterWorkspace(
  { caller, key }: Identity,
  { sql, workspaceId }: { sql: Sql; workspaceId: string | undefined },
): Promise<Principal> {
  if (key !== null) {
    if (key.role === null) {
      throw workspaceNotFound('The API key is not tied to a workspace its user is a member of.');
    }
    requireSameWorkspace(key.workspaceId, workspaceId);
    return { ...caller, workspaceId: key.workspaceId, plan: key.plan, role: key.role };
  }
  if (workspaceId === undefined) {
    throw workspaceNotFound('Name the workspace: pass workspace_id in the query or in the body.');
  }
  const membership = await findMembership(sql, { workspaceId, userId: caller.userId });
  if (membership === null) throw workspaceNotFound('You are not a member of a workspace with this id.');
  return { ...caller, ...membership };
}

/** @throws TandemError WORKSPACE_NOT_FOUND: acting on another workspace than the one named would be worse. */
export function requireSameWorkspace(workspaceId: string, named: string | undefined): void {
  if (named !== undefined && named.toLowerCase() !== workspaceId) {
    throw workspaceNotFound('The request names another workspace than the one its credentials are for.');
  }
}

/** Whether a caller who was let in would be so no longer; a database that cannot be asked revokes nothing. */
export async function isRevoked(
  { apiKeyId, sessionId, userId, workspaceId }: Principal,
  { sql, now }: { sql: Sql; now: Date },
): Promise<boolean> {
  try {
    if (apiKeyId !== null) return ((await findApiKeyById(sql, { id: apiKeyId, now }))?.role ?? null) === null;
    const session = await findSession(sql, { id: sessionId ?? '', userId, now });
    return session === null || (await findMembership(sql, { workspaceId, userId })) === null;
  } catch {
    return false;
  }
}

/** Whoever called a route that is not public. */
export function callerOf(request: FastifyRequest): Caller {
  if (request.identity === null) throw new Error('the route is public, so it has no caller');
  return request.identity.caller;
}

/** The caller of a route that is about a workspace. */
export function principalOf(request: FastifyRequest): Principal {
  if (request.principal === null) throw new Error('the route is about no workspace, so it has no principal');
  return request.principal;
}

/** @throws TandemError FORBIDDEN when the route requires a session, or a scope that the API key lacks. */
export function requireCredentials(caller: Caller, { credentials = 'any', scope = null }: Partial<Permission>): void {
  if (credentials === 'session' && caller.placedVia !== 'session') {
    throw new TandemError('FORBIDDEN', 'An API key may not do this. Log in with POST /auth/login and use its token.');
  }
  if (scope !== null && !scopesAllow(caller, scope)) {
    const message = `The API key is limited to ${caller.scopes.join(', ')}; this needs ${scope}.`;
    throw new TandemError('FORBIDDEN', message, { details: { required_scope: scope } });
  }
}

/** Sessions and keys without scopes are limited only by the user's role. */
export function scopesAllow({ scopes }: Caller, scope: Scope): boolean {
  return scopes.length === 0 || scopes.includes(scope);
}

/** @throws TandemError FORBIDDEN when the role of the caller does not allow it. */
export function requireAccess({ role }: Principal, access: Access): void {
  if (!roleAllows(role, access)) throw new TandemError('FORBIDDEN', REFUSALS[access] ?? 'You may not do this.');
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
  owner: 'Only owners of the workspace may do this.',
  admin: 'Only owners and admins of the workspace may do this.',
  writer: 'Viewers may look but not act. Ask an owner or admin of the workspace for another role.',
};

async function authenticateKey(
  credential: string,
  { sql, now, onTouchFailed }: AuthenticateOptions,
): Promise<Identity> {
  // The hash is compared by the index: how long that takes tells nothing about the key.
  const key = await findApiKey(sql, { keyHash: fingerprintOf(credential).keyHash, now });
  if (key === null) {
    throw new TandemError('UNAUTHORIZED', 'The API key is not valid, has expired or was deleted. Use another one.');
  }
  touchApiKey(sql, { ...key, now }).catch(onTouchFailed);
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

async function authenticateSession(credential: string, { sql, tokens, now }: AuthenticateOptions): Promise<Identity> {
  const { userId, sessionId, expiresAt } = await tokens.verify(credential, now);
  const session = await findSession(sql, { id: sessionId, userId, now });
  if (session === null) throw new TandemError('UNAUTHORIZED', 'The session has ended. Log in again.');
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
