import type { HangupCause, LegEvent, RemoteMedia } from '../machines/events.ts';
import { causeOfBye, causeOfStatus, reasonHeaderOf } from './failure-cause.ts';
import { respondToInfo } from './info-digit.ts';
import { challengerOf, isChallenge, LegCredentials } from './leg-credentials.ts';
import {
  allowedBy,
  firstInvite,
  invitedAgain,
  type LegInvite,
  rejectsShortSession,
  SESSION_S,
  sessionHeaders,
} from './leg-invite.ts';
import { LegNegotiation } from './leg-negotiation.ts';
import { outcomeOfError, outcomeOfResponse, type RefusedOutcome } from './leg-outcome.ts';
import { dialogHandle } from './lost-leg.ts';
import { parseSessionExpires, splitList, tagOf } from './message/index.ts';
import { ReceivedReferral, readReferTo } from './referral.ts';
import { sdpOf } from './sdp-body.ts';
import type { DialRequest, LegDialog, LegHandle, TrunkSign } from './sip-gateway.ts';
import { PLACEHOLDER, type SrfConnection, type SrfSent } from './srf-connection.ts';
import type {
  SrfAcknowledge,
  SrfReceivedRequest,
  SrfReply,
  SrfRequestOptions,
  SrfResponse,
  SrfSentRequest,
} from './srf-types.ts';
import { secondsOf, signOfResponse, UNREACHABLE } from './trunk-sign.ts';

export interface LegParts {
  connection: SrfConnection;
  request: DialRequest;
  /** The peer's INVITE, if the leg is inbound. Null: the leg sends one. */
  received: { request: SrfReceivedRequest; reply: SrfReply } | null;
  /** Our host in From and P-Asserted-Identity; the server replaces `localhost` by its address. */
  ownHost: string;
  /** Whether one of our own legs receives at this port: media sent there would loop. */
  isOwnMedia: (host: string, port: number) => boolean;
  /** Called when an INVITE was sent, with its Call-ID. */
  onInviteSent: (sipCallId: string) => void;
  onDialog: (dialogId: string) => void;
  onHandle: (handle: LegHandle) => void;
  /** Called after the leg's last event. */
  onOver: () => void;
}

/**
 * `inviting`: no final response yet. `cancelling`: the same, after our CANCEL. `accepting`: our 2xx to the peer's
 * INVITE has no ACK yet. `answered`: the 2xx was acknowledged. `clearing`: BYE sent. `over`: the last event was
 * emitted.
 */
type Phase = 'inviting' | 'cancelling' | 'accepting' | 'answered' | 'clearing' | 'over';

/**
 * One leg, from its INVITE, ours or the peer's, to its last event. It uses transactions instead of drachtio-srf's
 * dialogs. Those reject a 2xx without Contact and leave it ringing, throw on a re-INVITE without SDP, and hang in
 * `modify`.
 *
 * It has no timers: `machines/leg.machine.ts` owns every deadline of a leg, and aborts the signal.
 */
export class SipLeg implements LegDialog {
  readonly #parts: LegParts;
  readonly #negotiation: LegNegotiation;
  readonly #inviteCredentials: LegCredentials;
  readonly #byeCredentials: LegCredentials;
  #phase: Phase = 'inviting';
  #invite: SrfSentRequest | null = null;
  #dialogId: string | null = null;
  /** Ends the leg without this object. */
  #handle: LegHandle | null = null;
  #lastRinging = '';
  #ringingCount = 0;
  #isReported = false;
  #hasTrunkAnswered = false;
  /** Hang up as soon as our 2xx is acknowledged. */
  #mustHangUp = false;
  #isOffering = false;
  /** Another re-INVITE must follow it. */
  #isOfferDue = false;
  #offerAttempts = 0;
  /** Key presses by INFO in the current second. */
  #infos = 0;
  #infosSinceMs = 0;
  #referral: ReceivedReferral | null = null;
  /** Session timer interval that we request, or that was agreed. */
  #sessionS = SESSION_S;
  #sessionRaises = 0;
  /** Our hangup cause, for the Reason header and `leg.ended`. */
  #localCause: HangupCause = 'NORMAL_CLEARING';

  constructor(parts: LegParts) {
    this.#parts = parts;
    const { trunk } = parts.request;
    this.#negotiation = new LegNegotiation(parts.request, parts.isOwnMedia);
    this.#inviteCredentials = new LegCredentials(trunk, 'INVITE');
    this.#byeCredentials = new LegCredentials(trunk, 'BYE');
  }

  /** Sends the INVITE. Every outcome is an event, emitted after this returns. */
  start(): void {
    const { signal } = this.#parts.request;
    if (signal.aborted) {
      this.#phase = 'cancelling';
      setImmediate(() => this.#cancelled());
      return;
    }
    signal.addEventListener('abort', this.#onAbort, { once: true });
    try {
      const { request, received, ownHost } = this.#parts;
      if (received !== null) this.#accept(received);
      else this.#sendInvite(firstInvite(request, ownHost, this.#negotiation.offer()));
    } catch (error) {
      setImmediate(() => this.#refuse(outcomeOfError(error)));
    }
  }

  #accept({ request, reply }: NonNullable<LegParts['received']>): void {
    this.#phase = 'accepting';
    this.#negotiation.peerHost = request.source_address;
    const session = sessionAgreed(request);
    const headers = { ...session, Allow: allowedBy(this.#parts.request) };
    const onSent = (error: unknown) => {
      if (error) setImmediate(() => this.#abandoned());
      // The usual id belongs to our other leg if a proxy routed our own INVITE back to us.
      else this.#enterDialog(reply.stackDialogId || dialogIdOf(request));
    };
    const accept: SrfReply = { send: (status, options) => reply.send(status, options, onSent) };
    const media = this.#negotiation.takeRequest(request, accept, headers);
    if (media !== null || sdpOf(request) === undefined) return;
    const detail = 'the offer has no usable SDP';
    setImmediate(() => this.#refuse({ sipStatus: 488, hangupCause: 'INCOMPATIBLE_DESTINATION', detail }));
  }

  /** The caller's CANCEL crossed our 2xx, which the server has dropped. No ACK will follow. */
  #abandoned(): void {
    if (this.#phase !== 'accepting') return;
    this.#finish({ type: 'leg.ended', by: 'peer', hangupCause: 'ORIGINATOR_CANCEL' });
  }

  /** Handles the ACK of our 2xx. It carries the SDP answer if the INVITE had no offer. */
  #accepted(): void {
    const media = this.#negotiation.remote;
    if (this.#mustHangUp) this.#clear();
    else if (media === null) {
      this.#report({
        type: 'leg.refused',
        sipStatus: 488,
        hangupCause: 'INCOMPATIBLE_DESTINATION',
        detail: 'the ACK has no usable SDP',
      });
      this.#localCause = 'INCOMPATIBLE_DESTINATION';
      this.#clear();
    } else {
      this.#phase = 'answered';
      this.#emit({ type: 'leg.answered', sipStatus: 200, media });
    }
  }

  hangup(cause: HangupCause): void {
    if (this.#phase === 'accepting') {
      // BYE must not precede the ACK (RFC 3261 §15).
      this.#localCause = cause;
      this.#mustHangUp = true;
    } else if (this.#phase === 'inviting') {
      this.#localCause = cause;
      this.#phase = 'cancelling';
      this.#sendCancel();
    } else if (this.#phase === 'answered') {
      // NOTIFY must precede the BYE.
      this.#referral?.report(487);
      this.#localCause = cause;
      this.#clear();
    }
  }

  hold(isHeld: boolean): void {
    this.#offerAttempts = 0;
    this.#negotiation.isHolding = isHeld;
    this.offerAgain();
  }

  offerAgain(): void {
    if (this.#phase !== 'answered') return;
    // One re-INVITE at a time (RFC 3261 §14.1). Its content is decided when it is sent.
    if (this.#isOffering) this.#isOfferDue = true;
    else this.#sendOffer({}, new LegCredentials(this.#parts.request.trunk, 'INVITE'));
  }

  /** Call when the connection to the SIP server is lost, and with it the server's state of this leg. */
  lost(detail: string): void {
    if (this.#phase === 'clearing') this.#endedByUs();
    else this.#finish({ type: 'leg.lost', detail });
  }

  /** Handles a request in our dialog, from the peer or from the server itself. */
  receive(request: SrfReceivedRequest, reply: SrfReply): void {
    switch (request.method) {
      case 'ACK': {
        // The ACK identifies the dialog reliably.
        if (request.stackDialogId) this.#dialogId = request.stackDialogId;
        const media = this.#negotiation.takeAcknowledgement(request);
        if (this.#phase === 'accepting') {
          const { received } = this.#parts;
          const dialogId = this.#dialogId ?? '';
          const message = received?.request ?? request;
          this.#setHandle(dialogHandle({ dialogId, invite: null, message, tagged: request }));
          this.#accepted();
        } else this.#changedMedia(media);
        return;
      }
      case 'BYE':
        reply.send(200, {});
        this.#takeBye(request);
        return;
      case 'INVITE':
      case 'UPDATE':
        // The server's own refresh was challenged, or needs our media keys.
        if (request.source === 'application') this.offerAgain();
        else this.#renegotiate(request, reply);
        return;
      case 'OPTIONS':
        reply.send(200, { headers: { Allow: allowedBy(this.#parts.request) } });
        return;
      case 'INFO':
        this.#takeInfo(request, reply);
        return;
      case 'REFER':
        this.#takeReferral(request, reply);
        return;
      default:
        reply.send(405, { headers: { Allow: allowedBy(this.#parts.request) } });
    }
  }

  /** Null once the leg is over, and before the server has sent anything for it. */
  get handle(): LegHandle | null {
    return this.#phase === 'over' ? null : this.#handle;
  }

  receivesAt(host: string, port: number): boolean {
    const { localMedia } = this.#parts.request;
    return host === localMedia.host && (port === localMedia.rtpPort || port === localMedia.rtpPort + 1);
  }

  dump(): unknown {
    return {
      callId: this.#parts.request.callId,
      phase: this.#phase,
      dialogId: this.#dialogId,
      media: this.#negotiation.remote,
    };
  }

  /** Later messages are still handled: a 200 that crosses our CANCEL is acknowledged and ended with BYE. */
  readonly #onAbort = () => {
    this.hangup('NORMAL_CLEARING');
    if (this.#phase === 'cancelling') this.#cancelled();
    else this.#endedByUs();
  };

  #sendInvite(invite: LegInvite): void {
    this.#parts.connection.request(invite.uri, invite.options, (outcome) => this.#inviteSent(invite, outcome));
  }

  #inviteSent(invite: LegInvite, outcome: SrfSent): void {
    if (outcome.kind === 'not-sent') this.#reportSign(UNREACHABLE);
    if (this.#phase === 'over' && outcome.kind !== 'sent') return;
    if (outcome.kind === 'unknown') {
      this.#finish({ type: 'leg.lost', detail: 'the SIP server did not confirm the INVITE' });
      return;
    }
    if (outcome.kind === 'not-sent') {
      if (this.#phase === 'cancelling') this.#cancelled();
      else this.#refuse({ sipStatus: 503, hangupCause: causeOfStatus(503), detail: outcome.detail });
      return;
    }
    const sent = outcome.request;
    this.#parts.onInviteSent(sent.get('Call-ID') ?? '');
    this.#invite = sent;
    if (sent.stackTxnId) {
      this.#setHandle({ kind: 'invite', transactionId: sent.stackTxnId, dialogId: dialogIdOf(sent) });
    }
    sent.on('response', (response: SrfResponse, acknowledge: SrfAcknowledge) => {
      this.#reportSign(signOfResponse(response));
      const retryAfterS = response.status === 503 ? secondsOf(response.get('Retry-After')) : null;
      if (retryAfterS !== null) this.#parts.request.onSign?.({ type: 'busy', retryAfterS });
      const changes = this.#changesFor(response, sent.uri);
      if (changes === null || !this.#tryAgain(invite, sent, { changes, nextHop: challengerOf(response) })) {
        this.#takeResponse(response, acknowledge);
      }
    });
    // Until the INVITE has a final response, drachtio-srf delivers an UPDATE only here.
    sent.on('update', (update: SrfReceivedRequest, reply: SrfReply) => this.#renegotiate(update, reply));
    if (this.#phase !== 'inviting') this.#sendCancel();
  }

  /** The first response shows that the trunk works. A later timeout is the callee's or another hop's. */
  #reportSign(sign: TrunkSign): void {
    if (this.#hasTrunkAnswered) return;
    this.#hasTrunkAnswered = sign.type === 'answered';
    this.#parts.request.onSign?.(sign);
  }

  #takeResponse(response: SrfResponse, acknowledge: SrfAcknowledge): void {
    if (response.status < 300) {
      this.#enterDialog(response.stackDialogId || dialogIdOf(response));
    }
    this.#negotiation.peerHost = response.source_address;
    if (response.status < 200) this.#takeProvisional(response, acknowledge);
    else if (response.status < 300) this.#takeAnswer(response, acknowledge);
    else this.#takeRefusal(response);
  }

  #enterDialog(dialogId: string): void {
    this.#dialogId = dialogId;
    if (this.#phase !== 'over') this.#parts.onDialog(dialogId);
  }

  #takeProvisional(response: SrfResponse, acknowledge: SrfAcknowledge): void {
    if (response.has('RSeq')) tryTo(acknowledge);
    if (this.#phase !== 'inviting' || response.status === 100) return;
    const sdp = sdpOf(response);
    if (sdp !== undefined) this.#negotiation.takeEarlyAnswer(sdp, tagOf(response.get('To')));
    this.#emitRinging({ type: 'leg.ringing', sipStatus: response.status, earlyMedia: this.#negotiation.remote });
  }

  /** Drops repeated provisional responses, which peers send as keepalives or as a flood. */
  #emitRinging(event: LegEvent): void {
    const asText = JSON.stringify(event);
    if (asText === this.#lastRinging || this.#ringingCount >= MAX_RINGING_EVENTS) return;
    this.#lastRinging = asText;
    this.#ringingCount++;
    this.#emit(event);
  }

  #takeAnswer(response: SrfResponse, acknowledge: SrfAcknowledge): void {
    tryTo(acknowledge);
    if (this.#phase !== 'inviting') {
      // The 200 crossed our CANCEL (RFC 3261 §9.1), or the owner gave the leg up. End the dialog.
      this.#clear();
      return;
    }
    const media = this.#negotiation.takeAnswer(sdpOf(response), tagOf(response.get('To')));
    if (media === null) {
      this.#report({
        type: 'leg.refused',
        sipStatus: 488,
        hangupCause: 'INCOMPATIBLE_DESTINATION',
        ...(this.#negotiation.isUnencrypted
          ? { detail: 'the answer has no media encryption, which the trunk requires', isUnencrypted: true }
          : { detail: 'the answer has no usable SDP' }),
      });
      this.#localCause = 'INCOMPATIBLE_DESTINATION';
      this.#clear();
      return;
    }
    this.#phase = 'answered';
    const dialogId = this.#dialogId ?? '';
    this.#setHandle(dialogHandle({ dialogId, invite: this.#invite, message: response }));
    this.#sessionS = parseSessionExpires(response.get('Session-Expires'))?.seconds ?? this.#sessionS;
    this.#emit({ type: 'leg.answered', sipStatus: response.status, media });
  }

  /** The server sends the ACK of a rejection. */
  #takeRefusal(response: SrfResponse): void {
    if (this.#phase === 'cancelling') {
      const isCancelled = response.status === 487 || isChallenge(response.status);
      if (isCancelled) this.#cancelled();
      else this.#refuse(outcomeOfResponse(response, this.#inviteCredentials));
      return;
    }
    if (this.#phase === 'inviting') this.#refuse(outcomeOfResponse(response, this.#inviteCredentials));
  }

  /** Headers that another INVITE needs to succeed; null if none would help. */
  #changesFor(response: SrfResponse, uri: string): Record<string, string> | null {
    if (isChallenge(response.status)) {
      return this.#inviteCredentials.answer(response, uri);
    }
    const longer = response.status === 422 ? this.#longerSession(response) : null;
    return longer && { ...longer, ...this.#inviteCredentials.again(uri) };
  }

  /** Handles 422 Session Interval Too Small (RFC 4028 §7.3). */
  #longerSession(response: SrfResponse): Record<string, string> | null {
    const least = parseSessionExpires(response.get('Min-SE'))?.seconds ?? 0;
    if (least <= this.#sessionS || ++this.#sessionRaises > MOST_SESSION_RAISES) return null;
    this.#sessionS = least;
    return sessionHeaders(least, least);
  }

  #tryAgain(
    invite: LegInvite,
    sent: SrfSentRequest,
    how: { changes: Record<string, string>; nextHop: string | null },
  ): boolean {
    const again = this.#phase === 'inviting' ? invitedAgain(invite, sent, how) : null;
    if (again === null) return false;
    this.#invite = null;
    this.#sendInvite(again);
    return true;
  }

  #sendCancel(): void {
    // Not sent yet: `#inviteSent` calls this again.
    if (this.#invite === null) return;
    const invite = this.#invite;
    const Reason = reasonHeaderOf(this.#localCause);
    // The response to the INVITE decides; the server does not deliver the one to the CANCEL.
    tryTo(() => invite.cancel({ headers: { Reason } }, () => {}));
  }

  #cancelled(): void {
    this.#refuse({ sipStatus: 487, hangupCause: 'ORIGINATOR_CANCEL', detail: 'cancelled' });
  }

  #clear(): void {
    if (this.#phase !== 'over') this.#phase = 'clearing';
    this.#sendBye({});
  }

  #sendBye(authorization: Record<string, string>): void {
    const headers = { Reason: reasonHeaderOf(this.#localCause), ...authorization };
    const stackDialogId = this.#dialogId ?? '';
    this.#parts.connection.request(PLACEHOLDER, { method: 'BYE', stackDialogId, headers }, (outcome) => {
      if (outcome.kind !== 'sent') {
        // The server already ended the dialog, as drachtio-server does after a 200 that crosses a CANCEL.
        this.#endedByUs();
        return;
      }
      outcome.request.on('response', (response: SrfResponse) => {
        const { uri } = outcome.request;
        const credentials = isChallenge(response.status) ? this.#byeCredentials.answer(response, uri) : null;
        if (credentials === null) this.#endedByUs();
        else this.#sendBye(credentials);
      });
    });
  }

  /** Sends a re-INVITE with the current direction. */
  #sendOffer(authorization: Record<string, string>, credentials: LegCredentials): void {
    this.#isOffering = true;
    // A re-INVITE without session timer headers would end the timer (RFC 4028 §7.2).
    const session = { Supported: 'timer', ...sessionHeaders(this.#sessionS) };
    const headers = { 'Content-Type': 'application/sdp', ...session, ...authorization };
    const body = this.#negotiation.offerAgain();
    const options = { method: 'INVITE', stackDialogId: this.#dialogId ?? '', headers, body };
    this.#parts.connection.request(PLACEHOLDER, options, (outcome) => {
      if (outcome.kind !== 'sent') {
        // The server rejects it while an INVITE of the peer is pending.
        this.#offerRefused(491);
        return;
      }
      const { request } = outcome;
      request.on('response', (response: SrfResponse, acknowledge: SrfAcknowledge) => {
        if (response.status < 200) return;
        if (response.status < 300) {
          tryTo(acknowledge);
          this.#changedMedia(this.#negotiation.takeLaterAnswer(sdpOf(response)));
          this.#endOffer();
          return;
        }
        const answer = isChallenge(response.status) ? credentials.answer(response, request.uri) : null;
        const isTooShort = response.status === 422 && this.#longerSession(response) !== null;
        if (isTooShort && this.#phase === 'answered') this.#sendOffer(credentials.again(request.uri), credentials);
        else if (answer === null) this.#offerRefused(response.status);
        else if (this.#phase === 'answered') this.#sendOffer(answer, credentials);
      });
    });
  }

  /** Keeps the session unchanged, unless the peer no longer knows the dialog (RFC 3261 §14.1). */
  #offerRefused(status: number): void {
    this.#endOffer();
    if (this.#phase !== 'answered') return;
    if (TEMPORARY_REFUSALS.has(status) && ++this.#offerAttempts < MOST_OFFER_ATTEMPTS)
      this.#emit({ type: 'leg.glare' });
    else if (status === 481 || status === 408) this.hangup('RECOVERY_ON_TIMER_EXPIRE');
  }

  #endOffer(): void {
    this.#isOffering = false;
    if (!this.#isOfferDue) return;
    this.#isOfferDue = false;
    this.offerAgain();
  }

  #endedByUs(): void {
    this.#finish({ type: 'leg.ended', by: 'local', hangupCause: this.#localCause });
  }

  /**
   * Over UDP, or behind a proxy with several processes, the BYE may overtake the ACK. It proves that the peer has our
   * 2xx.
   */
  #acknowledgedByBye(): void {
    const media = this.#negotiation.remote;
    if (this.#phase !== 'accepting' || this.#mustHangUp || media === null) return;
    this.#phase = 'answered';
    this.#emit({ type: 'leg.answered', sipStatus: 200, media });
  }

  #takeBye(request: SrfReceivedRequest): void {
    if (this.#phase === 'clearing' || this.#phase === 'cancelling') {
      this.#endedByUs();
    } else if (this.#phase === 'answered' || this.#phase === 'accepting') {
      // The server's own BYE: the ACK of a 2xx never came, or a session timer expired.
      const isServers = request.source === 'application';
      if (!isServers) this.#acknowledgedByBye();
      this.#finish(
        isServers
          ? { type: 'leg.ended', by: 'local', hangupCause: 'RECOVERY_ON_TIMER_EXPIRE' }
          : { type: 'leg.ended', by: 'peer', hangupCause: causeOfBye(request.get('Reason')) },
      );
    }
  }

  /** Handles a re-INVITE or UPDATE: hold, another codec or address, or only a session refresh. */
  #renegotiate(request: SrfReceivedRequest, reply: SrfReply): void {
    if (this.#phase === 'over' || this.#phase === 'clearing') {
      reply.send(481, {});
      return;
    }
    if (this.#isOffering && (request.method === 'INVITE' || sdpOf(request) !== undefined)) {
      // Glare (RFC 3261 §14.2, RFC 3311 §5.2).
      reply.send(491, {});
      return;
    }
    if (rejectsShortSession(request, reply)) return;
    this.#changedMedia(this.#negotiation.takeRequest(request, reply, sessionAgreed(request)));
  }

  /** Each INFO arrives once, because the server answers retransmissions (RFC 3261 §17.2.2). */
  #takeInfo(request: SrfReceivedRequest, reply: SrfReply): void {
    const content = respondToInfo(request, reply);
    if (content.kind !== 'digit' || this.#phase !== 'answered') return;
    // Phones with telephone events may send each key both ways.
    if (this.#negotiation.remote?.telephoneEventPayloadType !== null) return;
    const nowMs = performance.now();
    if (nowMs - this.#infosSinceMs >= 1000) {
      this.#infosSinceMs = nowMs;
      this.#infos = 0;
    }
    if (this.#infos++ >= MOST_INFO_DIGITS_PER_S) return;
    this.#emit({ type: 'leg.pressed', digit: content.digit, durationMs: content.durationMs });
  }

  /** Asks the leg's owner whether to transfer the call (RFC 3515). */
  #takeReferral(request: SrfReceivedRequest, reply: SrfReply): void {
    const { onReferral } = this.#parts.request;
    const read = readReferTo(request);
    if (this.#phase !== 'answered') reply.send(481, {});
    else if (onReferral === undefined) reply.send(603, {});
    else if ('refusal' in read) reply.send(read.refusal, {});
    else if (this.#referral?.isReported === false) reply.send(491, {});
    else {
      const referral = new ReceivedReferral({
        ...{ ...read, request, isRepeated: this.#referral !== null },
        notify: (options) => this.#notify(options),
      });
      this.#referral = referral;
      void onReferral(referral)
        .catch(() => 500)
        .then((status) => {
          reply.send(status, {});
          if (status === 202) referral.begin();
          else this.#referral = null;
        });
    }
  }

  /** Ignores the response: the transfer does not depend on it. */
  #notify(options: Pick<SrfRequestOptions, 'method' | 'headers' | 'body'>): void {
    if (this.#phase !== 'answered') return;
    const request = { ...options, stackDialogId: this.#dialogId ?? '' };
    this.#parts.connection.request(PLACEHOLDER, request, () => {});
  }

  #changedMedia(media: RemoteMedia | null): void {
    if (media === null) return;
    if (this.#phase === 'answered') this.#emit({ type: 'leg.media', media });
    // An UPDATE moves early media to another address, as a further 183 may (RFC 3311 §5.2).
    if (this.#phase === 'inviting') this.#emitRinging({ type: 'leg.ringing', sipStatus: 183, earlyMedia: media });
  }

  #setHandle(handle: LegHandle | null): void {
    this.#handle = handle ?? this.#handle;
    if (handle !== null) this.#parts.onHandle(handle);
  }

  #refuse(outcome: RefusedOutcome): void {
    this.#finish({ type: 'leg.refused', ...outcome });
  }

  #finish(event: LegEvent): void {
    if (this.#phase === 'over') return;
    this.#phase = 'over';
    this.#parts.request.signal.removeEventListener('abort', this.#onAbort);
    this.#parts.onOver();
    this.#report(event);
  }

  /** Emits the leg's last event. Cleanup continues without events. */
  #report(event: LegEvent): void {
    if (this.#isReported) return;
    this.#emit(event);
    this.#isReported = true;
  }

  #emit(event: LegEvent): void {
    if (!this.#isReported) this.#parts.request.onEvent(event);
  }
}

/**
 * Headers of a 2xx that agrees to a session timer. The peer refreshes it unless it leaves that to us, or a proxy
 * requested the timer for a peer that has none (RFC 4028 §9).
 */
function sessionAgreed(request: Pick<SrfReceivedRequest, 'get'>): Record<string, string> {
  const wanted = parseSessionExpires(request.get('Session-Expires'));
  if (wanted === null) return {};
  const options = splitList(`${request.get('Supported') ?? ''},${request.get('Require') ?? ''}`);
  const hasTimers = options.some((option) => option.toLowerCase() === 'timer');
  const refresher = wanted.refresher ?? (hasTimers ? 'uac' : 'uas');
  return {
    'Session-Expires': `${wanted.seconds};refresher=${refresher}`,
    ...(refresher === 'uac' && { Require: 'timer' }),
  };
}

/** Glare, and a server that is overloaded or busy with another INVITE of the dialog (RFC 3261 §14.2, §21.5). */
const TEMPORARY_REFUSALS: ReadonlySet<number> = new Set([491, 500, 503]);
const MOST_OFFER_ATTEMPTS = 5;
/** Each proxy on the way may require a longer interval. */
const MOST_SESSION_RAISES = 3;
/** Faster than a person, or a machine within ITU-T Q.24. */
const MOST_INFO_DIGITS_PER_S = 20;

/** More than any carrier sends. Each becomes a stored event. */
const MAX_RINGING_EVENTS = 20;

/** drachtio-server's id for messages that lack one. */
function dialogIdOf(message: Pick<SrfResponse, 'get'>): string {
  const fromTag = /;\s*tag=([^;\s]+)/i.exec(message.get('From') ?? '')?.[1] ?? '';
  return `${message.get('Call-ID') ?? ''};from-tag=${fromTag}`;
}

/** drachtio-srf throws if the connection is gone; `lost` follows then. */
function tryTo(act: () => void): void {
  try {
    act();
  } catch {}
}
