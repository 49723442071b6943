import type { LimitSettings, Limits } from '../storage/limits/limits.ts';
import type { HttpContext } from './context.ts';
import type { ThrottleSettings } from './login-throttle.ts';
import type { SttSocketTimes } from './websocket/stt-sockets.ts';

export interface HttpServerOptions
  extends Pick<
    HttpContext,
    | 'sql'
    | 'dialer'
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
    | 'secrets'
    | 'urlSigningSecret'
    | 'logger'
  > {
  publicUrl?: string | null;
  /** Default: null. */
  stripeWebhookSecret?: string | null;
  /** Default: the system's clock. */
  now?: () => Date;
  /** Default: none. */
  corsOrigins?: readonly string[];
  /** Addresses, networks, `loopback` or `uniquelocal`. Default: loopback, where the usual reverse proxy stands. */
  trustedProxies?: readonly string[];
  /** Default 15 000. */
  heartbeatMs?: number;
  /** Default 120 000. */
  listenerPatienceMs?: number;
  /** Default: limits of this process alone, which `rateLimits` changes. */
  limits?: Limits;
  rateLimits?: LimitSettings;
  /** Default 60 000; uploads have longer. */
  bodyTimeoutMs?: number;
  /** Of the sockets of live transcription. */
  sttTimes?: SttSocketTimes;
  /** Of logins and new accounts. */
  throttle?: ThrottleSettings;
}
