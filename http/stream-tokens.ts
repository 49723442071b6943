import { createHmac } from 'node:crypto';
import { TandemError } from '../machines/errors.ts';
import type { Sql } from '../storage/database.ts';
import { findApiKeyById } from '../storage/queries/api-keys.ts';
import { findSession } from '../storage/queries/sessions.ts';
import { isSignedByAny } from '../storage/secrets.ts';
import { type Identity, identityOfKey, identityOfSession, type Principal } from './auth.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Accepts `?token=` of `mintStreamToken` instead of the Authorization header. */
    acceptsStreamToken?: boolean;
  }
  interface FastifyRequest {
    /** Only stream that the request's credentials may open. Null: any. */
    streamTarget: StreamTarget | null;
  }
}

/** Long enough for a few reconnects. A page gets a new token when its EventSource closes. */
const STREAM_TOKEN_MS = 5 * 60_000;

export interface StreamTarget {
  /** Null: live calls of the workspace. */
  callId: string | null;
}

/**
 * Creates a token that opens one stream, because an EventSource cannot send headers. It contains the id of its
 * credentials and expires with them, so nothing is stored.
 */
export function mintStreamToken(
  { callId, principal }: StreamTarget & { principal: Principal },
  { secret, now }: { secret: Buffer; now: Date },
): { token: string; expiresAt: Date } {
  const expiresAt = new Date(Math.floor((now.getTime() + STREAM_TOKEN_MS) / 1000) * 1000);
  const { workspaceId, userId, apiKeyId, sessionId, expiresAt: credentialsExpire } = principal;
  const claims = { callId, workspaceId, userId, apiKeyId, sessionId, expires: expiresAt.getTime() };
  const payload = Buffer.from(JSON.stringify({ ...claims, credentialsExpire: credentialsExpire?.getTime() ?? null }));
  const text = payload.toString('base64url');
  return { token: `st_${text}.${signatureOf(text, secret).toString('base64url')}`, expiresAt };
}

/**
 * Returns the current state of the token's credentials.
 * @throws TandemError UNAUTHORIZED if the token is invalid or has expired, none of the secrets has signed it, or its API
 * key or session has ended
 */
export async function authenticateStreamToken(
  token: string,
  { sql, secrets, now }: { sql: Sql; secrets: readonly Buffer[]; now: Date },
): Promise<StreamTarget & { identity: Identity; workspaceId: string }> {
  const claims = readToken(token, secrets);
  if (claims === null || claims.expires <= now.getTime()) throw refused();
  const { callId, workspaceId, userId, apiKeyId, sessionId, credentialsExpire } = claims;
  if (apiKeyId !== null) {
    const key = await findApiKeyById(sql, { id: apiKeyId, now });
    if (key === null) throw refused();
    return { identity: identityOfKey(key), workspaceId, callId };
  }
  const session = sessionId === null ? null : await findSession(sql, { id: sessionId, userId, now });
  if (session === null) throw refused();
  const expiresAt = new Date(credentialsExpire ?? claims.expires);
  return { identity: identityOfSession({ userId, sessionId: session.id, expiresAt }), workspaceId, callId };
}

interface Claims {
  callId: string | null;
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  sessionId: string | null;
  /** Unix milliseconds. */
  expires: number;
  credentialsExpire: number | null;
}

function readToken(token: string, secrets: readonly Buffer[]): Claims | null {
  const [, text, signature] = /^st_([A-Za-z0-9_-]{1,1000})\.([A-Za-z0-9_-]{43})$/.exec(token) ?? [];
  if (text === undefined || signature === undefined) return null;
  const given = Buffer.from(signature, 'base64url');
  if (!isSignedByAny(given, secrets, (secret) => signatureOf(text, secret))) return null;
  return JSON.parse(Buffer.from(text, 'base64url').toString()) as Claims;
}

function signatureOf(text: string, secret: Buffer): Buffer {
  return createHmac('sha256', secret).update(`tandem-stream\n${text}`).digest();
}

function refused(): TandemError {
  const message =
    'The stream token is invalid or has expired. Create one with POST /dialer/stream-token or /dialer/click2call/{id}/stream-token.';
  return new TandemError('UNAUTHORIZED', message);
}
