import { SupervisedThread } from '../../runtime/supervised-thread.ts';
import type { WireMessage } from '../trace/wire-message.ts';
import type { SipTimers } from './sip-timers.ts';
import type { DroppedMessages } from './transport/source-limits.ts';
import type { TlsSettings } from './transport/tls-security.ts';
import type { SipServerThread } from './worker-protocol.ts';

export interface EmbeddedSipServerOptions {
  /** Address that the SIP sockets bind to. */
  sipHost: string;
  /** 0 for any; UDP and TCP use the same. */
  sipPort: number;
  transports: readonly ('udp' | 'tcp')[];
  /** Default: no TLS. With it, requests may go over TLS; a listener is opened if it has a certificate. */
  tls?: TlsSettings;
  /** Address in Via and Contact; default `sipHost`, or the first external address for a wildcard. */
  advertisedHost?: string;
  /** Secret for drachtio clients on the control port. Use a random one. */
  secret: string;
  /** Aborting is the same as `close()`. */
  signal?: AbortSignal;
  /** Called when the server's thread has ended: null after `close()`, else the error. */
  onExit?: (error: Error | null) => void;
  /** Called when one message made the server throw and was dropped. Log it and report a bug. */
  onFault?: (error: Error) => void;
  /** Receives the messages of calls, in batches. Default: messages are not traced. */
  onMessages?: (messages: readonly WireMessage[]) => void;
  /**
   * Called when a TLS peer did not prove its name or aborted the handshake. `reason` is a code of Node or OpenSSL, such as `CERT_HAS_EXPIRED`.
   */
  onUntrusted?: (name: string, reason: string) => void;
  /** Sustained messages per second of each source address, with bursts of twice as many. Default 500. */
  messagesPerSecond?: number;
  /** Reports messages dropped in the last ten seconds, because their sources exceeded the limit. */
  onLimited?: (dropped: DroppedMessages) => void;
  /** For tests; the defaults are those of RFC 3261. */
  timers?: Partial<SipTimers>;
}

export interface EmbeddedSipServer {
  readonly controlHost: '127.0.0.1';
  readonly controlPort: number;
  readonly sipHost: string;
  readonly sipPort: number;
  /** Null: no TLS listener. */
  readonly tlsPort: number | null;
  /** Ends all calls, closes all sockets and ends the thread. Idempotent. */
  close(): Promise<void>;
  /** Counts of transactions, dialogs, connections, dropped messages; null once the thread has ended. */
  dump(): Promise<unknown>;
}

/**
 * Starts a SIP server (RFC 3261 over UDP, TCP and TLS) in its own thread. A stock drachtio-srf controls it over
 * `controlHost:controlPort`. It dies with the process.
 *
 * @throws Error with the `code` of a failed bind, such as `EADDRINUSE`; the abort reason if `signal` is aborted.
 */
export async function startEmbeddedSipServer(options: EmbeddedSipServerOptions): Promise<EmbeddedSipServer> {
  const { signal, onExit, onFault, onMessages, onUntrusted, onLimited, ...data } = options;
  signal?.throwIfAborted();
  const thread = new SupervisedThread<SipServerThread>({
    entry: new URL('./worker.ts', import.meta.url),
    data: { ...data, isTraced: onMessages !== undefined },
    name: "the SIP server's thread",
    onReport: (report) => {
      if (report.type === 'fault') onFault?.(report.error);
      else if (report.type === 'messages') onMessages?.(report.messages);
      else if (report.type === 'limited') onLimited?.(report.dropped);
      else onUntrusted?.(report.name, report.reason);
    },
    drainWithinMs: CLOSE_WITHIN_MS,
  });
  let closing: Promise<void> | null = null;
  let failure: Error | null = null;
  const close = (): Promise<void> => {
    closing ??= thread.close();
    return closing;
  };
  const abort = (): void => void close();
  signal?.addEventListener('abort', abort);
  void thread.ended.then((error) => {
    signal?.removeEventListener('abort', abort);
    onExit?.(closing === null ? (failure ?? error) : null);
  });

  const ready = await thread.ready.catch((error: unknown) => {
    throw signal?.aborted ? signal.reason : error;
  });
  if ('failure' in ready) {
    const { code, message } = ready.failure;
    failure = Object.assign(new Error(message), { code });
    await thread.terminate();
    throw failure;
  }
  return {
    controlHost: '127.0.0.1',
    controlPort: ready.controlPort,
    sipHost: options.sipHost,
    sipPort: ready.sipPort,
    tlsPort: ready.tlsPort,
    close,
    dump: () => thread.dump().catch(() => null),
  };
}

const CLOSE_WITHIN_MS = 3000;
