import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { ChatDesk } from '../actors/chat/chat-desk.ts';
import type { Dialer } from '../actors/dialer.ts';
import type { DocumentDesk } from '../actors/documents/document-desk.ts';
import type { JudgeDesk } from '../actors/judge/judge-desk.ts';
import type { LiveCalls } from '../actors/live/live-calls.ts';
import type { MemoryDesk } from '../actors/memory/memory-desk.ts';
import type { TextEmbedding } from '../actors/memory/text-embedding.ts';
import type { NumberVerifier } from '../actors/number-verifier.ts';
import type { Metrics } from '../actors/observability/metrics.ts';
import type { Readiness } from '../actors/observability/readiness.ts';
import type { SystemHealth } from '../actors/observability/system-health.ts';
import type { Tracing } from '../actors/observability/tracing.ts';
import type { PhoneDesk } from '../actors/phones/phone-desk.ts';
import type { Eraser } from '../actors/privacy/eraser.ts';
import type { RecordingLibrary } from '../actors/recordings/recording-library.ts';
import type { LiveStt } from '../actors/stt/live-stt.ts';
import type { Transcriber } from '../actors/stt/transcriber.ts';
import type { TrunkProber } from '../actors/trunk-prober.ts';
import type { TrunkTargets } from '../actors/trunk-targets.ts';
import type { TtsDesk } from '../actors/tts/tts-desk.ts';
import type { VoiceDesk } from '../actors/voices/voice-desk.ts';
import type { WebhookDesk } from '../actors/webhooks/webhook-desk.ts';
import type { LanguageModels } from '../language/llm.ts';
import type { Sql } from '../storage/database.ts';
import type { Limits } from '../storage/limits/limits.ts';
import type { ObjectStore } from '../storage/objects.ts';
import type { CallingLimits } from '../storage/queries/calling-rules.ts';
import type { Quotas } from '../storage/queries/quotas.ts';
import type { SecretBox } from '../storage/secrets.ts';
import type { ApiKeyLookups } from './auth.ts';
import type { MetricsAccess } from './metrics-access.ts';
import type { Revocations } from './revocations.ts';
import type { NumberPlan } from './schemas/phone-number.ts';
import type { SessionTokens } from './session-tokens.ts';

export type HttpApp = FastifyInstance<Server, IncomingMessage, ServerResponse, FastifyBaseLogger, TypeBoxTypeProvider>;

export type Registration = 'closed' | 'invite' | 'open';

export interface HttpContext {
  sql: Sql;
  dialer: Dialer;
  /** Live news about calls. */
  liveCalls: LiveCalls;
  phones: PhoneDesk;
  numberVerifier: NumberVerifier;
  readiness: Readiness;
  systemHealth: SystemHealth;
  metrics: Metrics;
  metricsAccess: MetricsAccess;
  /** Null: no traces. */
  tracing: Tracing | null;
  webhooks: WebhookDesk;
  speech: TtsDesk;
  voices: VoiceDesk;
  judge: JudgeDesk;
  memory: MemoryDesk & TextEmbedding;
  documents: DocumentDesk;
  transcriber: Transcriber;
  liveStt: LiveStt;
  chat: ChatDesk;
  models: LanguageModels;
  objects: ObjectStore;
  /** Recordings in several formats. */
  recordings: RecordingLibrary;
  eraser: Eraser;
  trunkTargets: TrunkTargets;
  /** Checks whether trunks respond. */
  trunkProber: TrunkProber;
  /** Limits of the operator for the calls of every workspace. */
  callingLimits: CallingLimits;
  quotas: Quotas;
  secrets: SecretBox;
  limits: Limits;
  apiKeys: ApiKeyLookups;
  sessionTokens: SessionTokens;
  revocations: Revocations;
  urlSigningSecret: Buffer;
  /** As `urlSigningSecret`, of earlier master keys: links signed with them are still valid. */
  previousUrlSecrets: readonly Buffer[];
  /**
   * Public base URL without trailing slash. Null: the host forwarded by a trusted proxy, or the address that the client
   * connected to.
   */
  publicUrl: string | null;
  /** Addresses, networks, `loopback` or `uniquelocal`. Their X-Forwarded headers are used. */
  trustedProxies: readonly string[];
  /** Secret of the Stripe webhook endpoint. Null disables Stripe payments. */
  stripeWebhookSecret: string | null;
  hasLanguageModel: boolean;
  /** Folder of the built console. It may not exist. */
  consoleFolder: string;
  /** Origin of presigned object URLs. Null: this server. */
  objectOrigin: string | null;
  registration: Registration;
  /** Countries whose numbers may be called. */
  numberPlan: NumberPlan;
  logger: Logger;
  now: () => Date;
  /** Interval of heartbeats on idle event streams. */
  heartbeatMs: number;
  /** Disconnects a client that does not read its stream for this long. */
  stallTimeoutMs: number;
  /** Origins whose pages may call the API; `*` for all. */
  corsOrigins: readonly string[];
  /** Aborted when the server closes, which ends all streams. */
  closing: AbortSignal;
}

/** Secrets whose links and tokens are valid. A node with an earlier master key may have signed them. */
export function linkSecrets({
  urlSigningSecret,
  previousUrlSecrets,
}: Pick<HttpContext, 'urlSigningSecret' | 'previousUrlSecrets'>): Buffer[] {
  return [urlSigningSecret, ...previousUrlSecrets];
}
