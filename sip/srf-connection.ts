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
  /** The server is asked for a sign of life this often, and given up when none came by the next time. */
  pingIntervalMs: number;
  /** The server's word that it sent a request; without it the request may or may not be on its way. */
  sendTimeoutMs: number;
  onRequest: SrfHandler;
  /** Sees each frame of the server before it is handled. Never throws. */
  onFrame?: (frame: string) => void;
  /** Once, after the connection had been made. */
  onLost: (detail: string) => void;
  /** Aborting closes a connection that was given up and still waits for a silent server. */
  signal?: AbortSignal;
  /** An error that drachtio-srf would have thrown into the process. */
  onFault: (error: unknown) => void;
}

/**
 * Makes one connection to a drachtio server and authenticates. It is never repaired: whoever wants another one makes
 * another one, so that nothing of a lost connection can wake up in the next.
 * @throws SipError `server.unreachable`, `server.secret_refused`
 */
export function openSrfConnection(options: SrfConnectionOptions): Promise<SrfConnection> {
  return SrfConnection.open(options);
}

/** How long a silent server may take to confirm an INVITE that it may still have in its buffer. */
const MOST_LINGERING_MS = 600_000;
/** Until the INVITEs that were confirmed so late are cancelled: 64 * T1 (RFC 3261 §9.1), and some time for a BYE. */
const SETTLING_MS = 35_000;

/** drachtio-srf with its ways of hanging and throwing taken out. All knowledge of its insides is in this file. */
export class SrfConnection {
  /** What the server listens on, e.g. `udp/127.0.0.1:5060`. */
  localContacts: string[] = [];
  serverVersion = '';
  readonly #options: SrfConnectionOptions;
  readonly #srf: SrfClient;
  readonly #wire: SrfWire;
  #socket: Socket | null = null;
  /**
   * `given-up`: the server is silent, and others take this connection for lost. It may be frozen with an INVITE in its buffer and send
   * it when it wakes, so the connection stays until it has confirmed it, and it can be cancelled.
   */
  #state: 'opening' | 'open' | 'given-up' | 'closed' = 'opening';
  /** INVITEs that the server has neither confirmed nor refused. */
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
    // Its own reconnecting goes on for ever with a wrong secret, and leaves the requests of the old connection
    // unsettled: one attempt only.
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
   * Sends a request through the server. `onSent` comes once, later, with the request as it went out or with why there
   * is none; after `unknown` it comes again when the server's word comes late. Responses are events of it, so listen at once: the next one may already be in the buffer.
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
      // The promise form loses the responses that arrive before it is awaited (43 of 50 seen): the callback form.
      this.#srf.request(uri, options, (error, request) => {
        if (request !== undefined) settle({ kind: 'sent', request });
        else fail(error instanceof Error ? error.message : String(error));
      });
    } catch (error) {
      // It asserts where it should report, e.g. without a socket.
      fail(error instanceof Error ? error.message : String(error));
    }
  }

  /** Idempotent; `onLost` is not called. */
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

  /** The server is silent. */
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

  /** A throw in its message handling would end the process from inside a socket's `data` event. */
  #contain(): void {
    const wire = this.#wire;
    const emit = wire.emit.bind(wire);
    wire.emit = (event: string | symbol, ...args: unknown[]): boolean => {
      if (event !== 'msg') return emit(event, ...args);
      if (typeof args[1] === 'string') this.#options.onFrame?.(args[1]);
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
          // Its framing is lost, and with it everything after.
          this.#options.onFault(error);
          socket.destroy();
        }
      });
    });
  }

  /** drachtio-srf can ping, but does not look for the pong. Servers know pings since 0.8.2. */
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

export type SrfSent =
  | { kind: 'sent'; request: SrfSentRequest }
  /** The server said no, or there is no server: nothing was sent. */
  | { kind: 'not-sent'; detail: string }
  /** The server did not say anything. */
  | { kind: 'unknown'; detail: string };
