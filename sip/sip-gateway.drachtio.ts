import { setTimeout as delay } from 'node:timers/promises';
import { within } from '../runtime/waiting.ts';
import { reasonHeaderOf } from './failure-cause.ts';
import { respondToInfo } from './info-digit.ts';
import { type LegParts, SipLeg } from './leg-dialog.ts';
import { ALLOWED_METHODS, rejectsExtensions, rejectsShortSession } from './leg-invite.ts';
import { endLostLeg } from './lost-leg.ts';
import { printableFault } from './printable-fault.ts';
import { ReceivedCall } from './received-call.ts';
import { Registration } from './registration.ts';
import { sourceOf } from './request-source.ts';
import { SipError, type SipErrorCode } from './sip-error.ts';
import type {
  DialRequest,
  InboundCall,
  LegDialog,
  LegHandle,
  SipGateway,
  TrunkEndpoint,
  TrunkProbe,
  TrunkRegistration,
  TrunkSign,
} from './sip-gateway.ts';
import { openSrfConnection, PLACEHOLDER, type SrfConnection } from './srf-connection.ts';
import type { SrfReceivedRequest, SrfReply, SrfResponse } from './srf-types.ts';
import type { CallTracer } from './trace/call-tracer.ts';
import { nextHopOf, trunkUri } from './trunk.ts';
import { SILENT, signOfResponse, UNREACHABLE } from './trunk-sign.ts';

export interface DrachtioGatewayOptions {
  /** Control address of the SIP server: the embedded one, or a drachtio-server. */
  host: string;
  port: number;
  secret: string;
  /** Our host in From and P-Asserted-Identity. Default: the address the server sends from. */
  sipHost?: string;
  /** Addresses and networks of proxies whose Via headers name the source of a call. Default: none. */
  trustedProxies?: readonly string[];
  logger?: GatewayLogger;
  /** Receives the SIP dialogs of each leg. */
  tracer?: Pick<CallTracer, 'bind'>;
  /** Whether the SIP server survives this process, as a drachtio-server does. Default false. */
  outlivesUs?: boolean;
  /** Receives each frame of the SIP server. Must not throw. */
  onFrame?: (frame: string) => void;
  /**
   * Starts `disconnected` and keeps trying if the server is unreachable. A rejected secret still fails the start.
   * Default false.
   */
  connectInBackground?: boolean;
  /** Between attempts after the server rejected our secret, in case it is corrected. Default 60 000. */
  refusedRetryMs?: number;
  /** Default 5000. */
  connectTimeoutMs?: number;
  /** Default 10 000. A silent server is noticed after half of it to all of it. */
  pingIntervalMs?: number;
  /** Default 5000. */
  probeTimeoutMs?: number;
  /** Until the server confirms that it sent a request. Default 5000. */
  sendTimeoutMs?: number;
}

/** Subset of a pino logger. */
export interface GatewayLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const RECONNECT_FIRST_MS = 100;
const RECONNECT_MAX_MS = 5_000;
const REFUSED_RETRY_MS = 60_000;
/** Longer than Timer F of the SIP server (RFC 3261 §17.1.2). */
const REGISTER_TIMEOUT_MS = 35_000;
/** More than one process carries. */
const MOST_LOST_LEGS = 10_000;
/** Longest wait of `close` for responses to our CANCELs and BYEs. */
const CLOSE_GRACE_MS = 2_000;

/**
 * Connects to the SIP server. While the gateway is open, it reconnects after a loss.
 * @throws SipError `server.secret_refused`, and `server.unreachable` unless `connectInBackground`.
 */
export async function createDrachtioGateway(options: DrachtioGatewayOptions): Promise<DrachtioGateway> {
  return await DrachtioGateway.create(options);
}

type GatewayState = SipGateway['state'];

export class DrachtioGateway implements SipGateway {
  readonly #options: DrachtioGatewayOptions;
  readonly #logger: GatewayLogger;
  readonly #listeners = new Set<(state: GatewayState) => void>();
  readonly #legs = new Set<SipLeg>();
  readonly #legOfDialog = new Map<string, SipLeg>();
  readonly #closing = new AbortController();
  readonly #counters = { dialed: 0, connections: 0, connectionsLost: 0, faults: 0, received: 0, inboundRefused: 0 };
  #connection: SrfConnection | null = null;
  /** Error of the last connection attempt; null if it succeeded. */
  #connectFailure: SipErrorCode | null = null;
  #onIdle: () => void = () => {};
  #onCall: ((call: InboundCall) => void) | null = null;
  readonly #lostLegs: LegHandle[] = [];
  /** Present registrations by Call-ID. */
  readonly #registered = new Map<string, Registration>();

  private constructor(options: DrachtioGatewayOptions) {
    this.#options = options;
    this.#logger = options.logger ?? { info() {}, warn() {}, error() {} };
  }

  static async create(options: DrachtioGatewayOptions): Promise<DrachtioGateway> {
    const gateway = new DrachtioGateway(options);
    try {
      await gateway.#connect();
    } catch (error) {
      if (!options.connectInBackground || isRefusal(error)) throw error;
      gateway.#logger.warn({}, 'SIP server not reachable yet; retrying');
      void gateway.#reconnect();
    }
    return gateway;
  }

  get state(): GatewayState {
    return this.#connection === null ? 'disconnected' : 'connected';
  }

  onStateChange(listener: (state: GatewayState) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  dial(request: DialRequest): LegDialog {
    this.#counters.dialed++;
    return this.#openLeg(request, null);
  }

  onCall(listener: (call: InboundCall) => void): void {
    this.#onCall = listener;
  }

  #openLeg(request: DialRequest, received: LegParts['received']): LegDialog {
    const connection = this.#connection;
    if (connection === null || this.#closing.signal.aborted) return notConnected(request);
    let dialogId: string | null = null;
    const leg: SipLeg = new SipLeg({
      connection,
      request: {
        ...request,
        onEvent: (event) => this.#safely(() => request.onEvent(event)),
        onSign: (sign) => this.#safely(() => request.onSign?.(sign)),
      },
      received,
      ownHost: this.#options.sipHost ?? 'localhost',
      onInviteSent: (sipCallId) => this.#options.tracer?.bind(sipCallId, request),
      onHandle: (handle) => {
        const isWanted = handle.kind === 'dialog' || this.#options.outlivesUs === true;
        if (isWanted) this.#safely(() => request.onHandle?.(handle));
      },
      isOwnMedia: (host, port) => [...this.#legs].some((each) => each.receivesAt(host, port)),
      onDialog: (id) => {
        dialogId = id;
        this.#legOfDialog.set(id, leg);
      },
      onOver: () => {
        this.#legs.delete(leg);
        if (this.#legs.size === 0) this.#onIdle();
        if (dialogId !== null) this.#legOfDialog.delete(dialogId);
      },
    });
    this.#legs.add(leg);
    leg.start();
    return leg;
  }

  endLegs(handles: readonly LegHandle[]): void {
    const connection = this.#connection;
    if (connection === null) this.#lostLegs.push(...handles.slice(0, MOST_LOST_LEGS - this.#lostLegs.length));
    else for (const handle of handles) endLostLeg(connection, handle);
  }

  async probe(trunk: TrunkEndpoint, signal: AbortSignal): Promise<TrunkProbe> {
    const startedAtMs = performance.now();
    const { promise, resolve } = Promise.withResolvers<TrunkProbe>();
    const settle = (sipStatus: number | null, sign: TrunkSign) =>
      resolve({
        reachable: sign.type === 'answered',
        silence: sign.type === 'unanswered' ? sign.reason : null,
        sipStatus,
        roundTripMs: performance.now() - startedAtMs,
      });
    const timer = setTimeout(() => settle(null, SILENT), this.#options.probeTimeoutMs ?? 5_000);
    const onAbort = () => settle(null, SILENT);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      if (signal.aborted || this.#connection === null) settle(null, SILENT);
      else this.#sendOptions(this.#connection, trunk, settle);
      return await promise;
    } catch {
      settle(null, UNREACHABLE);
      return await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    }
  }

  openRegistration(trunk: TrunkEndpoint, onLost: () => void = () => {}): TrunkRegistration {
    return new Registration({
      ...{ trunk, timeoutMs: REGISTER_TIMEOUT_MS, onLost },
      connection: () => this.#connection,
      registered: this.#registered,
    });
  }

  dump(): unknown {
    return {
      state: this.state,
      server: this.#connection && {
        version: this.#connection.serverVersion,
        contacts: this.#connection.localContacts,
      },
      connectFailure: this.#connectFailure,
      counters: { ...this.#counters },
      legs: Array.from(this.#legs, (leg) => leg.dump()),
    };
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    if (this.#legs.size > 0) {
      const { promise: idle, resolve } = Promise.withResolvers<void>();
      this.#onIdle = resolve;
      for (const leg of [...this.#legs]) leg.hangup('SYSTEM_SHUTDOWN');
      await within(idle, { ms: CLOSE_GRACE_MS });
    }
    this.#connection?.close();
    this.#disconnected('the gateway was closed');
  }

  async #connect(): Promise<void> {
    const { host, port, secret, onFrame } = this.#options;
    const { connectTimeoutMs = 5_000, pingIntervalMs = 10_000, sendTimeoutMs = 5_000 } = this.#options;
    const opening = openSrfConnection({
      host,
      port,
      secret,
      connectTimeoutMs,
      pingIntervalMs,
      sendTimeoutMs,
      signal: this.#closing.signal,
      onRequest: (request, reply) => this.#receive(request, reply),
      onFault: (error) => this.#fault(error),
      ...(onFrame && { onFrame }),
      onLost: (detail) => {
        this.#counters.connectionsLost++;
        this.#logger.warn({}, 'Connection to the SIP server lost');
        this.#disconnected(detail);
        void this.#reconnect();
      },
    });
    try {
      this.#connection = await opening;
      this.#connectFailure = null;
    } catch (error) {
      this.#connectFailure = error instanceof SipError ? error.code : 'server.unreachable';
      throw error;
    }
    this.#counters.connections++;
    this.#logger.info({ contacts: this.#connection.localContacts }, 'Connected to the SIP server');
    this.endLegs(this.#lostLegs.splice(0));
    this.#announce();
  }

  async #reconnect(): Promise<void> {
    const { signal } = this.#closing;
    let waitMs = RECONNECT_FIRST_MS;
    while (!signal.aborted) {
      await delay(waitMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      try {
        await this.#connect();
        if (signal.aborted) {
          this.#connection?.close();
          this.#disconnected('the gateway was closed');
        }
        return;
      } catch (error) {
        waitMs = Math.min(waitMs * 2, RECONNECT_MAX_MS);
        if (!isRefusal(error)) continue;
        // Quick retries with a rejected secret would look like an attack.
        waitMs = this.#options.refusedRetryMs ?? REFUSED_RETRY_MS;
        this.#logger.error({ retryAfterMs: waitMs }, 'SIP server rejects our secret');
      }
    }
  }

  #disconnected(detail: string): void {
    const wasConnected = this.#connection !== null;
    this.#connection = null;
    // The embedded server ends the calls of a lost connection itself.
    if (this.#options.outlivesUs === true) this.endLegs([...this.#legs].flatMap(({ handle }) => handle ?? []));
    // Legs remove themselves from the set.
    for (const leg of [...this.#legs]) leg.lost(detail);
    if (wasConnected) this.#announce();
  }

  #announce(): void {
    const { state } = this;
    for (const listener of [...this.#listeners]) this.#safely(() => listener(state));
  }

  #receive(request: SrfReceivedRequest, reply: SrfReply): void {
    this.#safely(() => {
      if (request.method === 'REGISTER' && request.source === 'application') {
        this.#registered.get(request.get('Call-ID') ?? '')?.lost();
        return;
      }
      const leg = request.stackDialogId ? this.#legOfDialog.get(request.stackDialogId) : undefined;
      if (rejectsExtensions(request, reply)) {
        if (this.#isNewCall(request)) this.#counters.inboundRefused++;
      } else if (leg !== undefined) leg.receive(request, reply);
      else if (this.#isNewCall(request)) this.#takeCall(request, reply);
      else this.#refuseInbound(request, reply);
    });
  }

  #isNewCall(request: SrfReceivedRequest): boolean {
    const isReady = this.#onCall !== null && !this.#closing.signal.aborted;
    return isReady && request.method === 'INVITE' && !isInDialog(request);
  }

  #takeCall(request: SrfReceivedRequest, reply: SrfReply): void {
    this.#counters.received++;
    if (rejectsShortSession(request, reply)) return;
    const call = new ReceivedCall(request, reply, {
      source: sourceOf(request, this.#options.trustedProxies ?? []),
      answer: (options) => this.#openLeg({ ...options, callerId: '', calledNumber: '' }, { request, reply }),
      traceAs: (leg) => this.#options.tracer?.bind(request.get('Call-ID') ?? '', leg),
    });
    this.#onCall?.(call);
  }

  /** Answers requests outside calls. OPTIONS probes of carriers get 200. */
  #refuseInbound(request: SrfReceivedRequest, reply: SrfReply): void {
    if (request.method === 'ACK') {
      this.#endForgotten(request);
      return;
    }
    if (isInDialog(request) && (!request.stackDialogId || CALLS_ONLY.has(request.method))) {
      reply.send(481, {});
      return;
    }
    // The dialog of a call that rings. A 481 would end the call (RFC 3261 §12.2.1.2).
    if (isInDialog(request) && request.method === 'INFO') {
      respondToInfo(request, reply);
      return;
    }
    if (request.method === 'INVITE') this.#counters.inboundRefused++;
    const status = request.method === 'OPTIONS' ? 200 : request.method === 'INVITE' ? 480 : 405;
    reply.send(status, { headers: { Allow: ALLOWED_METHODS } });
  }

  /** Ends a call whose leg was given up before this ACK: a BYE may not precede it (RFC 3261 §15). */
  #endForgotten({ stackDialogId }: SrfReceivedRequest): void {
    if (!stackDialogId) return;
    const headers = { Reason: reasonHeaderOf('NORMAL_CLEARING') };
    this.#connection?.request(PLACEHOLDER, { method: 'BYE', stackDialogId, headers }, () => {});
  }

  #sendOptions(
    connection: SrfConnection,
    trunk: TrunkEndpoint,
    settle: (status: number | null, sign: TrunkSign) => void,
  ) {
    const headers = { From: `<sip:tandem@${this.#options.sipHost ?? 'localhost'}>`, 'User-Agent': 'Tandem' };
    connection.request(trunkUri(trunk), { ...nextHopOf(trunk), method: 'OPTIONS', headers }, (outcome) => {
      if (outcome.kind !== 'sent') {
        settle(null, UNREACHABLE);
        return;
      }
      outcome.request.on('response', (response: SrfResponse) => {
        if (response.status >= 200) settle(response.status, signOfResponse(response));
      });
    });
  }

  /** Catches errors in callbacks of timers and sockets, which would end the process. */
  #safely(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#fault(error);
    }
  }

  #fault(error: unknown): void {
    this.#counters.faults++;
    this.#logger.error({ err: printableFault(error) }, 'Fault while handling a SIP message');
  }
}

/** Requests that only a leg can take. */
const CALLS_ONLY: ReadonlySet<string> = new Set(['INVITE', 'UPDATE', 'BYE']);

function isInDialog(request: SrfReceivedRequest): boolean {
  return /;\s*tag=/i.test(request.get('To') ?? '');
}

function isRefusal(error: unknown): boolean {
  return error instanceof SipError && error.code === 'server.secret_refused';
}

function notConnected(request: DialRequest): LegDialog {
  setImmediate(() =>
    request.onEvent({
      type: 'leg.refused',
      sipStatus: 503,
      hangupCause: 'NORMAL_TEMPORARY_FAILURE',
      detail: 'not connected to the SIP server',
    }),
  );
  return { hangup() {}, hold() {}, offerAgain() {} };
}
