import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { ChatDesk } from '../actors/chat/chat-desk.ts';
import type { Dialer } from '../actors/dialer.ts';
import type { DocumentDesk } from '../actors/documents/document-desk.ts';
import type { JudgeDesk } from '../actors/judge/judge-desk.ts';
import type { MemoryDesk } from '../actors/memory/memory-desk.ts';
import type { LiveStt } from '../actors/stt/live-stt.ts';
import type { Transcriber } from '../actors/stt/transcriber.ts';
import type { TtsDesk } from '../actors/tts/tts-desk.ts';
import type { VoiceDesk } from '../actors/voices/voice-desk.ts';
import type { WebhookDesk } from '../actors/webhooks/webhook-desk.ts';
import type { LanguageModels } from '../language/llm.ts';
import type { Sql } from '../storage/database.ts';
import type { Limits } from '../storage/limits/limits.ts';
import type { ObjectStore } from '../storage/objects.ts';
import type { SecretBox } from '../storage/secrets.ts';
import type { LoginThrottle } from './login-throttle.ts';
import type { Revocations } from './revocations.ts';
import type { SessionTokens } from './session-tokens.ts';

/** What routes are added to: handlers are typed by their TypeBox schemas. */
export type HttpApp = FastifyInstance<Server, IncomingMessage, ServerResponse, FastifyBaseLogger, TypeBoxTypeProvider>;

/** What the routes work with. */
export interface HttpContext {
  sql: Sql;
  dialer: Dialer;
  webhooks: WebhookDesk;
  speech: TtsDesk;
  voices: VoiceDesk;
  judge: JudgeDesk;
  memory: MemoryDesk;
  documents: DocumentDesk;
  transcriber: Transcriber;
  /** Transcribes while somebody speaks. */
  liveStt: LiveStt;
  /** Asks language models. */
  chat: ChatDesk;
  /** Those there are. */
  models: LanguageModels;
  objects: ObjectStore;
  /** Seals trunk passwords. */
  secrets: SecretBox;
  /** Requests in a time, and slots for work under way. */
  limits: Limits;
  /** Of people who logged in. */
  sessionTokens: SessionTokens;
  loginThrottle: LoginThrottle;
  /** Ends what stays open once its credentials are gone. */
  revocations: Revocations;
  /** Signs playback URLs. */
  urlSigningSecret: Buffer;
  /** Where clients reach this server, without a slash at the end; the request's own host when null. */
  publicUrl: string | null;
  /** Of Stripe's endpoint for this server; null: no payments by Stripe. */
  stripeWebhookSecret: string | null;
  logger: Logger;
  now: () => Date;
  /** How often an idle event stream says that it is alive. */
  heartbeatMs: number;
  /** A client that takes nothing of its stream for so long is given up. */
  listenerPatienceMs: number;
  /** Web sites whose pages may use the API; `*` for all. */
  corsOrigins: readonly string[];
  /** Aborted when the server closes: streams end. */
  closing: AbortSignal;
}
