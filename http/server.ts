import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import swagger from '@fastify/swagger';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { type ErrorCode, TandemError } from '../machines/errors.ts';
import { createLimitsInProcess, type RateLimitState } from '../storage/limits/limits.ts';
import { NO_CALLING_LIMITS } from '../storage/queries/calling-rules.ts';
import { DEFAULT_QUOTAS } from '../storage/queries/quotas.ts';
import { admitRequests } from './admission.ts';
import { trackAllowedMethods } from './allowed-methods.ts';
import { createApiKeyLookups } from './auth.ts';
import { limitBodyTime } from './body-deadline.ts';
import { refuseBrokenRequests } from './broken-requests.ts';
import { addressOf } from './client-address.ts';
import { compressResponses } from './compression.ts';
import type { HttpContext } from './context.ts';
import { allowOrigins } from './cors.ts';
import { hasOneHost } from './host-header.ts';
import { acceptIdempotencyKeys } from './idempotency.ts';
import { acceptJsonBodies } from './json-body.ts';
import { refuseUnknownParameters } from './known-query.ts';
import { LOOPBACK_ONLY } from './metrics-access.ts';
import { observeRequests, routeOf } from './observed-requests.ts';
import { isOpenaiPath, openaiErrorBody } from './openai-errors.ts';
import { OPENAPI_OPTIONS, shareSchemas } from './openapi.ts';
import { rateLimited, rateLimitHeaders } from './rate-limits.ts';
import { errorBody, retryAfterOf, toRefusal } from './refusals.ts';
import { createRevocations } from './revocations.ts';
import { auditRoutes } from './routes/audit.ts';
import { authRoutes } from './routes/auth.ts';
import { billingRoutes } from './routes/billing.ts';
import { callStatisticsRoute } from './routes/call-statistics.ts';
import { callerIdRoutes } from './routes/caller-id.ts';
import { callingRulesRoutes } from './routes/calling-rules.ts';
import { chatRoutes } from './routes/chat.ts';
import { click2callRoutes } from './routes/click2call.ts';
import { consoleRoutes } from './routes/console.ts';
import { developerKeyRoutes } from './routes/developer-keys.ts';
import { doNotCallRoutes } from './routes/do-not-call.ts';
import { docsRoutes } from './routes/docs.ts';
import { healthRoutes } from './routes/health.ts';
import { invitationRoutes } from './routes/invitations.ts';
import { judgeRoutes } from './routes/judge.ts';
import { judgeRubricRoutes } from './routes/judge-rubrics.ts';
import { liveStreamRoute } from './routes/live-stream.ts';
import { loginLinkRoutes } from './routes/login-links.ts';
import { mediaRoutes } from './routes/media.ts';
import { memberRoutes } from './routes/members.ts';
import { memoryRoutes } from './routes/memory.ts';
import { memoryCollectionRoutes } from './routes/memory-collections.ts';
import { memoryDocumentRoutes } from './routes/memory-documents.ts';
import { modelRoutes } from './routes/models.ts';
import { numberVerificationRoutes } from './routes/number-verification.ts';
import { numberRoutes } from './routes/numbers.ts';
import { openaiEmbeddingRoutes } from './routes/openai-embeddings.ts';
import { openaiSpeechRoutes } from './routes/openai-speech.ts';
import { openaiTranscriptionRoutes } from './routes/openai-transcriptions.ts';
import { passwordResetRoutes } from './routes/password-reset.ts';
import { paymentRoutes } from './routes/payments.ts';
import { poolRoutes } from './routes/pool.ts';
import { priceRoutes } from './routes/prices.ts';
import { privacyRoutes } from './routes/privacy.ts';
import { recordingSettingsRoutes } from './routes/recording-settings.ts';
import { recordingRoutes } from './routes/recordings.ts';
import { sttRoutes } from './routes/stt.ts';
import { sttSocketRoute } from './routes/stt-socket.ts';
import { systemHealthRoutes } from './routes/system-health.ts';
import { trunkRoutes } from './routes/trunks.ts';
import { ttsRoutes } from './routes/tts.ts';
import { ttsSocketRoute } from './routes/tts-socket.ts';
import { unsubscribeRoutes } from './routes/unsubscribe.ts';
import { userRoutes } from './routes/user.ts';
import { userAccountRoutes } from './routes/user-account.ts';
import { userSessionRoutes } from './routes/user-sessions.ts';
import { voiceRoutes } from './routes/voices.ts';
import { webhookRoutes } from './routes/webhooks.ts';
import { workspaceRoutes } from './routes/workspaces.ts';
import { createRunningRequests } from './running-requests.ts';
import { securityHeaders } from './security-headers.ts';
import type { HttpServerOptions } from './server-options.ts';
import { createSessionTokens } from './session-tokens.ts';
import { compileValidator } from './validation.ts';
import { createPhoneSockets } from './websocket/phone-sockets.ts';
import { createSttSockets } from './websocket/stt-sockets.ts';
import { createTtsSockets } from './websocket/tts-sockets.ts';

/** Output of `npm run console:build`. */
const CONSOLE_FOLDER = join(import.meta.dirname, '../console/dist');
const BODY_LIMIT_BYTES = 64 * 1024;
const HEADER_LIMIT_BYTES = 16 * 1024;
const BODY_TIMEOUT_MS = 60_000;
const UPLOAD_TIMEOUT_MS = 600_000;

/**
 * Creates the HTTP server. Every response, also for errors, has a request id, rate limit headers and the envelope.
 * Requests are checked in this order: credentials, rate limit, role, body (type, size, JSON), parameters, route.
 */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const closing = new AbortController();
  const context: HttpContext = {
    publicUrl: null,
    trustedProxies: ['loopback'],
    metricsAccess: LOOPBACK_ONLY,
    tracing: null,
    stripeWebhookSecret: null,
    previousUrlSecrets: [],
    hasLanguageModel: false,
    consoleFolder: CONSOLE_FOLDER,
    objectOrigin: null,
    callingLimits: NO_CALLING_LIMITS,
    quotas: DEFAULT_QUOTAS,
    registration: 'closed',
    numberPlan: ['IN'],
    now: () => new Date(),
    heartbeatMs: 15_000,
    stallTimeoutMs: 120_000,
    corsOrigins: [],
    limits: createLimitsInProcess(options.rateLimits),
    apiKeys: createApiKeyLookups({ now: () => new Date(), ...options }),
    sessionTokens: createSessionTokens(options),
    revocations: createRevocations(),
    ...options,
    closing: closing.signal,
  };
  const { limits, objectOrigin } = context;
  const running = createRunningRequests();
  const isHttps = context.publicUrl?.startsWith('https:') ?? false;
  const brokenRequests = refuseBrokenRequests({ limits, isHttps, isAnswering: running.isAnswering });
  const trustedProxies = [...context.trustedProxies];
  const sockets = [
    createSttSockets({ ...brokenRequests, context, trustedProxies, times: options.sttTimes ?? {} }),
    createTtsSockets({ ...brokenRequests, context, trustedProxies, times: options.ttsTimes ?? {} }),
    createPhoneSockets({ ...brokenRequests, context, trustedProxies }),
  ];

  const app = Fastify({
    // Fastify would log URLs, which contain phone numbers. `logRequest` logs routes.
    logger: false,
    genReqId,
    bodyLimit: BODY_LIMIT_BYTES,
    // X-Forwarded-For is trusted only from these.
    trustProxy: trustedProxies,
    routerOptions: { maxParamLength: 1024 },
    requestTimeout: UPLOAD_TIMEOUT_MS,
    // Node would reject a missing Host header itself, without envelope and headers. `hasOneHost` checks it.
    http: {
      maxHeaderSize: HEADER_LIMIT_BYTES,
      headersTimeout: 20_000,
      requireHostHeader: false,
      shouldUpgradeCallback: (request) => sockets.some((each) => each.wants(request)),
    },
    return503OnClosing: false,
    // Closes kept-alive connections after `running.finish` has waited for running requests.
    forceCloseConnections: true,
    frameworkErrors: (error, request, reply) => void refuseEarly(error, request, reply),
    clientErrorHandler: (error, socket) => brokenRequests.onClientError(error, socket),
  }).withTypeProvider<TypeBoxTypeProvider>();

  // Ignore an unknown Expect header, which is allowed (RFC 9110 §10.1.1). Node would respond with 417.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  brokenRequests.refuseTunnels(app.server);
  app.server.on('upgrade', (request, socket, head) => {
    if (!hasOneHost(request)) brokenRequests.refuseHandshake(socket, ONE_HOST);
    else sockets.find((each) => each.wants(request))?.accept(request, socket, head);
  });
  app.setValidatorCompiler(compileValidator);
  // Response schemas are documentation only. Send bodies as the routes return them.
  app.setSerializerCompiler(() => JSON.stringify);
  acceptJsonBodies(app);
  const allowedMethods = trackAllowedMethods(app);
  app.addHook('onRequest', async (request, reply) => {
    running.track(reply.raw);
    setFixedHeaders(request, reply);
    if (!hasOneHost(request.raw)) {
      await refuseEarly(new TandemError('VALIDATION_FAILED', `${ONE_HOST}.`), request, reply);
      return reply;
    }
  });
  observeRequests(app, context);
  limitBodyTime(app, { bodyTimeoutMs: options.bodyTimeoutMs ?? BODY_TIMEOUT_MS });
  allowOrigins(app, context.corsOrigins);
  const refuseUnknown = (request: FastifyRequest, reply: FastifyReply): never => {
    const methods = allowedMethods(request.url);
    if (methods.length === 0) {
      throw new TandemError('NOT_FOUND', 'No such path. GET /openapi.json lists all operations.');
    }
    reply.header('allow', methods.join(', '));
    throw new TandemError('METHOD_NOT_ALLOWED', `This path only supports ${methods.join(', ')}.`);
  };
  // Its hook runs after the credentials are checked and before uploads are received.
  refuseUnknownParameters(app);
  admitRequests(app, {
    context,
    onFailure: (request, failure) => logFailure(request.id, failure),
  });
  acceptIdempotencyKeys(app, context);
  // After the hook that stores responses for repetitions.
  compressResponses(app);
  // Before reading the body: a parse error would hide that the path is unknown.
  app.addHook('onRequest', async (request, reply) => {
    if (request.is404) refuseUnknown(request, reply);
  });
  app.addHook('onSend', async (_request, reply) => {
    // A kept-alive connection would delay closing.
    if (closing.signal.aborted) reply.header('connection', 'close');
  });
  app.addHook('onResponse', async (request, reply) => logRequest(request, reply));
  app.addHook('preClose', async () => {
    closing.abort();
    await Promise.all([running.finish(), ...sockets.map((each) => each.close())]);
  });
  app.setErrorHandler((error, request, reply) => refuse(error, request, reply));
  app.setNotFoundHandler(refuseUnknown);

  shareSchemas(app);
  app.register(swagger, OPENAPI_OPTIONS);
  app.register(async (scope) => {
    const routes = scope.withTypeProvider<TypeBoxTypeProvider>();
    healthRoutes(routes, context);
    systemHealthRoutes(routes, context);
    click2callRoutes(routes, context);
    liveStreamRoute(routes, context);
    callStatisticsRoute(routes, context);
    recordingRoutes(routes, context);
    recordingSettingsRoutes(routes, context);
    mediaRoutes(routes, context);
    poolRoutes(routes, context);
    callerIdRoutes(routes, context);
    numberRoutes(routes, context);
    numberVerificationRoutes(routes, context);
    trunkRoutes(routes, context);
    callingRulesRoutes(routes, context);
    doNotCallRoutes(routes, context);
    privacyRoutes(routes, context);
    sttRoutes(routes, context);
    openaiTranscriptionRoutes(routes, context);
    sttSocketRoute(routes);
    ttsSocketRoute(routes);
    ttsRoutes(routes, context);
    openaiSpeechRoutes(routes, context);
    voiceRoutes(routes, context);
    judgeRoutes(routes, context);
    judgeRubricRoutes(routes, context);
    chatRoutes(routes, context);
    memoryRoutes(routes, context);
    openaiEmbeddingRoutes(routes, context);
    memoryCollectionRoutes(routes, context);
    memoryDocumentRoutes(routes, context);
    modelRoutes(routes, context);
    webhookRoutes(routes, context);
    billingRoutes(routes, context);
    priceRoutes(routes, context);
    paymentRoutes(routes, context);
    authRoutes(routes, context);
    loginLinkRoutes(routes, context);
    userRoutes(routes, context);
    userAccountRoutes(routes, context);
    userSessionRoutes(routes, context);
    passwordResetRoutes(routes, context);
    unsubscribeRoutes(routes, context);
    workspaceRoutes(routes, context);
    memberRoutes(routes, context);
    invitationRoutes(routes, context);
    developerKeyRoutes(routes, context);
    auditRoutes(routes, context);
    docsRoutes(routes);
    consoleRoutes(routes, context);
  });
  return app;

  function setFixedHeaders(request: FastifyRequest, reply: FastifyReply): void {
    const path = request.url.split('?', 1)[0]!;
    reply.header('x-request-id', request.id);
    reply.headers(securityHeaders({ isHttps: isHttps || request.protocol === 'https', path, objectOrigin }));
  }

  function refuse(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const refusal = cancelledUpload(request) ?? toRefusal(error, { bodyLimitBytes: request.routeOptions.bodyLimit });
    if (refusal.status >= 500 && !EXPECTED.includes(refusal.code)) logFailure(request.id, refusal);
    if (refusal.status === 401) reply.header('www-authenticate', 'Bearer');
    const retryAfterS = retryAfterOf(refusal);
    if (retryAfterS !== null) reply.header('retry-after', retryAfterS);
    const bodyOf = isOpenaiPath(request.url.split('?', 1)[0]!) ? openaiErrorBody : errorBody;
    return reply.code(refusal.status).send(bodyOf(refusal, request.id));
  }

  /** Null unless the client disconnected before sending the whole request. Any other error then follows from that. */
  function cancelledUpload({ id: requestId, raw }: FastifyRequest): TandemError | null {
    if (raw.complete || !raw.destroyed) return null;
    const cancelled = new TandemError('CLIENT_CANCELLED', 'The client closed the connection.');
    context.logger.info({ requestId, code: cancelled.code }, 'client disconnected while sending its request');
    return cancelled;
  }

  /** Handles errors before routing, which no hook sees. */
  async function refuseEarly(
    error: FastifyError | TandemError,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> {
    const state = await limits.consumeAddress(addressOf(request));
    setFixedHeaders(request, reply);
    setRateLimitHeaders(reply, state);
    refuse(state.exceeded ? rateLimited(state) : error, request, reply);
  }

  function logRequest(request: FastifyRequest, reply: FastifyReply): void {
    // Health checks are frequent and rarely interesting.
    const level = request.routeOptions.config?.unlimited ? 'debug' : 'info';
    context.logger[level](
      {
        requestId: request.id,
        method: request.method,
        route: routeOf(request),
        status: reply.statusCode,
        durationMs: Math.round(reply.elapsedTime),
        workspaceId: request.principal?.workspaceId ?? null,
        apiKeyId: request.principal?.apiKeyId ?? null,
      },
      'request completed',
    );
  }

  function logFailure(requestId: string, refusal: TandemError): void {
    const { cause } = refusal;
    const pii = { message: cause instanceof Error ? cause.message : refusal.message };
    context.logger.error({ requestId, code: refusal.code, err: cause ?? refusal, pii }, 'request failed');
  }
}

/** Expected errors with status 500 or above. */
const EXPECTED: readonly ErrorCode[] = ['SHUTTING_DOWN', 'NOT_READY'];

const ONE_HOST = 'The request must have exactly one Host header, with a host name or address';

/** Keeps the client's request id if it is safe in headers and logs and not a pasted credential. */
function genReqId(request: { headers: IncomingMessage['headers'] }): string {
  const given = request.headers['x-request-id'];
  const isSane = typeof given === 'string' && /^[A-Za-z0-9._:-]{1,128}$/.test(given) && !CREDENTIAL.test(given);
  return isSane ? given : randomUUID();
}

/** One of our keys, invitations, login links or secrets, a Stripe secret, or a JSON Web Token. Not an id like `task_7`. */
const CREDENTIAL = /(?<![a-z0-9])(?:sk_|inv_|link_|whsec_)|eyJ[A-Za-z0-9_-]+\.eyJ/i;

function setRateLimitHeaders(reply: FastifyReply, state: RateLimitState): void {
  reply.headers(rateLimitHeaders(state));
}
