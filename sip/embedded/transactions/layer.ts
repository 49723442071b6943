import { randomUUID } from 'node:crypto';
import {
  header,
  headers,
  parseCSeq,
  parseVia,
  type SipMessage,
  type SipRequest,
  type SipResponse,
  serializeMessage,
  tagOf,
} from '../../message/index.ts';
import type { Clock } from '../clock.ts';
import type { SipTimers } from '../sip-timers.ts';
import { type Network, type Remote, remoteKey, responseRemote, type SentOver } from '../transport/remote.ts';
import { type ClientOptions, ClientTransaction } from './client.ts';
import { type InviteClientOptions, InviteClientTransaction } from './invite-client.ts';
import { InviteServerTransaction } from './invite-server.ts';
import { ServerTransaction } from './server.ts';

/** A request from the network with its transaction, for the core to answer. */
export interface IncomingTransaction {
  readonly id: string;
  readonly request: SipRequest;
  readonly source: Remote;
  readonly remote: Remote;
  readonly server: InviteServerTransaction | ServerTransaction;
}

export interface TransactionLayerOptions {
  network: Network;
  clock: Clock;
  timers: SipTimers;
  onRequest: (incoming: IncomingTransaction) => void;
  /** An ACK of a 2xx, which belongs to no transaction. */
  onAck: (request: SipRequest, source: Remote) => void;
  onNotAcknowledged: (incoming: IncomingTransaction) => void;
  onServerTerminated: (incoming: IncomingTransaction) => void;
  /** Whether a request belongs to a known call. It is accepted despite overload. */
  isExpected: (request: SipRequest) => boolean;
  onOverload: (request: SipRequest, source: Remote) => void;
}

export type InviteHandlers = Pick<InviteClientOptions, 'onFailure' | 'onCancellable' | 'onTerminated'> &
  ResponseHandler & {
    /** Whether the INVITE may be sent again over a new connection. */
    isWanted: () => boolean;
  };
export type RequestHandlers = Pick<ClientOptions, 'onFailure'> & ResponseHandler;

interface ResponseHandler {
  onResponse: (response: SipResponse, source: Remote) => void;
}

interface Outgoing {
  transaction: InviteClientTransaction | ClientTransaction;
  remote: Remote;
  /** Connection of the last message; null over UDP. */
  sentOver: SentOver | null;
  isSentAgain: boolean;
  isWanted: () => boolean;
}

/** Owns all transactions and matches messages to them (RFC 3261 §17.1.3, §17.2.3). */
export class TransactionLayer {
  readonly #options: TransactionLayerOptions;
  readonly #outgoing = new Map<string, Outgoing>();
  readonly #incoming = new Map<string, IncomingTransaction>();
  readonly #identities = new Map<string, IncomingTransaction>();
  #incomingBytes = 0;
  #responseSource: Remote | null = null;

  constructor(options: TransactionLayerOptions) {
    this.#options = options;
  }

  /** The top Via must carry a branch of ours. Call `start()` on the result. */
  createInvite(request: SipRequest, remote: Remote, handlers: InviteHandlers): InviteClientTransaction {
    const key = outgoingKey(request);
    const transaction: InviteClientTransaction = new InviteClientTransaction({
      ...this.#common(remote),
      request,
      send: (message) => this.#transmit(outgoing, message),
      onResponse: (response) => handlers.onResponse(response, this.#responseSource ?? remote),
      onFailure: (why) => this.#failed(remote, why, handlers),
      onCancellable: handlers.onCancellable,
      onTerminated: () => {
        this.#outgoing.delete(key);
        handlers.onTerminated();
      },
    });
    const { isWanted } = handlers;
    const outgoing: Outgoing = { transaction, remote, sentOver: null, isSentAgain: false, isWanted };
    this.#outgoing.set(key, outgoing);
    return transaction;
  }

  createRequest(request: SipRequest, remote: Remote, handlers: RequestHandlers): ClientTransaction {
    const key = outgoingKey(request);
    const transaction: ClientTransaction = new ClientTransaction({
      ...this.#common(remote),
      request,
      send: (message) => this.#transmit(outgoing, message),
      onResponse: (response) => handlers.onResponse(response, this.#responseSource ?? remote),
      onFailure: (why) => this.#failed(remote, why, handlers),
      onTerminated: () => this.#outgoing.delete(key),
    });
    const outgoing: Outgoing = { transaction, remote, sentOver: null, isSentAgain: false, isWanted: () => true };
    this.#outgoing.set(key, outgoing);
    return transaction;
  }

  /** Sends outside any transaction: the ACK of a 2xx, or the rejection of a malformed request. */
  send(message: SipMessage, remote: Remote, onFailure: () => void = () => {}): SentOver | null {
    return this.#options.network.send(serializeMessage(message), remote, onFailure);
  }

  isAwaited(response: SipResponse): boolean {
    return this.#outgoing.has(outgoingKey(response));
  }

  /** Whether the request is a retransmission, ACK or CANCEL of a known one. */
  isRunning(request: SipRequest): boolean {
    try {
      const method = request.method === 'ACK' || request.method === 'CANCEL' ? 'INVITE' : request.method;
      return this.#incoming.has(incomingKey(request, method));
    } catch {
      return false;
    }
  }

  receiveResponse(response: SipResponse, source: Remote): void {
    // A second Via means that the response is not for a user agent (RFC 3261 §8.1.3.3).
    if (headers(response, 'via').length !== 1) return;
    const outgoing = this.#outgoing.get(outgoingKey(response));
    if (!outgoing) return;
    this.#responseSource = source;
    outgoing.transaction.receive(response);
    this.#responseSource = null;
  }

  receiveRequest(request: SipRequest, source: Remote): void {
    const key = incomingKey(request, request.method === 'ACK' ? 'INVITE' : request.method);
    const known = this.#incoming.get(key);
    if (known) this.#receiveAgain(known, request, source);
    else if (request.method === 'ACK') this.#options.onAck(request, source);
    else if (this.#isFull() && !this.#options.isExpected(request)) this.#options.onOverload(request, source);
    else this.#options.onRequest(this.#createIncoming(key, request, source));
  }

  #isFull(): boolean {
    return this.#incoming.size >= MAX_INCOMING || this.#incomingBytes >= MAX_INCOMING_BYTES;
  }

  /** The INVITE that a CANCEL refers to (RFC 3261 §9.2). */
  cancelledBy(cancel: SipRequest): IncomingTransaction | null {
    return this.#incoming.get(incomingKey(cancel, 'INVITE')) ?? null;
  }

  /** Whether the same request arrived over another path as its own transaction (RFC 3261 §8.2.2.2). */
  isMerged(incoming: IncomingTransaction): boolean {
    const first = this.#identities.get(requestIdentity(incoming.request));
    return first !== undefined && first !== incoming;
  }

  unreachable(remote: Remote): void {
    const key = remoteKey(remote);
    for (const outgoing of [...this.#outgoing.values()]) {
      const isLost =
        remote.connectionId === null
          ? remoteKey(outgoing.remote) === key
          : outgoing.remote.transport === remote.transport && outgoing.sentOver?.connectionId === remote.connectionId;
      if (isLost && isUnanswered(outgoing)) this.#transportFailed(outgoing);
    }
  }

  stop(): void {
    for (const { transaction } of this.#outgoing.values()) transaction.stop();
    for (const { server } of this.#incoming.values()) server.stop();
    this.#outgoing.clear();
    this.#incoming.clear();
    this.#identities.clear();
  }

  dump(): { outgoing: number; incoming: number } {
    return { outgoing: this.#outgoing.size, incoming: this.#incoming.size };
  }

  #transmit(outgoing: Outgoing, message: SipMessage): void {
    const sentOver = this.send(message, outgoing.remote, () => {
      if (outgoing.sentOver === sentOver) this.#transportFailed(outgoing);
    });
    outgoing.sentOver = sentOver;
  }

  /**
   * An established connection may close while a request is on its way to it, so the request is sent once more, over a
   * new one. Its branch is the same: a peer that did receive it takes it for a retransmission (RFC 3261 §17.2.3).
   * A cancelled INVITE would ring a phone after its caller has hung up.
   */
  #transportFailed(outgoing: Outgoing): void {
    const { sentOver, isSentAgain, isWanted } = outgoing;
    if (isUnanswered(outgoing) && sentOver?.isReused && !isSentAgain && isWanted()) {
      outgoing.isSentAgain = true;
      this.#transmit(outgoing, outgoing.transaction.request);
    } else outgoing.transaction.transportFailed();
  }

  #failed(remote: Remote, why: 'timeout' | 'transport', handlers: Pick<ClientOptions, 'onFailure'>): void {
    if (why === 'timeout') this.#options.network.distrust(remote);
    handlers.onFailure(why);
  }

  #createIncoming(key: string, request: SipRequest, source: Remote): IncomingTransaction {
    const remote = responseRemote(request, source);
    const identity = requestIdentity(request);
    const bytes = sizeOf(request);
    this.#incomingBytes += bytes;
    const options = {
      ...this.#common(remote),
      request,
      send: (response: SipResponse) => {
        const sentOver = this.send(response, remote, () => incoming.server.transportFailed());
        const isSame = sentOver === null || sentOver.connectionId === remote.connectionId;
        if (!isSame && incoming.server instanceof InviteServerTransaction) incoming.server.connectionLost();
      },
      onTerminated: () => {
        this.#incoming.delete(key);
        this.#incomingBytes -= bytes;
        if (this.#identities.get(identity) === incoming) this.#identities.delete(identity);
        this.#options.onServerTerminated(incoming);
      },
    };
    const server =
      request.method === 'INVITE'
        ? new InviteServerTransaction({
            ...options,
            onNotAcknowledged: () => this.#options.onNotAcknowledged(incoming),
          })
        : new ServerTransaction(options);
    const incoming: IncomingTransaction = { id: randomUUID(), request, source, remote, server };
    this.#incoming.set(key, incoming);
    if (!this.#identities.has(identity)) this.#identities.set(identity, incoming);
    return incoming;
  }

  #receiveAgain(known: IncomingTransaction, request: SipRequest, source: Remote): void {
    const { server } = known;
    if (request.method !== 'ACK') server.receiveAgain();
    else if (server instanceof InviteServerTransaction && server.state === 'accepted') {
      // Some peers reuse the INVITE's branch for the ACK of a 2xx; RFC 2543 peers always do.
      this.#options.onAck(request, source);
    } else if (server instanceof InviteServerTransaction) server.receiveAck();
  }

  #common(remote: Remote): { reliable: boolean; clock: Clock; timers: SipTimers } {
    return { reliable: remote.transport !== 'udp', clock: this.#options.clock, timers: this.#options.timers };
  }
}

/** Not even a provisional response has arrived. */
function isUnanswered({ transaction }: Outgoing): boolean {
  return transaction.state === 'calling' || transaction.state === 'trying';
}

function outgoingKey(message: SipMessage): string {
  try {
    const branch = parseVia(header(message, 'via') ?? '').params.get('branch') ?? '';
    return `${branch}|${parseCSeq(header(message, 'cseq') ?? '').method}`;
  } catch {
    return '';
  }
}

/** Callers have checked that Via and CSeq are valid. */
function incomingKey(request: SipRequest, method: string): string {
  const via = parseVia(header(request, 'via') ?? '');
  const branch = via.params.get('branch') ?? '';
  const sentBy = `${via.host}:${via.port ?? ''}`;
  if (branch.length > MAGIC_COOKIE.length && branch.startsWith(MAGIC_COOKIE)) return `${branch}|${sentBy}|${method}`;
  // An RFC 2543 branch identifies nothing. Omit the To tag, which an ACK has and its INVITE lacks.
  return `2543|${requestIdentity(request, method)}|${sentBy}|${branch}`;
}

function requestIdentity(request: SipRequest, method = request.method): string {
  const { sequence } = parseCSeq(header(request, 'cseq') ?? '');
  return `${method}|${header(request, 'call-id')}|${tagOf(header(request, 'from')) ?? ''}|${sequence}`;
}

/** Approximate memory of a stored request. */
function sizeOf(request: SipRequest): number {
  let bytes = 1000 + request.uri.length + request.body.length;
  for (const { name, value } of request.headers) bytes += name.length + value.length;
  return bytes;
}

const MAGIC_COOKIE = 'z9hG4bK';
/** Each lives for 32 s over UDP: enough for about 450 calls a second, at a few kilobytes each. */
const MAX_INCOMING = 30_000;
/** 30 000 of the largest requests would be two gigabytes. */
const MAX_INCOMING_BYTES = 128 * 1024 * 1024;
