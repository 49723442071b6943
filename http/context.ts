import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { ChatDesk } from '../actors/chat/chat-desk.ts';
import type { Dialer } from '../actors/dialer.ts';
import type { DocumentDesk } from '../actors/documents/document-desk.ts';
import type { JudgeDesk } from '../actors/judge/judge-desk.ts';
import type { MemoryDesk } from '../actors/memory/memory-desk.ts';
import type { TextEmbedding } from '../actors/memory/text-embedding.ts';
import type { NumberVerifier } from '../actors/number-verifier.ts';
import type { Metrics } from '../actors/observability/metrics.ts';
import type { Readiness } from '../actors/observability/readiness.ts';
import type { Tracing } from '../actors/observability/tracing.ts';
import type { PhoneDesk, PhoneHolder } from '../actors/phones/phone-desk.ts';
import type { Eraser } from '../actors/privacy/eraser.ts';
import type { RecordingLibrary } from '../actors/recordings/recording-library.ts';
import type { LiveStt } from '../actors/stt/live-stt.ts';
import type { Transcriber } from '../actors/stt/transcriber.ts';
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
import type { Principal } from './auth.ts';
import type { MetricsAccess } from './metrics-access.ts';
import type { Revocations } from './revocations.ts';
import type { NumberPlan } from './schemas/phone-number.ts';
import type { SessionTokens } from './session-tokens.ts';

/** The Fastify instance that routes are added to. TypeBox schemas type the handlers. */
export type HttpApp = FastifyInstance<Server, IncomingMessage, ServerResponse, FastifyBaseLogger, TypeBoxTypeProvider>;

export type Registration = 'closed' | 'invite' | 'open';

/** Dependencies of the routes. */
export interface HttpContext {
  sql: Sql;
  dialer: Dialer;
  /** Phones in browsers. */
  phones: PhoneDesk;
  /** Verifies by a call that a trunk receives the calls to a number. */
  numberVerifier: NumberVerifier;
  /** Who minted the tokens of the phones. */
  phonePrincipals: WeakMap<PhoneHolder, Principal>;
  /** Whether this process can do its work. */
  readiness: Readiness;
  metrics: Metrics;
  metricsAccess: MetricsAccess;
  /** Null: nothing is traced. */
  tracing: Tracing | null;
  webhooks: WebhookDesk;
  speech: TtsDesk;
  voices: VoiceDesk;
  judge: JudgeDesk;
  memory: MemoryDesk & TextEmbedding;
  documents: DocumentDesk;
  transcriber: Transcriber;
  /** Live transcription. */
  liveStt: LiveStt;
  /** Chat completions. */
  chat: ChatDesk;
  /** Available language models. */
  models: LanguageModels;
  objects: ObjectStore;
  /** Plays recordings, in several formats. */
  recordings: RecordingLibrary;
  /** Deletes what was requested, in the background. */
  eraser: Eraser;
  /** Checks where trunks lead. */
  trunkTargets: TrunkTargets;
  /** Limits of the operator for the calls of every workspace. */
  callingLimits: CallingLimits;
  /** Upper limits of what users and workspaces can create. */
  quotas: Quotas;
  /** Encrypts trunk passwords. */
  secrets: SecretBox;
  /** Rate limits, login throttling and concurrency slots. */
  limits: Limits;
  /** Tokens of logged-in users. */
  sessionTokens: SessionTokens;
  /** Closes open connections when their credentials are revoked. */
  revocations: Revocations;
  /** Signs playback URLs. */
  urlSigningSecret: Buffer;
  /**
   * Public base URL without a slash at the end. Null: the host that a trusted proxy forwards, or the address that the
   * client is connected to.
   */
  publicUrl: string | null;
  /** Addresses, networks, `loopback` or `uniquelocal`, whose X-Forwarded headers are used. */
  trustedProxies: readonly string[];
  /** Secret of the Stripe webhook endpoint. Null disables Stripe payments. */
  stripeWebhookSecret: string | null;
  /** Whether people may register: not at all, with an invitation, or freely. */
  registration: Registration;
  /** Countries whose numbers may be called. */
  numberPlan: NumberPlan;
  logger: Logger;
  now: () => Date;
  /** Interval of heartbeats on idle event streams. */
  heartbeatMs: number;
  /** A client that does not read its stream for this long is disconnected. */
  stallTimeoutMs: number;
  /** Origins whose pages may call the API; `*` for all. */
  corsOrigins: readonly string[];
  /** Aborted when the server closes, which ends all streams. */
  closing: AbortSignal;
}
