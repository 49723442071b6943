import { randomBytes } from 'node:crypto';
import type { Codec, MediaEncryption, RemoteMedia } from '../../machines/events.ts';
import { LegKeys, type ReadKeys } from '../../sip/leg-keys.ts';
import {
  createRequest,
  createResponse,
  header,
  headers,
  parseCSeq,
  parseNameAddr,
  parseUri,
  type SipRequest,
  type SipResponse,
  tagOf,
} from '../../sip/message/index.ts';
import { buildAnswer, buildOffer, type LocalSession, type Reader, readAnswer, readOffer } from '../../sip/sdp.ts';
import { type ClientRequests, T1_MS, T2_MS } from './client-requests.ts';
import type { EventLog } from './event-log.ts';
import type { SipEndpoint, SipPeer } from './sip-endpoint.ts';
import type { SoftphoneEvent } from './softphone.ts';
import type { Voice } from './voice.ts';

export interface CallParts {
  endpoint: SipEndpoint;
  requests: ClientRequests;
  voice: Voice;
  log: EventLog<SoftphoneEvent>;
  invite: SipRequest;
  from: SipPeer;
  user: string;
  codecs: readonly Codec[];
  encryption: MediaEncryption;
  /** Modifies every sent SDP, to inject faults. */
  alterSdp: (sdp: string) => string;
  /** Answers 200 when CANCEL arrives, as if they had crossed (RFC 3261 section 9.1). */
  answerOnCancel: boolean;
}

type CallState = 'proceeding' | 'answered' | 'confirmed' | 'refused' | 'ended';

/** An incoming call: INVITE server transaction (RFC 3261 section 17.2.1, RFC 6026) and dialog. */
export class SoftphoneCall {
  state: CallState = 'proceeding';
  readonly voice: Voice;
  readonly callId: string;
  readonly #parts: CallParts;
  readonly #toTag = randomBytes(6).toString('hex');
  readonly #local: LocalSession;
  readonly #inviteSequence: number;
  #lastResponse: SipResponse | null = null;
  #resendTimer: NodeJS.Timeout | undefined;
  #localSequence = 1;
  #answerSdp: string | null = null;
  #isCancelled = false;
  #hangupWhenConfirmed = false;
  /** Last media description of the peer; null before it is parsed or without SDP. */
  #remote: RemoteMedia | null = null;
  #keys: LegKeys;

  constructor(parts: CallParts) {
    this.#parts = parts;
    this.voice = parts.voice;
    this.callId = header(parts.invite, 'Call-ID') ?? '';
    this.#inviteSequence = sequenceOf(parts.invite);
    this.#keys = new LegKeys(parts.encryption);
    this.#local = {
      host: parts.endpoint.host,
      rtpPort: parts.voice.rtpPort,
      codecs: parts.codecs,
      sessionId: 1,
      sessionVersion: 0,
    };
  }

  isOpen(): boolean {
    return this.state !== 'ended' && this.state !== 'refused';
  }

  ring(options: { withMedia: boolean }): void {
    if (this.state !== 'proceeding') return;
    this.#respond(options.withMedia ? 183 : 180, options.withMedia ? this.#answer() : null);
    if (options.withMedia && this.#remote !== null) this.voice.talkTo(this.#remote);
    this.#parts.log.add({ type: 'ringing', callId: this.callId });
  }

  answer(): void {
    if (this.state !== 'proceeding') return;
    const sdp = this.#answer();
    if (sdp === null) {
      this.reject(488);
      return;
    }
    this.state = 'answered';
    this.#respond(200, sdp);
    this.#resend(T1_MS, 0);
    if (this.#remote !== null) this.voice.talkTo(this.#remote);
    this.#parts.log.add({ type: 'answered', callId: this.callId });
  }

  reject(status: number, extraHeaders: readonly (readonly [string, string])[] = []): void {
    if (this.state !== 'proceeding') return;
    this.state = 'refused';
    this.#respond(status, null, extraHeaders);
    this.#resend(T1_MS, 0);
    this.#parts.log.add({ type: 'rejected', callId: this.callId, status });
  }

  /** Sends BYE after the ACK (RFC 3261 section 15), or rejects a ringing call. */
  hangup(reason?: string): void {
    if (this.state === 'proceeding') this.reject(603);
    if (this.state === 'answered') this.#hangupWhenConfirmed = true;
    if (this.state !== 'confirmed') return;
    this.#end('local', null);
    void this.#request('BYE', null, reason === undefined ? [] : [['Reason', reason]]);
  }

  get remote(): RemoteMedia | null {
    return this.#remote;
  }

  /** Sends a re-INVITE; resolves with the final status after the ACK. */
  async offerAgain(
    direction: RemoteMedia['direction'],
    options: { connection?: string; newKeys?: boolean } = {},
  ): Promise<number> {
    this.#local.sessionVersion++;
    if (options.newKeys) this.#keys = new LegKeys(this.#parts.encryption);
    const { encryption } = this.#keys;
    let sdp = buildOffer(this.#local, { encryption, crypto: this.#keys.offer() }).replace(
      'a=sendrecv',
      `a=${direction}`,
    );
    if (options.connection !== undefined) sdp = sdp.replace(/^c=.*$/m, `c=IN IP4 ${options.connection}`);
    const response = await this.#request('INVITE', sdp);
    const sequence = this.#localSequence - 1;
    if (response.statusCode < 300) {
      const ack = this.#inDialog('ACK', null, sequence);
      const nextHop = this.#nextHop();
      this.#parts.requests.addVia(ack, nextHop);
      this.#parts.endpoint.send(ack, nextHop);
      const { media, keys } = readAnswer(
        response.body.toString('utf8'),
        this.#reader((values) => this.#keys.readAnswer(values)),
      );
      this.#keys.agree(keys);
      this.#remote = media;
      this.voice.talkTo(media);
    }
    return response.statusCode;
  }

  /** Sends another in-dialog request; resolves with the final status. */
  async send(method: string, extraHeaders: readonly (readonly [string, string])[], body: string): Promise<number> {
    return (await this.ask(method, extraHeaders, body)).statusCode;
  }

  /** As `send`, with the whole response. Sends `copies` of the datagram. */
  ask(
    method: string,
    extraHeaders: readonly (readonly [string, string])[],
    body: string,
    { copies = 1 } = {},
  ): Promise<SipResponse> {
    const request = this.#inDialog(method, body, this.#localSequence++, extraHeaders);
    const response = this.#parts.requests.send(request, this.#nextHop());
    for (let i = 1; i < copies; i++) this.#parts.endpoint.send(request, this.#nextHop());
    return response;
  }

  receive(request: SipRequest, from: SipPeer): void {
    switch (request.method) {
      case 'INVITE':
        if (tagOf(header(request, 'To')) === null) this.#repeatResponse();
        else this.#reinvited(request, from);
        return;
      case 'ACK':
        this.#acknowledged(request);
        return;
      case 'CANCEL':
        this.#cancelled(request, from);
        return;
      case 'BYE':
        this.#parts.endpoint.send(this.#responseTo(request, this.isOpen() ? 200 : 481), from);
        if (this.isOpen()) this.#end('peer', header(request, 'Reason') ?? null);
        return;
      case 'NOTIFY':
        this.#parts.endpoint.send(this.#responseTo(request, this.isOpen() ? 200 : 481), from);
        this.#parts.log.add({ type: 'notified', callId: this.callId, message: request });
        return;
      default:
        this.#parts.endpoint.send(this.#responseTo(request, this.isOpen() ? 200 : 481), from);
    }
  }

  async stop(): Promise<void> {
    clearTimeout(this.#resendTimer);
    await this.voice.close();
  }

  #reinvited(request: SipRequest, from: SipPeer): void {
    const { media, sdp } = this.#answerTo(request);
    this.#local.sessionVersion++;
    this.#remote = media;
    const response = this.#responseTo(request, 200, sdp);
    this.#parts.endpoint.send(response, from);
    this.voice.talkTo(media);
    this.#parts.log.add({ type: 'reinvite', callId: this.callId, media });
  }

  /** @throws SipError */
  #answerTo(request: SipRequest): { media: RemoteMedia; sdp: string } {
    const reader = this.#reader((values) => this.#keys.readOffer(values));
    const offer = readOffer(request.body.toString('utf8'), reader);
    this.#keys.agree(offer.keys);
    const sdp = buildAnswer(this.#local, offer, offer.keys && this.#keys.answerTo(offer.keys));
    return { media: offer.media, sdp };
  }

  #reader(readKeys: (values: readonly string[]) => ReadKeys | null): Reader {
    return { ...this.#local, encryption: this.#parts.encryption, readKeys };
  }

  #acknowledged(request: SipRequest): void {
    if (sequenceOf(request) !== this.#inviteSequence) return;
    clearTimeout(this.#resendTimer);
    this.#resendTimer = undefined;
    if (this.state !== 'answered') return;
    this.state = 'confirmed';
    this.#parts.log.add({ type: 'confirmed', callId: this.callId, message: request });
    if (this.#hangupWhenConfirmed) this.hangup();
  }

  #cancelled(request: SipRequest, from: SipPeer): void {
    if (this.state === 'proceeding' && this.#parts.answerOnCancel) this.answer();
    this.#parts.endpoint.send(this.#responseTo(request, 200), from);
    // Over UDP it is repeated until the 200 arrives.
    if (!this.#isCancelled) this.#parts.log.add({ type: 'cancelled', callId: this.callId, message: request });
    this.#isCancelled = true;
    if (this.state !== 'proceeding') return;
    this.state = 'refused';
    this.#respond(487, null);
    this.#resend(T1_MS, 0);
    void this.voice.close();
  }

  #end(by: 'peer' | 'local', reason: string | null): void {
    this.state = 'ended';
    clearTimeout(this.#resendTimer);
    void this.voice.close();
    this.#parts.log.add({ type: 'bye', callId: this.callId, by, reason });
  }

  #respond(status: number, sdp: string | null, extraHeaders: readonly (readonly [string, string])[] = []): void {
    this.#lastResponse = this.#responseTo(this.#parts.invite, status, sdp, extraHeaders);
    this.#parts.endpoint.send(this.#lastResponse, this.#parts.from);
  }

  #repeatResponse(): void {
    if (this.#lastResponse !== null) this.#parts.endpoint.send(this.#lastResponse, this.#parts.from);
  }

  /** A 2xx is repeated over any transport (RFC 3261 section 13.3.1.4), a rejection over UDP only (section 17.2.1). */
  #resend(intervalMs: number, elapsedMs: number): void {
    if (this.state === 'refused' && this.#parts.from.transport === 'tcp') return;
    this.#resendTimer = setTimeout(() => {
      if (elapsedMs + intervalMs >= 64 * T1_MS) {
        if (this.state === 'answered') {
          this.state = 'confirmed';
          this.hangup();
        }
        return;
      }
      this.#repeatResponse();
      this.#resend(Math.min(intervalMs * 2, T2_MS), elapsedMs + intervalMs);
    }, intervalMs);
  }

  /** SDP answer to the INVITE, equal in 183 and 200; null without a common codec. */
  #answer(): string | null {
    if (this.#answerSdp !== null) return this.#answerSdp;
    try {
      const { media, sdp } = this.#answerTo(this.#parts.invite);
      this.#remote = media;
      this.#answerSdp = this.#parts.alterSdp(sdp);
    } catch {
      return null;
    }
    return this.#answerSdp;
  }

  #responseTo(
    request: SipRequest,
    status: number,
    sdp: string | null = null,
    extraHeaders: readonly (readonly [string, string])[] = [],
  ): SipResponse {
    const to = header(request, 'To') ?? '';
    const all: [string, string][] = [
      ...headers(request, 'Via').map((via): [string, string] => ['Via', via]),
      ['From', header(request, 'From') ?? ''],
      ['To', tagOf(to) === null ? `${to};tag=${this.#toTag}` : to],
      ['Call-ID', header(request, 'Call-ID') ?? ''],
      ['CSeq', header(request, 'CSeq') ?? ''],
    ];
    if (request.method === 'INVITE' && status > 100 && status < 300) {
      for (const route of headers(request, 'Record-Route')) all.push(['Record-Route', route]);
      all.push(['Contact', this.#contact()], ['Allow', 'INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE']);
    }
    for (const [name, value] of extraHeaders) all.push([name, value]);
    if (sdp !== null) all.push(['Content-Type', 'application/sdp']);
    return createResponse({
      statusCode: status,
      reasonPhrase: REASON_PHRASES[status] ?? 'Whatever',
      headers: all,
      ...(sdp === null ? {} : { body: sdp }),
    });
  }

  #contact(): string {
    const { endpoint, from, user } = this.#parts;
    return `<sip:${user}@${endpoint.uriHost}:${endpoint.port}${from.transport === 'tcp' ? ';transport=tcp' : ''}>`;
  }

  #request(method: string, body: string | null, extraHeaders: readonly (readonly [string, string])[] = []) {
    const request = this.#inDialog(method, body, this.#localSequence++, extraHeaders);
    return this.#parts.requests.send(request, this.#nextHop());
  }

  #inDialog(
    method: string,
    body: string | null,
    sequence: number,
    extraHeaders: readonly (readonly [string, string])[] = [],
  ): SipRequest {
    const { invite } = this.#parts;
    const all: [string, string][] = [
      ['Max-Forwards', '70'],
      // The route set of a UAS equals the Record-Route (RFC 3261 section 12.1.1).
      ...headers(invite, 'Record-Route').map((route): [string, string] => ['Route', route]),
      ['From', `${header(invite, 'To')};tag=${this.#toTag}`],
      ['To', header(invite, 'From') ?? ''],
      ['Call-ID', this.callId],
      ['CSeq', `${sequence} ${method}`],
      ['Contact', this.#contact()],
      ...extraHeaders.map(([name, value]): [string, string] => [name, value]),
    ];
    if (method === 'INVITE' && body !== null) all.push(['Content-Type', 'application/sdp']);
    return createRequest({ method, uri: this.#remoteTarget(), headers: all, ...(body === null ? {} : { body }) });
  }

  #remoteTarget(): string {
    const contact = header(this.#parts.invite, 'Contact');
    return contact === undefined ? this.#parts.invite.uri : parseNameAddr(contact).uri;
  }

  #nextHop(): SipPeer {
    const { invite, from } = this.#parts;
    const firstRoute = headers(invite, 'Record-Route')[0];
    const uri = parseUri(firstRoute === undefined ? this.#remoteTarget() : parseNameAddr(firstRoute).uri);
    const transport = uri.params.get('transport')?.toLowerCase() === 'tcp' ? 'tcp' : 'udp';
    const peer: SipPeer = { transport, host: uri.host, port: uri.port ?? 5060 };
    if (transport === 'tcp' && from.connection !== undefined) peer.connection = from.connection;
    return peer;
  }
}

function sequenceOf(request: SipRequest): number {
  return parseCSeq(header(request, 'CSeq') ?? '').sequence;
}

const REASON_PHRASES: Readonly<Record<number, string>> = {
  100: 'Trying',
  180: 'Ringing',
  183: 'Session Progress',
  200: 'OK',
  404: 'Not Found',
  480: 'Temporarily Unavailable',
  481: 'Call/Transaction Does Not Exist',
  486: 'Busy Here',
  487: 'Request Terminated',
  488: 'Not Acceptable Here',
  503: 'Service Unavailable',
  603: 'Decline',
};
