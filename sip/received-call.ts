import type { HangupCause } from '../machines/events.ts';
import { reasonHeaderOf, statusOfCause } from './failure-cause.ts';
import { ALLOWED_METHODS, rejectsExtensions } from './leg-invite.ts';
import { LegKeys } from './leg-keys.ts';
import { splitList, userOf, userOfUri } from './message/index.ts';
import { offersAudio } from './sdp.ts';
import { sdpOf } from './sdp-body.ts';
import type { InboundCall, LegDialog } from './sip-gateway.ts';
import type { SrfReceivedRequest, SrfReply } from './srf-types.ts';

/** Values of Privacy that withhold the number: RFC 3323 §4.2, RFC 3325 §9.3. */
const WITHHOLDING: ReadonlySet<string> = new Set(['id', 'user', 'header']);

function callerOf(request: Pick<SrfReceivedRequest, 'get'>): string {
  const privacy = (request.get('Privacy') ?? '').toLowerCase().split(/[;,]/);
  if (privacy.some((value) => WITHHOLDING.has(value.trim()))) return '';
  // It may have two values, a SIP and a tel URI (RFC 3325 §9.1).
  const asserted = splitList(request.get('P-Asserted-Identity') ?? '').map(userOf);
  return asserted.find((user) => user !== '') ?? userOf(request.get('From'));
}

/** An UPDATE before the answer may change the peer's contact or identity, but not make an offer (RFC 3311 §5.2). */
function respondToUpdate(update: SrfReceivedRequest, reply: SrfReply): void {
  if (rejectsExtensions(update, reply)) return;
  if (sdpOf(update) === undefined) reply.send(200, { headers: { Allow: ALLOWED_METHODS } });
  else reply.send(500, { headers: { 'Retry-After': '5' } });
}

/** A peer's INVITE without a final response. */
export class ReceivedCall implements InboundCall {
  readonly called: string;
  readonly to: string;
  readonly caller: string;
  readonly source: { host: string; port: number };
  readonly authorization: string | undefined;
  readonly #request: Pick<SrfReceivedRequest, 'get' | 'body'>;
  readonly #reply: SrfReply;
  readonly #abandoned = new AbortController();
  readonly #answer: InboundCall['answer'];
  readonly traceAs: InboundCall['traceAs'];
  #isOver = false;

  /** @param answer creates the leg, which sends the 200 */
  constructor(
    request: Pick<SrfReceivedRequest, 'uri' | 'get' | 'body' | 'on'>,
    reply: SrfReply,
    { source, answer, traceAs }: Pick<InboundCall, 'source' | 'answer' | 'traceAs'>,
  ) {
    this.#request = request;
    this.#reply = reply;
    this.#answer = answer;
    this.traceAs = traceAs;
    this.called = userOfUri(request.uri);
    this.to = userOf(request.get('To'));
    this.caller = callerOf(request);
    this.authorization = request.get('Authorization');
    this.source = source;
    request.on('cancel', () => {
      if (this.#isOver) return;
      this.#isOver = true;
      this.#abandoned.abort();
    });
    request.on('update', respondToUpdate);
  }

  get abandoned(): AbortSignal {
    return this.#abandoned.signal;
  }

  offersAudio({ codecs, mediaEncryption: encryption }: Parameters<InboundCall['offersAudio']>[0]): boolean {
    const offer = sdpOf(this.#request);
    const keys = new LegKeys(encryption);
    return offer === undefined || offersAudio(offer, { codecs, encryption, readKeys: (each) => keys.readOffer(each) });
  }

  ring(): void {
    if (!this.#isOver) this.#reply.send(180, {});
  }

  refuse(cause: HangupCause): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#reply.send(statusOfCause(cause), { headers: { Reason: reasonHeaderOf(cause), Allow: ALLOWED_METHODS } });
  }

  challenge(challenge: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#reply.send(401, { headers: { 'WWW-Authenticate': challenge } });
  }

  answer(request: Parameters<InboundCall['answer']>[0]): LegDialog {
    this.#isOver = true;
    return this.#answer(request);
  }
}
