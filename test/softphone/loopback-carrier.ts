import { createHash } from 'node:crypto';
import {
  createResponse,
  formatVia,
  header,
  headers,
  parseNameAddr,
  parseUri,
  parseVia,
  removeHeader,
  type SipMessage,
  type SipRequest,
  type SipResponse,
  sipHeader,
  tagOf,
  uriHost,
} from '../../sip/message/index.ts';
import { type CarrierAuth, DigestChallenger } from './digest-challenger.ts';
import { EventLog } from './event-log.ts';
import { SipEndpoint, type SipPeer } from './sip-endpoint.ts';

export interface CarrierRoute {
  host: string;
  port: number;
  transport: 'udp' | 'tcp';
}

export interface LoopbackCarrierOptions {
  /** Default: 127.0.0.1. */
  host?: string;
  /** Default: 0, a free port for UDP and TCP. */
  port?: number;
  /** Destinations by number, the user part of the request URI. May change at any time. */
  routes?: Map<string, CarrierRoute>;
  /** Stays on the path of ACK, BYE and re-INVITE (RFC 3261 section 16.6, with RFC 5658 between transports). */
  recordRoute?: boolean;
  /** Requires digest credentials; several challengers act in order. */
  auth?: CarrierAuth | readonly CarrierAuth[];
  /** Accepts REGISTER (RFC 3261 section 10.3). Default: 405. */
  registrar?: CarrierRegistrar;
  /** Ignores OPTIONS, as many carriers do. Default: false. */
  ignoresOptions?: boolean;
  domain?: string;
  alterOffer?: (sdp: string) => string;
}

export interface CarrierRegistrar {
  /** Maximum granted. Default 3600. */
  expiresS?: number;
  /** Rejects less with 423. Default 0. */
  minExpiresS?: number;
  /** Adds another client's contact to every account. Default: false. */
  hasOthers?: boolean;
}

export type CarrierEvent =
  | { type: 'request'; method: string; message: SipRequest; transport: 'udp' | 'tcp' }
  | { type: 'response'; status: number; message: SipResponse };

/** Prefix of To tags in the carrier's own responses. */
const OWN_TAG = 'carrier';

/** Starts a carrier: a stateless SIP proxy (RFC 3261 section 16.11) with routes by number. */
export async function startLoopbackCarrier(options: LoopbackCarrierOptions = {}): Promise<LoopbackCarrier> {
  return await LoopbackCarrier.start(options);
}

export class LoopbackCarrier {
  readonly routes: Map<string, CarrierRoute>;
  /** Calls per number: distinct Call-IDs, without repeats and challenges. */
  readonly inviteCounts = new Map<string, number>();
  /** Numbers whose calls the carrier rejects with this status. */
  readonly failures = new Map<string, number>();
  /** Retry-After of 503 responses. */
  retryAfterS: number | null = null;
  isSilent = false;
  readonly log = new EventLog<CarrierEvent>();
  /** Contact and granted seconds by account, the user part of its address. */
  readonly bindings = new Map<string, { contact: string; expiresS: number }>();
  refusesRegister: { status: number; headers?: [string, string][] } | null = null;
  readonly #registrar: CarrierRegistrar | null;
  readonly #recordRoute: boolean;
  readonly #ignoresOptions: boolean;
  readonly #domain: string | null;
  readonly #alterOffer: (sdp: string) => string;
  readonly #challengers: readonly DigestChallenger[];
  readonly #callIds = new Set<string>();
  #endpoint!: SipEndpoint;

  private constructor(options: LoopbackCarrierOptions) {
    this.routes = options.routes ?? new Map();
    this.#recordRoute = options.recordRoute ?? false;
    this.#ignoresOptions = options.ignoresOptions ?? false;
    this.#domain = options.domain ?? null;
    this.#alterOffer = options.alterOffer ?? ((sdp) => sdp);
    this.#challengers = [options.auth ?? []].flat().map((auth) => new DigestChallenger(auth));
    this.#registrar = options.registrar ?? null;
  }

  static async start(options: LoopbackCarrierOptions): Promise<LoopbackCarrier> {
    const carrier = new LoopbackCarrier(options);
    carrier.#endpoint = await SipEndpoint.open({
      host: options.host ?? '127.0.0.1',
      port: options.port ?? 0,
      onMessage: (message, from) => carrier.#receive(message, from),
    });
    return carrier;
  }

  get sipUri(): string {
    return `sip:${this.#endpoint.uriHost}:${this.#endpoint.port}`;
  }

  get port(): number {
    return this.#endpoint.port;
  }

  /** Requests by method, without retransmissions. */
  transactions(method: string): number {
    const requests = this.log.ofType('request').filter((each) => each.method === method);
    return new Set(requests.map(({ message }) => `${header(message, 'Call-ID')} ${header(message, 'CSeq')}`)).size;
  }

  stop(): Promise<void> {
    return this.#endpoint.close();
  }

  #receive(message: SipMessage, from: SipPeer): void {
    const { transport } = from;
    if (message.kind === 'response') this.log.add({ type: 'response', status: message.statusCode, message });
    else this.log.add({ type: 'request', method: message.method, message, transport });
    if (this.isSilent) return;
    try {
      if (message.kind === 'response') this.#forwardResponse(message);
      else this.#takeRequest(message, from);
    } catch {
      // A stateless proxy drops what it cannot route.
    }
  }

  #takeRequest(request: SipRequest, from: SipPeer): void {
    const toTag = tagOf(header(request, 'To'));
    // The ACK of an own rejection.
    if (request.method === 'ACK' && toTag?.startsWith(OWN_TAG)) return;
    const uri = parseUri(request.uri);
    const isAddressed = uri.host === this.#endpoint.uriHost && uri.port === this.#endpoint.port;
    const isForUs = isAddressed || uri.host === this.#domain;
    const number = uri.user === null ? '' : decodeURIComponent(uri.user);
    if (request.method === 'INVITE' && toTag === null) this.#count(number, header(request, 'Call-ID') ?? '');

    if (request.method === 'REGISTER' && this.refusesRegister !== null) {
      this.#answer(request, from, this.refusesRegister.status, this.refusesRegister.headers);
      return;
    }
    for (const challenger of this.#challengers) {
      const refusal = challenger.isDue(request) ? challenger.refusalOf(request) : null;
      if (refusal === null) continue;
      this.#answer(request, from, refusal.status, refusal.headers);
      return;
    }
    if (request.method === 'REGISTER') {
      this.#takeRegister(request, from);
      return;
    }
    if (isForUs && uri.user === null && request.method === 'OPTIONS') {
      if (!this.#ignoresOptions) this.#answer(request, from, 200);
      return;
    }
    const failure = toTag === null && request.method !== 'CANCEL' ? this.failures.get(number) : undefined;
    if (failure !== undefined && request.method !== 'ACK') {
      const isPaused = failure === 503 && this.retryAfterS !== null;
      this.#answer(request, from, failure, isPaused ? [['Retry-After', String(this.retryAfterS)]] : []);
      return;
    }
    const route = isForUs ? this.routes.get(number) : undefined;
    if (isForUs && route === undefined) {
      if (request.method !== 'ACK') this.#answer(request, from, request.method === 'CANCEL' ? 481 : 404);
      return;
    }
    this.#forwardRequest(request, from, route ?? null);
  }

  #takeRegister(request: SipRequest, from: SipPeer): void {
    if (this.#registrar === null) {
      this.#answer(request, from, 405);
      return;
    }
    const { expiresS: mostS = 3600, minExpiresS = 0, hasOthers = false } = this.#registrar;
    const account = decodeURIComponent(parseUri(parseNameAddr(header(request, 'To') ?? '').uri).user ?? '');
    const contact = header(request, 'Contact') ?? '';
    const requestedS = Number(header(request, 'Expires') ?? mostS);
    if (requestedS > 0 && requestedS < minExpiresS) {
      this.#answer(request, from, 423, [['Min-Expires', String(minExpiresS)]]);
      return;
    }
    const expiresS = Math.min(requestedS, mostS);
    if (expiresS === 0) this.bindings.delete(account);
    else this.bindings.set(account, { contact, expiresS });
    const others = hasOthers ? '"A, <b>" <sip:other@192.0.2.9:5060>;expires=7, ' : '';
    this.#answer(request, from, 200, expiresS === 0 ? [] : [['Contact', `${others}${contact};expires=${expiresS}`]]);
  }

  #count(number: string, callId: string): void {
    if (this.#callIds.has(callId)) return;
    this.#callIds.add(callId);
    this.inviteCounts.set(number, (this.inviteCounts.get(number) ?? 0) + 1);
  }

  /** @param route destination; null inside a dialog, which follows Route or the request URI */
  #forwardRequest(request: SipRequest, from: SipPeer, route: CarrierRoute | null): void {
    const hops = Number(header(request, 'Max-Forwards') ?? '70');
    if (hops === 0) {
      this.#answer(request, from, 483);
      return;
    }
    const routes = headers(request, 'Route');
    while (routes[0] !== undefined && this.#isOurs(parseNameAddr(routes[0]).uri)) routes.shift();
    const to = route ?? addressOf(routes[0] === undefined ? request.uri : parseNameAddr(routes[0]).uri);
    if (route !== null) request.uri = `sip:${parseUri(request.uri).user}@${uriHost(route.host)}:${route.port}`;

    if (request.method === 'INVITE') request.body = Buffer.from(this.#alterOffer(request.body.toString('utf8')));
    const [topVia = '', ...otherVias] = headers(request, 'Via');
    const branch = statelessBranch(request, topVia);
    const ownVia = `SIP/2.0/${to.transport.toUpperCase()} ${this.#endpoint.uriHost}:${this.#endpoint.port};branch=${branch}`;
    const isDialogMaking = request.method === 'INVITE' && tagOf(header(request, 'To')) === null;
    const recordRoutes = headers(request, 'Record-Route');
    for (const name of ['Via', 'Route', 'Record-Route', 'Max-Forwards']) removeHeader(request, name);
    request.headers.unshift(
      ...[ownVia, received(topVia, from), ...otherVias].map((via) => sipHeader('Via', via)),
      ...(isDialogMaking && this.#recordRoute ? this.#ownRoutes(from.transport, to.transport) : []),
      ...recordRoutes.map((value) => sipHeader('Record-Route', value)),
      ...routes.map((value) => sipHeader('Route', value)),
      sipHeader('Max-Forwards', String(hops - 1)),
    );
    this.#endpoint.send(request, to);
  }

  #forwardResponse(response: SipResponse): void {
    const [, nextVia, ...otherVias] = headers(response, 'Via');
    if (nextVia === undefined) return;
    removeHeader(response, 'Via');
    response.headers.unshift(...[nextVia, ...otherVias].map((via) => sipHeader('Via', via)));
    this.#endpoint.send(response, returnAddress(nextVia));
  }

  #ownRoutes(inbound: 'udp' | 'tcp', outbound: 'udp' | 'tcp') {
    const routeOf = (transport: 'udp' | 'tcp') =>
      sipHeader('Record-Route', `<sip:${this.#endpoint.uriHost}:${this.#endpoint.port};transport=${transport};lr>`);
    return inbound === outbound ? [routeOf(inbound)] : [routeOf(outbound), routeOf(inbound)];
  }

  #isOurs(uri: string): boolean {
    const { host, port } = parseUri(uri);
    return host === this.#endpoint.uriHost && port === this.#endpoint.port;
  }

  #answer(request: SipRequest, from: SipPeer, status: number, extra: readonly (readonly [string, string])[] = []) {
    const [topVia = '', ...otherVias] = headers(request, 'Via');
    const to = header(request, 'To') ?? '';
    const response = createResponse({
      statusCode: status,
      reasonPhrase: 'From the carrier',
      headers: [
        ...[received(topVia, from), ...otherVias].map((via): [string, string] => ['Via', via]),
        ['From', header(request, 'From') ?? ''],
        ['To', tagOf(to) === null ? `${to};tag=${OWN_TAG}-${statelessBranch(request, topVia).slice(-8)}` : to],
        ['Call-ID', header(request, 'Call-ID') ?? ''],
        ['CSeq', header(request, 'CSeq') ?? ''],
        ...extra,
      ],
    });
    this.#endpoint.send(response, from);
  }
}

/** Equal for an INVITE, its retransmissions, CANCEL and the ACK of a rejection (RFC 3261 section 16.11). */
function statelessBranch(request: SipRequest, topVia: string): string {
  const of = [parseVia(topVia).params.get('branch'), header(request, 'Call-ID'), tagOf(header(request, 'From'))];
  return `z9hG4bK-c-${createHash('sha1').update(of.join('|')).digest('hex').slice(0, 20)}`;
}

/** RFC 3261 section 18.2.1 and RFC 3581 section 4. */
function received(via: string, from: SipPeer): string {
  const parsed = parseVia(via);
  parsed.params.set('received', from.host);
  parsed.params.set('rport', String(from.port));
  return formatVia(parsed);
}

function returnAddress(via: string): SipPeer {
  const { transport, host, port, params } = parseVia(via);
  return {
    transport: transport === 'TCP' ? 'tcp' : 'udp',
    host: params.get('received') ?? host,
    port: Number(params.get('rport') ?? port ?? 5060),
  };
}

function addressOf(uri: string): SipPeer {
  const { host, port, params } = parseUri(uri);
  return {
    transport: params.get('transport')?.toLowerCase() === 'tcp' ? 'tcp' : 'udp',
    host,
    port: port ?? 5060,
  };
}
