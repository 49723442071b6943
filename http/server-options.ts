import type { LimitSettings, Limits } from '../storage/limits/limits.ts';
import type { HttpContext } from './context.ts';
import type { SttSocketTimes } from './websocket/stt-sockets.ts';
import type { TtsSocketTimes } from './websocket/tts-connection.ts';

export interface HttpServerOptions
  extends Pick<
    HttpContext,
    | 'sql'
    | 'dialer'
    | 'phones'
    | 'numberVerifier'
    | 'readiness'
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
  callingLimits?: HttpContext['callingLimits'];
  /** Default: 10 workspaces for a user, 20 trunks and 1000 numbers for a workspace. */
  quotas?: HttpContext['quotas'];
  /** Default: closed. */
  registration?: HttpContext['registration'];
  /** Default: India. */
  numberPlan?: HttpContext['numberPlan'];
  /** Default: the system's clock. */
  now?: () => Date;
  /** Default: none. */
  corsOrigins?: readonly string[];
  /** Addresses, networks, `loopback` or `uniquelocal`. Default: loopback, for a reverse proxy on the same host. */
  trustedProxies?: readonly string[];
  /** Default 15 000. */
  heartbeatMs?: number;
  /** Default 120 000. */
  stallTimeoutMs?: number;
  /** Default: limits in this process, configured by `rateLimits`. */
  limits?: Limits;
  rateLimits?: LimitSettings;
  /** Default 60 000. Uploads have a longer timeout. */
  bodyTimeoutMs?: number;
  /** Timeouts of live transcription sockets. */
  sttTimes?: SttSocketTimes;
  /** Timeouts of live synthesis sockets. */
  ttsTimes?: TtsSocketTimes;
}
