import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { TandemError } from '../machines/errors.ts';
import type { Sql } from '../storage/database.ts';
import { findApiKey, touchApiKey } from '../storage/queries/api-keys.ts';
import type { Plan, Role } from '../storage/queries/workspaces.ts';

/** Who is asking, and for which workspace. Every kind of credential ends up as one of these. */
export interface Principal {
  workspaceId: string;
  plan: Plan;
  role: Role;
  userId: number;
  placedVia: 'api_key' | 'session';
  apiKeyId: number | null;
  apiKeyName: string | null;
}

/**
 * What a route asks of its caller, in `config.access`. `member`: any role; `writer`: whoever may change something,
 * so all but viewers; `admin`: admins and owners; `owner`: owners. `public` routes look at no credentials at all.
 */
export type Access = 'public' | 'member' | 'writer' | 'admin' | 'owner';

/** Which credentials a route takes: `session` is the token of somebody who logged in. */
export type Credentials = 'any' | 'api_key' | 'session';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on all but public routes; read it through `principalOf`. */
    principal: Principal | null;
  }
  interface FastifyContextConfig {
    access?: Access;
    /** Default: any. */
    credentials?: Credentials;
    /** Requests are not counted: a load balancer asks for health as often as it likes. */
    unlimited?: boolean;
  }
}

export interface AuthenticateOptions {
  sql: Sql;
  now: Date;
  onTouchFailed: (error: unknown) => void;
}

/**
 * Reads `Authorization: Bearer sk_...`, and notes that the key was used.
 * @throws TandemError UNAUTHORIZED, or WORKSPACE_NOT_FOUND when the key's user left its workspace.
 */
export async function authenticate(
  authorization: string | undefined,
  { sql, now, onTouchFailed }: AuthenticateOptions,
): Promise<Principal> {
  const principal = await findPrincipal(authorization, { sql, now });
  if (principal.apiKeyId !== null) touchApiKey(sql, { id: principal.apiKeyId, now }).catch(onTouchFailed);
  return principal;
}

/** Whether credentials that were good once are so no longer; a database that cannot be asked revokes nothing. */
export async function isRevoked(
  authorization: string | undefined,
  options: Pick<AuthenticateOptions, 'sql' | 'now'>,
): Promise<boolean> {
  try {
    await findPrincipal(authorization, options);
    return false;
  } catch (error) {
    return error instanceof TandemError;
  }
}

async function findPrincipal(
  authorization: string | undefined,
  { sql, now }: Pick<AuthenticateOptions, 'sql' | 'now'>,
): Promise<Principal> {
  const credential = /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
  if (credential === undefined) {
    throw new TandemError('UNAUTHORIZED', 'Send an API key: Authorization: Bearer sk_...');
  }
  if (!credential.startsWith('sk_'))
    throw new TandemError('UNAUTHORIZED', 'The credential is not an API key: those start with sk_.');
  const key = await findApiKey(sql, { keyHash: createHash('sha256').update(credential).digest(), now });
  if (key === null)
    throw new TandemError('UNAUTHORIZED', 'The API key is not valid, has expired or was deleted. Use another one.');
  if (key.role === null) {
    throw new TandemError('WORKSPACE_NOT_FOUND', 'The API key is not tied to a workspace its user is a member of.');
  }
  return {
    workspaceId: key.workspaceId,
    plan: key.plan,
    role: key.role,
    userId: key.createdByUserId,
    placedVia: 'api_key',
    apiKeyId: key.id,
    apiKeyName: key.name,
  };
}

/** @throws TandemError FORBIDDEN */
export function requireAccess(principal: Principal, access: Access): void {
  if (access === 'owner' && principal.role !== 'owner') {
    throw new TandemError('FORBIDDEN', 'Only owners of the workspace may do this.');
  }
  if (access === 'admin' && principal.role !== 'owner' && principal.role !== 'admin') {
    throw new TandemError('FORBIDDEN', 'Only owners and admins of the workspace may do this.');
  }
  if (access === 'writer' && principal.role === 'viewer') {
    throw new TandemError(
      'FORBIDDEN',
      'Viewers may look but not act. Ask an owner or admin of the workspace for another role.',
    );
  }
}

/** The caller of a route that is not public. */
export function principalOf(request: FastifyRequest): Principal {
  if (request.principal === null) throw new Error('the route is public, so it has no principal');
  return request.principal;
}
