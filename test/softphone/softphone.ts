import { randomBytes } from 'node:crypto';
import type { Codec, MediaEncryption, RemoteMedia } from '../../machines/events.ts';
import {
  createRequest,
  createResponse,
  header,
  headers,
  parseCSeq,
  parseNameAddr,
  parseUri,
  type SipMessage,
  type SipRequest,
  tagOf,
} from '../../sip/message/index.ts';
import type { ReceivedAudio } from './audio-receiver.ts';
import { openAudioSource, type SoftphoneAudio } from './audio-source.ts';
import { SoftphoneCall } from './call.ts';
import { ClientRequests } from './client-requests.ts';
import { EventLog } from './event-log.ts';
import { SipEndpoint, type SipPeer } from './sip-endpoint.ts';
import { Voice } from './voice.ts';

export type { ReceivedAudio } from './audio-receiver.ts';
export type { SoftphoneAudio } from './audio-source.ts';

export interface SoftphoneOptions {
  name: string;
  /** Its number, such as `+919876543210`. */
  user: string;
  /** Default: 127.0.0.1. */
  host?: string;
  /** Default: 0, a free port for UDP and TCP. */
  sipPort?: number;
  /** `manual` rings until controlled; `ignore` never responds to INVITE. Default: `auto`. */
  answer?: 'auto' | 'manual' | 'ignore' | { status: number; headers?: readonly (readonly [string, string])[] };
  /** Ringing time before `answer` applies. Default: 0. */
  ringForMs?: number;
  /** Sends 183 with SDP and audio in place of 180. Default: false. */
  earlyMedia?: boolean;
  /** Default: PCMU and PCMA. */
  codecs?: readonly Codec[];
  /** SRTP if offered by the caller, otherwise 488. Default: `none`. */
  encryption?: MediaEncryption;
  /** Default: silence. */
  audio?: SoftphoneAudio;
  /** Hangs up this long after the ACK. Default: never. */
  autoHangupAfterMs?: number;
  /** Answers 200 when CANCEL arrives, as if they had crossed. */
  answerOnCancel?: boolean;
  alterSdp?: (sdp: string) => string;
}

export type SoftphoneEvent =
  | {
      type: 'invite';
      callId: string;
      /** User part of From, and the complete P-Asserted-Identity. */
      from: string | null;
      assertedIdentity: string | null;
      uri: string;
      message: SipRequest;
      transport: 'udp' | 'tcp';
    }
  | { type: 'ringing'; callId: string }
  | { type: 'answered'; callId: string }
  | { type: 'confirmed'; callId: string; message: SipRequest }
  | { type: 'rejected'; callId: string; status: number }
  | { type: 'cancelled'; callId: string; message: SipRequest }
  | { type: 'reinvite'; callId: string; media: RemoteMedia }
  /** A NOTIFY, such as the result of a REFER (RFC 3515). */
  | { type: 'notified'; callId: string; message: SipRequest }
  | { type: 'bye'; callId: string; by: 'peer' | 'local'; reason: string | null };

/** Starts a phone with real SIP, real RTP and its own ports. */
export async function startSoftphone(options: SoftphoneOptions): Promise<Softphone> {
  return await Softphone.start(options);
}

export class Softphone {
  readonly name: string;
  readonly user: string;
  readonly log = new EventLog<SoftphoneEvent>();
  readonly calls: SoftphoneCall[] = [];
  readonly counts = { invites: 0, inviteRetransmissions: 0 };
  readonly #options: SoftphoneOptions;
  readonly #timers = new Set<NodeJS.Timeout>();
  #endpoint!: SipEndpoint;
  #requests!: ClientRequests;

  private constructor(options: SoftphoneOptions) {
    this.#options = options;
    this.name = options.name;
    this.user = options.user;
  }

  static async start(options: SoftphoneOptions): Promise<Softphone> {
    const phone = new Softphone(options);
    phone.#endpoint = await SipEndpoint.open({
      host: options.host ?? '127.0.0.1',
      port: options.sipPort ?? 0,
      onMessage: (message, from) => phone.#receive(message, from),
    });
    phone.#requests = new ClientRequests(phone.#endpoint);
    return phone;
  }

  get address(): { host: string; port: number; transport: 'udp' } {
    return { host: this.#endpoint.host, port: this.#endpoint.port, transport: 'udp' };
  }

  get sipUri(): string {
    return `sip:${this.#endpoint.uriHost}:${this.#endpoint.port}`;
  }

  get call(): SoftphoneCall {
    const call = this.calls.at(-1);
    if (call === undefined) throw new Error(`${this.name} had no call`);
    return call;
  }

  until<Type extends SoftphoneEvent['type']>(
    type: Type,
    matches?: (event: Extract<SoftphoneEvent, { type: Type }>) => boolean,
    timeoutMs?: number,
  ): Promise<Extract<SoftphoneEvent, { type: Type }>> {
    return this.log.until(type, matches, timeoutMs);
  }

  answer(): void {
    this.call.answer();
  }

  reject(status: number): void {
    this.call.reject(status);
  }

  hangup(reason?: string): void {
    this.call.hangup(reason);
  }

  hold(): Promise<number> {
    return this.call.offerAgain('sendonly');
  }

  unhold(): Promise<number> {
    return this.call.offerAgain('sendrecv');
  }

  sendDtmf(digits: string): void {
    for (const digit of digits) this.call.voice.press(digit);
  }

  received(): ReceivedAudio {
    return this.call.voice.receiver.received();
  }

  /** Longest gap in the audio that it sent in the last call. */
  get longestGapMs(): number {
    return this.call.voice.longestGapMs;
  }

  /** Resolves when the received audio of the last call satisfies `isEnough`. */
  async untilReceived(isEnough: Parameters<Voice['untilReceived']>[0], timeoutMs = 60_000) {
    await this.until('invite');
    return await this.call.voice.untilReceived(isEnough, timeoutMs);
  }

  async untilTone(frequencyHz: number, aboveDbov?: number) {
    await this.until('invite');
    return await this.call.voice.untilTone(frequencyHz, aboveDbov);
  }

  /** Sends an out-of-dialog request; resolves with its final status. */
  async sendOutside(method: string, uri: string): Promise<number> {
    const { host, port } = parseUri(uri);
    const request = createRequest({
      method,
      uri,
      headers: [
        ['Max-Forwards', '70'],
        ['From', `<sip:${this.user}@${this.#endpoint.uriHost}>;tag=${randomBytes(6).toString('hex')}`],
        ['To', `<${uri}>`],
        ['Call-ID', randomBytes(12).toString('hex')],
        ['CSeq', `1 ${method}`],
        ['Contact', `<sip:${this.user}@${this.#endpoint.uriHost}:${this.#endpoint.port}>`],
      ],
    });
    const response = await this.#requests.send(request, { transport: 'udp', host, port: port ?? 5060 });
    return response.statusCode;
  }

  /** Closes all sockets without notifying peers. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#requests.close();
    await Promise.all([...this.calls.map((call) => call.stop()), this.#endpoint.close()]);
  }

  #receive(message: SipMessage, from: SipPeer): void {
    if (message.kind === 'response') {
      this.#requests.take(message);
      return;
    }
    const call = this.calls.find(({ callId }) => callId === header(message, 'Call-ID'));
    if (message.method === 'INVITE' && tagOf(header(message, 'To')) === null) {
      if (call !== undefined) this.counts.inviteRetransmissions++;
      else if (this.#starting.has(header(message, 'Call-ID') ?? '')) this.counts.inviteRetransmissions++;
      else void this.#ring(message, from);
    }
    if (call !== undefined) call.receive(message, from);
    else if (message.method !== 'ACK' && message.method !== 'INVITE') this.#answerOutside(message, from);
  }

  readonly #starting = new Set<string>();

  async #ring(invite: SipRequest, from: SipPeer): Promise<void> {
    const options = this.#options;
    const callId = header(invite, 'Call-ID') ?? '';
    this.#starting.add(callId);
    this.counts.invites++;
    const voice = await Voice.open({
      host: this.#endpoint.host,
      source: await openAudioSource(options.audio ?? { kind: 'silence' }),
      hasOpus: options.codecs?.includes('OPUS'),
    });
    const call = new SoftphoneCall({
      endpoint: this.#endpoint,
      requests: this.#requests,
      voice,
      log: this.log,
      invite,
      from,
      user: this.user,
      codecs: options.codecs ?? ['PCMU', 'PCMA'],
      encryption: options.encryption ?? 'none',
      alterSdp: options.alterSdp ?? ((sdp) => sdp),
      answerOnCancel: options.answerOnCancel ?? false,
    });
    this.calls.push(call);
    this.log.add({
      type: 'invite',
      callId,
      from: parseUri(parseNameAddr(header(invite, 'From') ?? '').uri).user,
      assertedIdentity: header(invite, 'P-Asserted-Identity') ?? null,
      uri: invite.uri,
      message: invite,
      transport: from.transport,
    });
    this.#proceed(call);
  }

  #proceed(call: SoftphoneCall): void {
    const { answer = 'auto', ringForMs = 0, earlyMedia = false, autoHangupAfterMs } = this.#options;
    if (answer === 'ignore') return;
    if (autoHangupAfterMs !== undefined) {
      void this.log
        .until('confirmed', ({ callId }) => callId === call.callId, 60_000)
        .then(
          () => this.#after(autoHangupAfterMs, () => call.hangup()),
          () => {},
        );
    }
    call.ring({ withMedia: earlyMedia });
    if (answer === 'manual') return;
    this.#after(ringForMs, () => {
      if (answer === 'auto') call.answer();
      else call.reject(answer.status, answer.headers);
    });
  }

  #after(ms: number, action: () => void): void {
    if (ms === 0) {
      action();
      return;
    }
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      action();
    }, ms);
    this.#timers.add(timer);
  }

  /** OPTIONS probes a trunk; any other out-of-dialog request belongs to an ended call. */
  #answerOutside(request: SipRequest, from: SipPeer): void {
    const to = header(request, 'To') ?? '';
    const status = request.method === 'OPTIONS' ? 200 : 481;
    const response = createResponse({
      statusCode: status,
      reasonPhrase: status === 200 ? 'OK' : 'Call/Transaction Does Not Exist',
      headers: [
        ...headers(request, 'Via').map((via): [string, string] => ['Via', via]),
        ['From', header(request, 'From') ?? ''],
        ['To', tagOf(to) === null ? `${to};tag=none` : to],
        ['Call-ID', header(request, 'Call-ID') ?? ''],
        ['CSeq', `${parseCSeq(header(request, 'CSeq') ?? '').sequence} ${request.method}`],
      ],
    });
    this.#endpoint.send(response, from);
  }
}
