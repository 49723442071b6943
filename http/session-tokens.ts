import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { errors, exportJWK, generateKeyPair, importJWK, jwtVerify, SignJWT } from 'jose';
import { TandemError } from '../machines/errors.ts';
import { inTransaction, type Sql } from '../storage/database.ts';
import { openSession, type SessionClient } from '../storage/queries/sessions.ts';
import {
  activeSigningKey,
  addSigningKey,
  retireSigningKey,
  type SigningKeyRow,
  verifyingKey,
} from '../storage/queries/signing-keys.ts';
import { signingKeyContext } from '../storage/secret-contexts.ts';
import { type SecretBox, SecretBoxError } from '../storage/secrets.ts';
import { addressOf } from './client-address.ts';

/** Session tokens (JWT, RFC 7519). */
export interface SessionTokens {
  /** Opens a session and creates its token. Do not call it in a transaction, because it uses its own connections. */
  mint(session: { userId: number; now: Date; client?: SessionClient }): Promise<MintedToken>;
  /** Verifies signature and claims, but not whether the session was revoked. @throws TandemError UNAUTHORIZED */
  verify(token: string, now: Date): Promise<VerifiedToken>;
  /** Replaces the signing key and returns the new key's id. Tokens of the old key stay valid until they expire. */
  rotate(now: Date): Promise<string>;
}

export interface MintedToken {
  token: string;
  sessionId: string;
  expiresAt: Date;
}

export interface VerifiedToken {
  userId: number;
  sessionId: string;
  expiresAt: Date;
}

const ISSUER = 'tandem';
const AUDIENCE = 'tandem-api';
/** Compared with a token's header, which is never trusted. */
const ALGORITHM = 'EdDSA';
const TOKEN_LIFETIME_MS = 12 * 3_600_000;
const KEY_LIFETIME_MS = 30 * 86_400_000;
/** Time for which a process caches a public key. */
const CACHE_MS = 60_000;

export function createSessionTokens({ sql, secrets }: { sql: Sql; secrets: SecretBox }): SessionTokens {
  const verifying = new Map<string, { publicKey: Awaited<ReturnType<typeof importJWK>>; readAtMs: number }>();

  async function signingKey(now: Date) {
    const active = await activeSigningKey(sql);
    const isFresh = active !== null && now.getTime() - active.createdAt.getTime() <= KEY_LIFETIME_MS;
    const text = isFresh ? unseal(active) : null;
    if (isFresh && text !== null) return { id: active.id, privateKey: await importJWK(JSON.parse(text), ALGORITHM) };
    await rotate(now);
    // Another process may have rotated first.
    const next = (await activeSigningKey(sql))!;
    const privateKey = secrets.open(next.privateKeyEncrypted, signingKeyContext(next.id));
    return { id: next.id, privateKey: await importJWK(JSON.parse(privateKey), ALGORITHM) };
  }

  /** Null if TANDEM_SECRET_KEY has changed: then a new key is created. */
  function unseal({ id, privateKeyEncrypted }: SigningKeyRow): string | null {
    try {
      return secrets.open(privateKeyEncrypted, signingKeyContext(id));
    } catch (error) {
      if (error instanceof SecretBoxError) return null;
      throw error;
    }
  }

  async function rotate(now: Date): Promise<string> {
    const id = randomUUID();
    const { privateKey, publicKey } = await generateKeyPair(ALGORITHM, { crv: 'Ed25519', extractable: true });
    const privateKeyEncrypted = secrets.seal(JSON.stringify(await exportJWK(privateKey)), signingKeyContext(id));
    const newKey = { id, privateKeyEncrypted, publicKey: { ...(await exportJWK(publicKey)) }, now };
    return await inTransaction(sql, async (tx) => {
      const active = await activeSigningKey(tx);
      if (active !== null) await retireSigningKey(tx, { id: active.id, now });
      const added = await addSigningKey(tx, newKey);
      return added ? id : (await activeSigningKey(tx))!.id;
    });
  }

  async function publicKeyOf(id: unknown, now: Date) {
    if (typeof id !== 'string' || !/^[\w-]{1,64}$/.test(id)) throw unauthorized();
    const cached = verifying.get(id);
    if (cached !== undefined && Math.abs(now.getTime() - cached.readAtMs) < CACHE_MS) return cached.publicKey;
    const row = await verifyingKey(sql, { id, retiredAfter: new Date(now.getTime() - TOKEN_LIFETIME_MS) });
    if (row === null) {
      verifying.delete(id);
      throw unauthorized();
    }
    const publicKey = await importJWK(row.publicKey, ALGORITHM);
    verifying.set(id, { publicKey, readAtMs: now.getTime() });
    return publicKey;
  }

  return {
    async mint({ userId, now, client = UNKNOWN_CLIENT }) {
      const { id: kid, privateKey } = await signingKey(now);
      const expiresAt = lastWholeSecond(now, TOKEN_LIFETIME_MS);
      const session = await openSession(sql, { userId, expiresAt, now, ...client });
      const token = await new SignJWT({ user_id: userId })
        .setProtectedHeader({ alg: ALGORITHM, kid, typ: 'JWT' })
        .setIssuer(ISSUER)
        .setAudience(AUDIENCE)
        .setSubject(String(userId))
        .setIssuedAt(now)
        .setExpirationTime(session.expiresAt)
        .setJti(session.id)
        .sign(privateKey);
      return { token, sessionId: session.id, expiresAt: session.expiresAt };
    },

    async verify(token, now) {
      try {
        const { payload } = await jwtVerify(token, ({ kid }) => publicKeyOf(kid, now), {
          algorithms: [ALGORITHM],
          issuer: ISSUER,
          audience: AUDIENCE,
          typ: 'JWT',
          currentDate: now,
          requiredClaims: ['sub', 'user_id', 'iat', 'exp', 'jti'],
        });
        const { user_id: userId, sub, jti, exp } = payload;
        if (!Number.isSafeInteger(userId) || sub !== String(userId)) throw unauthorized();
        return { userId: userId as number, sessionId: jti!, expiresAt: new Date(exp! * 1000) };
      } catch (error) {
        // Other errors, such as a database outage, do not make the token invalid.
        if (error instanceof errors.JOSEError) throw unauthorized(error);
        throw error;
      }
    },

    rotate,
  };
}

/** Lets users recognise their sessions. */
export function sessionClientOf(request: FastifyRequest): SessionClient {
  const userAgent = request.headers['user-agent']?.slice(0, MAX_USER_AGENT_LENGTH) || null;
  return { userAgent, address: addressOf(request) };
}

const UNKNOWN_CLIENT: SessionClient = { userAgent: null, address: null };
const MAX_USER_AGENT_LENGTH = 300;

function unauthorized(cause?: unknown): TandemError {
  return new TandemError('UNAUTHORIZED', 'The session token is invalid or has expired. Log in again.', { cause });
}

/** Rounds down, because tokens use whole seconds. */
function lastWholeSecond(now: Date, afterMs: number): Date {
  return new Date(Math.floor((now.getTime() + afterMs) / 1000) * 1000);
}
