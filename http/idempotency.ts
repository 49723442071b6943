import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ERROR_CATALOGUE, type ErrorCode, TandemError } from '../machines/errors.ts';
import { canonicalJson } from '../runtime/canonical-json.ts';
import {
  ATTEMPT_LEASE_MS,
  type Attempt,
  claimIdempotentRequest,
  completeIdempotentRequest,
  forgetIdempotentRequest,
  releaseIdempotentRequest,
  renewIdempotentRequests,
  type StoredResponse,
  sweepIdempotentRequests,
} from '../storage/queries/idempotent-requests.ts';
import { callerOf } from './auth.ts';
import type { HttpContext } from './context.ts';
import { IDEMPOTENCY_KEY, MAX_KEY_LENGTH, markIdempotent } from './idempotent-operations.ts';
import { uploadDigests } from './upload-digests.ts';
import { validationFailed } from './validation.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Accepts an Idempotency-Key. Set by `markIdempotent`. */
    idempotent?: boolean;
  }
  interface FastifyRequest {
    /**
     * With an Idempotency-Key: an id that is the same in every attempt of this request. Use it to name created
     * resources, so that an attempt after a crash finds them.
     */
    idempotentId: string | null;
  }
}

/** Larger responses are not stored. */
const MAX_STORED_BYTES = 2 ** 20;
const RETRY_AFTER_S = 2;
const SWEEP_INTERVAL_MS = 15 * 60_000;

/** Headers of the stored response, as opposed to those of each request. */
const KEPT_HEADERS = [
  'content-type',
  'content-disposition',
  'location',
  'x-credit-balance',
  'x-credit-charged',
  'x-billing-tx',
];

interface Running extends Attempt {
  fingerprint: string;
  isSettled: boolean;
}

/**
 * Runs POST requests with an Idempotency-Key once (draft-ietf-httpapi-idempotency-key-header). The first response is
 * stored encrypted, and repetitions get it. A key belongs to a workspace, an API key or user, and an operation. It is
 * claimed after authentication and validation, so a request rejected there does not use it. Responses with 400, 401,
 * 429, 5xx or a retryable error do not use it either. A process renews the claims of its running requests. After a crash
 * they expire, and a repetition runs with the same `idempotentId`.
 */
export function acceptIdempotencyKeys(
  app: FastifyInstance,
  {
    sql,
    secrets,
    logger,
    leaseMs = ATTEMPT_LEASE_MS,
  }: Pick<HttpContext, 'sql' | 'secrets' | 'logger'> & { leaseMs?: number },
): void {
  const running = new Map<FastifyRequest, Running>();
  app.decorateRequest('idempotentId', null);
  app.addHook('onRoute', markIdempotent);

  app.addHook('preHandler', async (request, reply) => {
    const given = request.headers[IDEMPOTENCY_KEY];
    if (given === undefined || request.routeOptions.config.idempotent !== true) return;
    const key = readKey(given);
    const { userId, apiKeyId } = callerOf(request);
    const workspaceId = request.principal?.workspaceId ?? null;
    const fingerprint = fingerprintOf(request);
    const claim = await claimIdempotentRequest(
      sql,
      {
        ...{ workspaceId, key, fingerprint },
        owner: `${workspaceId ?? ''} ${apiKeyId === null ? `user ${userId}` : `key ${apiKeyId}`}`,
        operation: `${request.method} ${request.routeOptions.url}`,
      },
      { secrets, leaseMs },
    );
    switch (claim.outcome) {
      case 'run':
        request.idempotentId = claim.id;
        begin(request, reply, { id: claim.id, attempt: claim.attempt, fingerprint, isSettled: false });
        return;
      case 'done':
        return replay(reply, claim.response);
      case 'running':
        throw new TandemError(
          'IDEMPOTENCY_IN_PROGRESS',
          'A request with this Idempotency-Key is in progress. Repeat it later.',
          { retryAfterS: RETRY_AFTER_S },
        );
      case 'reused':
        throw new TandemError(
          'IDEMPOTENCY_KEY_REUSED',
          'This Idempotency-Key was used with a different request. Use a new key for each request.',
        );
      case 'unreadable':
        throw new TandemError(
          'IDEMPOTENCY_NOT_REPLAYABLE',
          'The response stored for this Idempotency-Key cannot be decrypted, because TANDEM_SECRET_KEY has changed. Use a new key to run the request again.',
        );
    }
  });

  app.addHook('onSend', async (request, reply, payload) => {
    const current = running.get(request);
    if (current === undefined) return payload;
    const body = textOf(payload);
    // A streamed request ends with its stream.
    if (body === undefined) {
      reply.raw.once('close', () => void settle(request, responseOf(request, reply, null)));
      if (reply.raw.closed) await settle(request, responseOf(request, reply, null));
    } else if (reply.statusCode === 400) await settle(request, 'forget');
    else await settle(request, isFinal(reply, body) ? responseOf(request, reply, body) : 'release');
    return payload;
  });

  const renewing = setInterval(() => {
    const attempts = [...running.values()].map(({ attempt }) => attempt);
    if (attempts.length === 0) return;
    renewIdempotentRequests(sql, attempts, leaseMs).catch((error) =>
      logger.warn({ err: error }, 'renewing idempotency keys failed'),
    );
  }, leaseMs / 3).unref();
  const sweeping = setInterval(() => {
    sweepIdempotentRequests(sql).catch((error) => logger.warn({ err: error }, 'sweeping idempotency keys failed'));
  }, SWEEP_INTERVAL_MS).unref();
  app.addHook('onClose', async () => {
    clearInterval(renewing);
    clearInterval(sweeping);
  });

  function begin(request: FastifyRequest, reply: FastifyReply, attempt: Running): void {
    running.set(request, attempt);
    // Routes hijack after a client has left; then nothing is sent.
    const { hijack } = reply;
    reply.hijack = () => {
      void settle(request, 'release');
      return hijack.call(reply);
    };
  }

  /**
   * Stores the response. `release` lets the same request run again, `forget` any request. After a failure the claim
   * expires.
   */
  async function settle(request: FastifyRequest, response: StoredResponse | 'release' | 'forget'): Promise<void> {
    const current = running.get(request);
    if (current === undefined || current.isSettled) return;
    current.isSettled = true;
    try {
      if (response === 'release') await releaseIdempotentRequest(sql, current);
      else if (response === 'forget') await forgetIdempotentRequest(sql, current);
      else if (!(await completeIdempotentRequest(sql, { ...current, response }, { secrets }))) {
        logger.warn({ requestId: request.id }, 'another attempt took over an idempotency key');
      }
    } catch (error) {
      logger.error({ requestId: request.id, err: error }, 'storing the response for an idempotency key failed');
    } finally {
      running.delete(request);
    }
  }
}

function replay(reply: FastifyReply, { status, headers, body, requestId }: StoredResponse): FastifyReply {
  if (body === null) {
    throw new TandemError(
      'IDEMPOTENCY_NOT_REPLAYABLE',
      'The request with this Idempotency-Key was carried out, but its response was a stream or too large to keep. Use a new key to run it again.',
      { details: { status, request_id: requestId } },
    );
  }
  return reply
    .code(status)
    .headers({ ...headers, 'idempotency-replayed': 'true' })
    .send(body);
}

/** Requires printable ASCII. @throws TandemError VALIDATION_FAILED */
function readKey(given: string | string[]): string {
  if (typeof given === 'string' && given.length <= MAX_KEY_LENGTH && /^[!-~](?:[ -~]*[!-~])?$/.test(given)) {
    return given;
  }
  const message = `must be 1 to ${MAX_KEY_LENGTH} printable ASCII characters`;
  throw validationFailed([{ path: 'Idempotency-Key', message }]);
}

/** Digest of path, query and body, in any order of fields. */
function fingerprintOf(request: FastifyRequest): string {
  const { workspace_id: _, ...query } = request.query as Record<string, unknown>;
  const parts = [request.params, query, request.body ?? null, uploadDigests(request)];
  return createHash('sha256').update(canonicalJson(parts)).digest('base64');
}

/** Undefined for streams. */
function textOf(payload: unknown): string | undefined {
  if (payload === null || payload === undefined) return '';
  return typeof payload === 'string' ? payload : undefined;
}

/** Whether repeating the request would give the same response. */
function isFinal({ statusCode }: FastifyReply, body: string): boolean {
  // 401: the credentials ended meanwhile. A user who has logged in again may repeat it.
  if (statusCode >= 500 || [401, 429, 499].includes(statusCode)) return false;
  if (statusCode < 400) return true;
  const { code, error } = JSON.parse(body) as { code?: ErrorCode; error?: { code?: ErrorCode } };
  const known = code ?? error?.code;
  return known === undefined || !ERROR_CATALOGUE[known].retryable;
}

function responseOf({ id }: FastifyRequest, reply: FastifyReply, body: string | null): StoredResponse {
  const headers = KEPT_HEADERS.flatMap((name) => {
    const value = reply.getHeader(name);
    return value === undefined ? [] : [[name, String(value)] as const];
  });
  const isKept = body !== null && Buffer.byteLength(body) <= MAX_STORED_BYTES;
  return { status: reply.statusCode, headers: Object.fromEntries(headers), body: isKept ? body : null, requestId: id };
}
