import { randomInt } from 'node:crypto';
import type { RemoteMedia } from '../machines/events.ts';
import { buildAnswer, buildOffer, type LocalSession, type Reader, readOffer, readRemoteMedia } from './sdp.ts';
import { SipError } from './sip-error.ts';
import type { DialRequest } from './sip-gateway.ts';
import type { SrfReceivedRequest, SrfReply } from './srf-types.ts';

/** Offer and answer of one leg (RFC 3264): what we said last, and what the peer said last. */
export class LegNegotiation {
  /** Null until the peer has said something that we could read. */
  remote: RemoteMedia | null = null;
  /** Where the peer's SIP comes from. */
  peerHost = '';
  readonly #local: LocalSession;
  readonly #isOwnMedia: (host: string, port: number) => boolean;
  /** We offered in a 200 to a re-INVITE without SDP; the ACK brings the answer (RFC 3261 §14.2). */
  #isAnswerDue = false;

  constructor(request: Pick<DialRequest, 'localMedia' | 'trunk'>, isOwnMedia: (host: string, port: number) => boolean) {
    this.#isOwnMedia = isOwnMedia;
    this.#local = {
      ...request.localMedia,
      codecs: request.trunk.codecs,
      sessionId: randomInt(1, 2 ** 31),
      sessionVersion: 1,
    };
  }

  offer(): string {
    return buildOffer(this.#local);
  }

  /** The SDP of a provisional answer; one that cannot be read changes nothing. */
  takeEarlyAnswer(sdp: string): void {
    this.remote = this.#tryToRead(sdp) ?? this.remote;
  }

  /** The SDP of the 200; null when the call cannot go on. Some carriers answer in the 183 and leave the 200 empty. */
  takeAnswer(sdp: string | undefined): RemoteMedia | null {
    if (sdp) this.remote = this.#tryToRead(sdp);
    return this.remote;
  }

  /** Answers a re-INVITE or UPDATE. Null when the peer's media stays as it was. */
  takeRequest(request: SrfReceivedRequest, reply: SrfReply): RemoteMedia | null {
    if (!request.body) {
      // Without an offer, a 200 to INVITE must make one (RFC 3261 §14.2); UPDATE only refreshes (RFC 3311).
      this.#isAnswerDue = request.method === 'INVITE';
      if (this.#isAnswerDue) this.#local.sessionVersion++;
      reply.send(200, this.#isAnswerDue ? sdpBody(this.offer()) : {});
      return null;
    }
    try {
      const offer = readOffer(request.body, this.#reader());
      this.#refuseOwn(offer.media);
      this.#local.sessionVersion++;
      reply.send(200, sdpBody(buildAnswer(this.#local, offer)));
      this.remote = offer.media;
      return offer.media;
    } catch {
      // The session stays as it was (RFC 3261 §14.2).
      reply.send(488, {});
      return null;
    }
  }

  /** The ACK of a 200 in which we had to offer. Null when there was nothing to learn. */
  takeAcknowledgement(ack: SrfReceivedRequest): RemoteMedia | null {
    if (!this.#isAnswerDue || !ack.body) return null;
    this.#isAnswerDue = false;
    const media = this.#tryToRead(ack.body);
    if (media !== null) this.remote = media;
    return media;
  }

  #tryToRead(sdp: string): RemoteMedia | null {
    try {
      const media = readRemoteMedia(sdp, this.#reader());
      this.#refuseOwn(media);
      return media;
    } catch {
      return null;
    }
  }

  #reader(): Reader {
    return { host: this.#local.host, codecs: this.#local.codecs, peerHost: this.peerHost };
  }

  #refuseOwn({ host, rtpPort, rtcpPort }: RemoteMedia): void {
    if (this.#isOwnMedia(host, rtpPort) || this.#isOwnMedia(host, rtcpPort)) {
      throw new SipError('sdp.bad_address', 'the SDP names a port of ours');
    }
  }
}

function sdpBody(body: string): { headers: Record<string, string>; body: string } {
  return { headers: { 'Content-Type': 'application/sdp' }, body };
}
