import type { LimitSettings, Limits } from '../storage/limits/limits.ts';
import type { HttpContext } from './context.ts';
import type { SttSocketTimes } from './websocket/stt-sockets.ts';
import type { TtsSocketTimes } from './websocket/tts-connection.ts';

export interface HttpServerOptions
  extends Pick<
    HttpContext,
    | 'sql'
    | 'dialer'
    | 'liveCalls'
    | 'phones'
    | 'numberVerifier'
    | 'readiness'
    | 'systemHealth'
    | 'metrics'
    | 'webhooks'
    | 'speech'
    | 'voices'
    | 'judge'
    | 'memory'
    | 'documents'
    | 'transcriber'
    | 'liveStt'
    | 'chat'
    | 'models'
    | 'objects'
    | 'recordings'
    | 'eraser'
    | 'secrets'
    | 'trunkTargets'
    | 'trunkProber'
    | 'urlSigningSecret'
    | 'logger'
  > {
  publicUrl?: string | null;
  /** Default: clients on this machine, without a token. */
  metricsAccess?: HttpContext['metricsAccess'];
  /** Default: null. */
  tracing?: HttpContext['tracing'];
  /** Default: null. */
  stripeWebhookSecret?: string | null;
  /** Default: none. */
  previousUrlSecrets?: HttpContext['previousUrlSecrets'];
  /** Default: false. */
  hasLanguageModel?: boolean;
  /** Default: `console/dist`. */
  consoleFolder?: string;
  /** Default: null. */
  objectOrigin?: string | null;
  /** Default: none. */
  callingLimits?: HttpContext['callingLimits'];
  /** Default: 10 workspaces per user, 20 trunks and 1000 numbers per workspace. */
  quotas?: HttpContext['quotas'];
  /** Default: closed. */
  registration?: HttpContext['registration'];
  /** Default: India. */
  numberPlan?: HttpContext['numberPlan'];
  /** Default: the system clock. */
  now?: () => Date;
  /** Default: none. */
  corsOrigins?: readonly string[];
  /** Addresses, networks, `loopback` or `uniquelocal`. Default: loopback, for a reverse proxy on the same host. */
  trustedProxies?: readonly string[];
  /** Default 15 000. */
  heartbeatMs?: number;
  /** Default 120 000. */
  stallTimeoutMs?: number;
  /** Default: limits in this process, from `rateLimits`. */
  limits?: Limits;
  rateLimits?: LimitSettings;
  /** Default 60 000. Uploads have a longer timeout. */
  bodyTimeoutMs?: number;
  sttTimes?: SttSocketTimes;
  ttsTimes?: TtsSocketTimes;
}
