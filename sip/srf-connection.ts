import type { Socket } from 'node:net';
import Srf from 'drachtio-srf';
import { SipError } from './sip-error.ts';
import type { SrfClient, SrfHandler, SrfRequestOptions, SrfSentRequest, SrfWire } from './srf-types.ts';

export interface SrfConnectionOptions {
  host: string;
  port: number;
  secret: string;
  /** Until the server has accepted our secret. */
  connectTimeoutMs: number;
  /** Ping interval. The connection is given up if the pong is missing by the next ping. */
  pingIntervalMs: number;
  /** Until the server confirms a request. Without confirmation, it may or may not have been sent. */
  sendTimeoutMs: number;
  onRequest: SrfHandler;
  /** Receives each frame of the server before it is handled. Must not throw. */
  onFrame?: (frame: string) => void;
  /** Called once, if an established connection is lost. */
  onLost: (detail: string) => void;
  /** Aborting closes a given-up connection that still waits for a silent server. */
  signal?: AbortSignal;
  /** Receives an error that drachtio-srf would have thrown into the process. */
  onFault: (error: unknown) => void;
}

/**
 * Opens one connection to a drachtio server and authenticates. A lost connection is never repaired but replaced, so
 * that its state cannot leak into the next one.
 * @throws SipError `server.unreachable`, `server.secret_refused`
 */
export function openSrfConnection(options: SrfConnectionOptions): Promise<SrfConnection> {
  return SrfConnection.open(options);
}

/** URI of in-transaction and in-dialog requests, which the SIP server sets. */
export const PLACEHOLDER = 'sip:placeholder';
/** Longest wait for a silent server to confirm a buffered INVITE. */
const MOST_LINGERING_MS = 600_000;
/** Time to cancel late-confirmed INVITEs: 64 * T1 (RFC 3261 §9.1), and some time for a BYE. */
const SETTLING_MS = 35_000;

/** Wraps drachtio-srf without its hangs and throws. Only this file knows its internals. */
export class SrfConnection {
  /** Listening addresses of the server, e.g. `udp/127.0.0.1:5060`. */
  localContacts: string[] = [];
  serverVersion = '';
  readonly #options: SrfConnectionOptions;
  readonly #srf: SrfClient;
  readonly #wire: SrfWire;
  #socket: Socket | null = null;
  /**
   * `given-up`: the server is silent, and the owner considers this connection lost. A frozen server may still send a
   * buffered INVITE on waking. So the connection stays open until that is confirmed and can be cancelled.
   */
  #state: 'opening' | 'open' | 'given-up' | 'closed' = 'opening';
  /** INVITEs that the server has neither confirmed nor rejected. */
  #unconfirmed = 0;
  #lingering: NodeJS.Timeout | undefined;
  #pingTimer: NodeJS.Timeout | undefined;
  #isPingUnanswered = false;

  private constructor(options: SrfConnectionOptions) {
    this.#options = options;
    this.#srf = new Srf() as unknown as SrfClient;
    const onRequest: SrfHandler = (request, reply, next) => {
      if (this.#state !== 'given-up' || request.method !== 'INVITE') options.onRequest(request, reply, next);
      else reply.send(503, { headers: { 'Retry-After': '1' } });
    };
    this.#srf.use('invite', onRequest);
    this.#srf.use('options', onRequest);
    this.#srf.use(onRequest);
    options.signal?.addEventListener('abort', this.#onAbort, { once: true });
    // One attempt only: its own reconnecting never stops with a wrong secret, and leaves the requests of the old
    // connection unsettled.
    const { host, port, secret } = options;
    this.#srf.connect({ host, port, secret, reconnect: { maxAttempts: 1 } });
    this.#wire = this.#srf._app.client.wp;
    this.#contain();
  }

  static async open(options: SrfConnectionOptions): Promise<SrfConnection> {
    const connection = new SrfConnection(options);
    await connection.#opened();
    return connection;
  }

  /**
   * Sends a request through the server. `onSent` is called asynchronously once, with the sent request or the failure;
   * after `unknown` once more if the confirmation arrives late. Listen for responses at once: the next one may already
   * be buffered.
   */
  request(uri: string, options: SrfRequestOptions, onSent: (outcome: SrfSent) => void): void {
    let last: SrfSent['kind'] | null = null;
    const settle = (outcome: SrfSent) => {
      if (last !== null && !(last === 'unknown' && outcome.kind === 'sent')) return;
      last = outcome.kind;
      clearTimeout(timer);
      if (outcome.kind !== 'unknown' && isInvite) this.#confirmed();
      onSent(outcome);
    };
    const isInvite = options.method === 'INVITE' && !options.stackDialogId;
    if (isInvite) this.#unconfirmed++;
    const timer = setTimeout(() => settle({ kind: 'unknown', detail: 'no_echo' }), this.#options.sendTimeoutMs);
    timer.unref();
    const fail = (detail: string) => setImmediate(() => settle({ kind: 'not-sent', detail }));
    const endsLateInvite = this.#state === 'given-up' && Boolean(options.stackDialogId ?? options.stackTxnId);
    if (this.#state !== 'open' && !endsLateInvite) {
      fail('not_connected');
      return;
    }
    try {
      // Use the callback form: the promise form loses responses that arrive before it is awaited (43 of 50 seen).
      this.#srf.request(uri, options, (error, request) => {
        if (request !== undefined) {
          // While it is pending, drachtio-srf delivers an UPDATE of the peer only here.
          const { onRequest } = this.#options;
          if (options.stackDialogId) request.on('update', (update, reply) => onRequest(update, reply, () => {}));
          settle({ kind: 'sent', request });
        } else fail(error instanceof Error ? error.message : String(error));
      });
    } catch (error) {
      // It throws assertion errors, e.g. without a socket.
      fail(error instanceof Error ? error.message : String(error));
    }
  }

  /** Idempotent; does not call `onLost`. */
  close(): void {
    this.#state = 'closed';
    clearInterval(this.#pingTimer);
    clearTimeout(this.#lingering);
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
    this.#wire.closing = true;
    this.#socket?.destroy();
  }

  readonly #onAbort = () => {
    if (this.#state === 'given-up') this.close();
  };

  #confirmed(): void {
    this.#unconfirmed--;
    if (this.#state === 'given-up' && this.#unconfirmed === 0) this.#closeIn(SETTLING_MS);
  }

  #giveUp(): void {
    if (this.#unconfirmed === 0) {
      this.#socket?.destroy();
      return;
    }
    this.#state = 'given-up';
    clearInterval(this.#pingTimer);
    this.#closeIn(MOST_LINGERING_MS);
    this.#options.onLost('the SIP server does not respond');
  }

  #closeIn(ms: number): void {
    clearTimeout(this.#lingering);
    this.#lingering = setTimeout(() => this.close(), ms);
    this.#lingering.unref();
  }

  #opened(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(
      () => this.#refuse(reject, 'server.unreachable', 'The SIP server did not answer in time'),
      this.#options.connectTimeoutMs,
    );
    this.#srf.on('connect', (error: unknown, contacts?: string, version?: string) => {
      clearTimeout(timer);
      if (this.#state !== 'opening') return;
      if (error) {
        this.#refuse(reject, 'server.secret_refused', 'The SIP server refused our secret');
        return;
      }
      this.#state = 'open';
      this.localContacts = String(contacts ?? '').split(',');
      this.serverVersion = version ?? '';
      this.#keepAlive();
      resolve();
    });
    this.#srf.on('error', (error: unknown) => this.#gone(reject, timer, error));
    this.#srf.on('close', () => this.#gone(reject, timer, undefined));
    return promise;
  }

  #gone(reject: (error: SipError) => void, timer: NodeJS.Timeout, cause: unknown): void {
    clearTimeout(timer);
    if (this.#state === 'opening') {
      this.#refuse(reject, 'server.unreachable', 'The SIP server closed the connection or cannot be reached', cause);
    } else if (this.#state === 'open') {
      this.close();
      this.#options.onLost('the connection to the SIP server was lost');
    } else this.close();
  }

  #refuse(reject: (error: SipError) => void, code: SipError['code'], message: string, cause?: unknown): void {
    this.close();
    reject(new SipError(code, message, cause === undefined ? undefined : { cause }));
  }

  /** Catches errors of its message handling, which would end the process from a socket's `data` event. */
  #contain(): void {
    const wire = this.#wire;
    const emit = wire.emit.bind(wire);
    wire.emit = (event: string | symbol, ...args: unknown[]): boolean => {
      if (event !== 'msg') return emit(event, ...args);
      if (typeof args[1] === 'string') {
        this.#options.onFrame?.(args[1]);
        args[1] = withoutEscapedNames(args[1]);
      }
      try {
        return emit(event, ...args);
      } catch (error) {
        this.#options.onFault(error);
        return true;
      }
    };
    wire.on('connect', (socket: Socket) => {
      this.#socket = socket;
      if (this.#state === 'closed') socket.destroy();
      socket.removeAllListeners('data');
      socket.on('data', (chunk: Buffer) => {
        this.#isPingUnanswered = false;
        try {
          wire._onData(socket, chunk);
        } catch (error) {
          // The framing is lost, and everything after it.
          this.#options.onFault(error);
          socket.destroy();
        }
      });
    });
  }

  /** drachtio-srf can ping, but ignores the pong. Servers support pings since 0.8.2. */
  #keepAlive(): void {
    if (/^v0\.([0-7]\.|8\.[01]\b)/.test(this.serverVersion)) return;
    this.#pingTimer = setInterval(() => {
      if (this.#socket === null) return;
      if (this.#isPingUnanswered) {
        this.#giveUp();
        return;
      }
      this.#isPingUnanswered = true;
      this.#wire.send(this.#socket, 'ping');
    }, this.#options.pingIntervalMs);
  }
}

/**
 * Changes header names with `%` escapes, which only drachtio-srf decodes. With `%56ia`, a caller could forge the Via of a
 * trusted proxy.
 */
function withoutEscapedNames(frame: string): string {
  const end = frame.indexOf('\r\n\r\n');
  const head = end < 0 ? frame : frame.slice(0, end);
  return head.replace(ESCAPED_NAME, (name) => name.replaceAll('%', '_')) + frame.slice(head.length);
}

const ESCAPED_NAME = /\r\n[^\s:%]*%[^\s:]*(?=\s*:)/g;

export type SrfSent =
  | { kind: 'sent'; request: SrfSentRequest }
  /** The server rejected it, or there is no server: nothing was sent. */
  | { kind: 'not-sent'; detail: string }
  | { kind: 'unknown'; detail: string };
