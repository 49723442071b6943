import { randomInt } from 'node:crypto';
import type { RemoteMedia } from '../machines/events.ts';
import { LegKeys } from './leg-keys.ts';
import { tagOf } from './message/index.ts';
import {
  buildAnswer,
  buildEmptyAnswer,
  buildOffer,
  type LocalSession,
  type ReadAnswer,
  type Reader,
  readAnswer,
  readOffer,
  readWithoutStreams,
} from './sdp.ts';
import { sdpOf } from './sdp-body.ts';
import { SipError } from './sip-error.ts';
import type { DialRequest } from './sip-gateway.ts';
import type { SrfReceivedRequest, SrfReply } from './srf-types.ts';

/** More than ring at once in practice. */
const MOST_FORKS = 32;

/** Offer and answer of one leg (RFC 3264): the last descriptions of both sides. */
export class LegNegotiation {
  /** Null until the peer's first valid description. */
  remote: RemoteMedia | null = null;
  /** Source of the peer's SIP. */
  peerHost = '';
  readonly #local: LocalSession;
  readonly #isOwnMedia: (host: string, port: number) => boolean;
  /** We offered in a 200 to a re-INVITE without SDP, so the ACK carries the answer (RFC 3261 §14.2). */
  #isAnswerDue = false;
  readonly #keys: LegKeys;
  #isUnencrypted = false;
  /** SDP of provisional responses by To tag: each fork of a call has its own media. */
  readonly #earlyAnswers = new Map<string, string>();

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

  /** Applies to later offers and answers. */
  set isHolding(isHolding: boolean) {
    this.#local.isHolding = isHolding;
  }

  /** An offer to a peer that already has a description of ours (RFC 3264 §8). */
  offerAgain(): string {
    this.#local.sessionVersion++;
    return this.offer();
  }

  /** Applies the SDP of the 200 to our re-INVITE. Null, with the session unchanged, if it is invalid. */
  takeLaterAnswer(sdp: string | undefined): RemoteMedia | null {
    return sdp ? this.#takeOver(sdp, true) : null;
  }

  offer(): string {
    return buildOffer(this.#local, { encryption: this.#keys.encryption, crypto: this.#keys.offer() });
  }

  /** Whether the last description failed because encryption is required and the peer has none. */
  get isUnencrypted(): boolean {
    return this.#isUnencrypted;
  }

  /** Applies the SDP of a provisional response. An invalid one changes nothing. */
  takeEarlyAnswer(sdp: string, toTag: string | null): void {
    if (this.#takeOver(sdp) === null || toTag === null) return;
    if (this.#earlyAnswers.size < MOST_FORKS || this.#earlyAnswers.has(toTag)) this.#earlyAnswers.set(toTag, sdp);
  }

  /**
   * Applies the SDP of the 200; null if it is invalid. Some carriers answer in the 183 and leave the 200 empty. Then the
   * 183 with its To tag counts, or else the last one, because some carriers change the tag.
   */
  takeAnswer(sdp: string | undefined, toTag: string | null): RemoteMedia | null {
    const early = this.#earlyAnswers.get(toTag ?? '');
    this.#earlyAnswers.clear();
    if (sdp) return this.#takeOver(sdp);
    if (early !== undefined) this.#takeOver(early);
    return this.remote;
  }

  /** Answers a re-INVITE or UPDATE, adding `headers` to a 200. Null if the peer's media is unchanged. */
  takeRequest(request: SrfReceivedRequest, reply: SrfReply, headers: Record<string, string>): RemoteMedia | null {
    const sdp = sdpOf(request);
    if (sdp === undefined) {
      // Without an offer, a 200 to INVITE must contain one (RFC 3261 §14.2); UPDATE only refreshes (RFC 3311).
      this.#isAnswerDue = request.method === 'INVITE';
      if (this.#isAnswerDue) this.#local.sessionVersion++;
      reply.send(200, this.#isAnswerDue ? sdpBody(this.offer(), headers) : { headers });
      return null;
    }
    try {
      if (this.remote !== null) {
        const streams = readWithoutStreams(sdp);
        if (streams !== null) {
          this.#forgetEarlyAnswer(request);
          return this.#takeEmptyOffer(this.remote, streams, (body) => reply.send(200, sdpBody(body, headers)));
        }
      }
      const offer = readOffer(
        sdp,
        this.#reader((values) => this.#keys.readOffer(values)),
      );
      this.#refuseOwn(offer.media);
      this.#local.sessionVersion++;
      const crypto = offer.keys && this.#keys.answerTo(offer.keys);
      reply.send(200, sdpBody(buildAnswer(this.#local, offer, crypto), headers));
      this.#local.streams = { media: offer.session.media, audioIndex: offer.audioIndex };
      this.#agree(offer);
      this.#forgetEarlyAnswer(request);
      return offer.media;
    } catch {
      // The session stays unchanged (RFC 3261 §14.2).
      reply.send(488, {});
      return null;
    }
  }

  /** An UPDATE replaces the early answer of its fork. */
  #forgetEarlyAnswer(update: SrfReceivedRequest): void {
    this.#earlyAnswers.delete(tagOf(update.get('From')) ?? '');
  }

  /** Silences both directions until the peer offers audio again. Keys and address stay. */
  #takeEmptyOffer(
    remote: RemoteMedia,
    streams: NonNullable<LocalSession['streams']>,
    answer: (sdp: string) => void,
  ): RemoteMedia {
    this.#local.sessionVersion++;
    answer(buildEmptyAnswer(this.#local, streams));
    this.#local.streams = streams;
    return this.#silence(remote);
  }

  #silence(remote: RemoteMedia): RemoteMedia {
    this.remote = { ...remote, direction: 'inactive' };
    return this.remote;
  }

  /** Applies the ACK of a 200 with our offer. Null without an answer. */
  takeAcknowledgement(ack: SrfReceivedRequest): RemoteMedia | null {
    const sdp = sdpOf(ack);
    if (!this.#isAnswerDue || sdp === undefined) return null;
    this.#isAnswerDue = false;
    return this.#takeOver(sdp, true);
  }

  /** Null, without a change, for an invalid answer. A later one may remove the audio that was agreed before. */
  #takeOver(sdp: string, isLater = false): RemoteMedia | null {
    try {
      if (isLater && this.remote !== null && readWithoutStreams(sdp) !== null) return this.#silence(this.remote);
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
