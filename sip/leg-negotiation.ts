import { randomInt } from 'node:crypto';
import type { RemoteMedia } from '../machines/events.ts';
import { LegKeys } from './leg-keys.ts';
import {
  buildAnswer,
  buildOffer,
  type LocalSession,
  type ReadAnswer,
  type Reader,
  readAnswer,
  readOffer,
} from './sdp.ts';
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
  readonly #keys: LegKeys;
  #isUnencrypted = false;

  constructor(request: Pick<DialRequest, 'localMedia' | 'trunk'>, isOwnMedia: (host: string, port: number) => boolean) {
    this.#isOwnMedia = isOwnMedia;
    this.#keys = new LegKeys(request.trunk.mediaEncryption);
    this.#local = {
      ...request.localMedia,
      codecs: request.trunk.codecs,
      hasComfortNoise: request.trunk.hasComfortNoise ?? false,
      sessionId: randomInt(1, 2 ** 31),
      sessionVersion: 1,
    };
  }

  /** For all that we offer and answer from now on. */
  set isHolding(isHolding: boolean) {
    this.#local.isHolding = isHolding;
  }

  /** An offer to a peer that has a description of ours already (RFC 3264 §8). */
  offerAgain(): string {
    this.#local.sessionVersion++;
    return this.offer();
  }

  /** The SDP of the 200 to our re-INVITE. Null, and the session stays as it was, when it cannot be read. */
  takeLaterAnswer(sdp: string | undefined): RemoteMedia | null {
    return sdp ? this.#takeOver(sdp) : null;
  }

  offer(): string {
    return buildOffer(this.#local, { encryption: this.#keys.encryption, crypto: this.#keys.offer() });
  }

  /** Whether what was read last failed because encryption is required and the peer has none. */
  get isUnencrypted(): boolean {
    return this.#isUnencrypted;
  }

  /** The SDP of a provisional answer; one that cannot be read changes nothing. */
  takeEarlyAnswer(sdp: string): void {
    this.#takeOver(sdp);
  }

  /** The SDP of the 200; null when the call cannot go on. Some carriers answer in the 183 and leave the 200 empty. */
  takeAnswer(sdp: string | undefined): RemoteMedia | null {
    if (sdp && this.#takeOver(sdp) === null) return null;
    return this.remote;
  }

  /** Answers a re-INVITE or UPDATE, with `headers` if it agrees. Null when the peer's media stays as it was. */
  takeRequest(request: SrfReceivedRequest, reply: SrfReply, headers: Record<string, string>): RemoteMedia | null {
    if (!request.body) {
      // Without an offer, a 200 to INVITE must make one (RFC 3261 §14.2); UPDATE only refreshes (RFC 3311).
      this.#isAnswerDue = request.method === 'INVITE';
      if (this.#isAnswerDue) this.#local.sessionVersion++;
      reply.send(200, this.#isAnswerDue ? sdpBody(this.offer(), headers) : { headers });
      return null;
    }
    try {
      const offer = readOffer(
        request.body,
        this.#reader((values) => this.#keys.readOffer(values)),
      );
      this.#refuseOwn(offer.media);
      this.#local.sessionVersion++;
      const crypto = offer.keys && this.#keys.answerTo(offer.keys);
      reply.send(200, sdpBody(buildAnswer(this.#local, offer, crypto), headers));
      this.#agree(offer);
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
    return this.#takeOver(ack.body);
  }

  /** Null, and nothing changes, for an answer that cannot be used. */
  #takeOver(sdp: string): RemoteMedia | null {
    try {
      const answer = readAnswer(
        sdp,
        this.#reader((values) => this.#keys.readAnswer(values)),
      );
      this.#refuseOwn(answer.media);
      this.#agree(answer);
      return answer.media;
    } catch (error) {
      this.#isUnencrypted = error instanceof SipError && error.code === 'sdp.not_encrypted';
      return null;
    }
  }

  #agree({ media, keys }: ReadAnswer): void {
    this.remote = media;
    this.#keys.agree(keys);
  }

  #reader(readKeys: NonNullable<Reader['readKeys']>): Reader {
    const { host, codecs, hasComfortNoise } = this.#local;
    return { host, codecs, hasComfortNoise, peerHost: this.peerHost, encryption: this.#keys.encryption, readKeys };
  }

  #refuseOwn({ host, rtpPort, rtcpPort }: RemoteMedia): void {
    if (this.#isOwnMedia(host, rtpPort) || this.#isOwnMedia(host, rtcpPort)) {
      throw new SipError('sdp.bad_address', 'the SDP names a port of ours');
    }
  }
}

function sdpBody(body: string, headers: Record<string, string>): { headers: Record<string, string>; body: string } {
  return { headers: { ...headers, 'Content-Type': 'application/sdp' }, body };
}
