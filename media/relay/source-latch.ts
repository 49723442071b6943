import { Endpoint } from '../datagrams/endpoint.ts';

/**
 * Decides which UDP source may send for a leg. A peer behind NAT sends from another address than its SDP names, so we
 * latch onto the source of its packets (symmetric RTP, RFC 4961, "comedia"). Anyone who finds the port could hijack the
 * call, so the latch is narrow:
 *
 * - The SDP's address and port beat the same host with another port, which beats a stranger.
 * - A stranger must send several packets of one stream in sequence, within a window after `expect`.
 * - Within the window a better match replaces a worse one. After it the latch is shut.
 * - A shut latch opens again through `expect`, or when its source is silent and the signalled host sends.
 * - Within the window, a stranger may replace a silent stranger: a NAT forgets its mapping during a hold.
 */

/** Milliseconds after `expect` in which a source may be chosen or replaced by a better match. */
export const LATCH_WINDOW_MS = 5000;
/** Silence of the latched source after which the signalled host may replace it. */
export const RELATCH_AFTER_SILENCE_MS = 3000;
/** Consecutive packets required from a source other than the signalled host. */
export const STRANGER_PACKETS = 4;

type LatchVerdict = 'accepted' | 'latched' | 'refused';

const UNLATCHED = 0;
const STRANGER = 1;
const SIGNALLED_HOST = 2;
const SIGNALLED_SOURCE = 3;

interface LatchPacket {
  ssrc: number;
  sequence: number;
}

export class SourceLatch {
  /** The accepted source; unspecified without one. */
  readonly source = new Endpoint();
  #match = UNLATCHED;
  readonly #expected = new Endpoint();
  #windowEndsAtMs = 0;
  #lastReceivedAtMs = 0;
  readonly #stranger = new Endpoint();
  #strangerSsrc = 0;
  #strangerSequence = 0;
  #strangerPackets = 0;

  /** Sets the SDP address and opens the window. A source latched for the same SDP address stays. */
  expect(source: Endpoint, nowMs: number): void {
    const isSame = source.equals(this.#expected);
    this.#expected.copy(source);
    this.#windowEndsAtMs = nowMs + LATCH_WINDOW_MS;
    this.#strangerPackets = 0;
    if (isSame) return;
    this.#match = UNLATCHED;
    this.source.clear();
  }

  get isLatched(): boolean {
    return this.#match !== UNLATCHED;
  }

  judge(source: Endpoint, packet: LatchPacket, nowMs: number): LatchVerdict {
    if (this.#match !== UNLATCHED && source.equals(this.source)) {
      this.#lastReceivedAtMs = nowMs;
      return 'accepted';
    }
    // Port 0 is spoofed: it cannot receive.
    const match = source.port === 0 ? UNLATCHED : this.#matchOf(source);
    const isWindowOpen = this.#match === UNLATCHED || nowMs < this.#windowEndsAtMs;
    const isSilent = nowMs - this.#lastReceivedAtMs >= RELATCH_AFTER_SILENCE_MS;
    const isAbandoned = isSilent && (match >= SIGNALLED_HOST || (match === STRANGER && this.#match === STRANGER));
    if (!(isWindowOpen && match > this.#match) && !isAbandoned) return 'refused';
    if (match === STRANGER) {
      if (nowMs >= this.#windowEndsAtMs) return 'refused';
      if (!this.#isStrangerTrusted(source, packet)) return 'refused';
    }
    this.source.copy(source);
    this.#match = match;
    this.#lastReceivedAtMs = nowMs;
    return 'latched';
  }

  /** Another packet of the latched source was accepted. */
  noteReceived(nowMs: number): void {
    this.#lastReceivedAtMs = nowMs;
  }

  #matchOf(source: Endpoint): number {
    if (this.#expected.isUnspecified) return UNLATCHED;
    if (!source.isSameHost(this.#expected)) return STRANGER;
    return source.port === this.#expected.port ? SIGNALLED_SOURCE : SIGNALLED_HOST;
  }

  #isStrangerTrusted(source: Endpoint, packet: LatchPacket): boolean {
    const continues =
      source.equals(this.#stranger) &&
      packet.ssrc === this.#strangerSsrc &&
      packet.sequence === ((this.#strangerSequence + 1) & 0xffff);
    this.#stranger.copy(source);
    this.#strangerSsrc = packet.ssrc;
    this.#strangerSequence = packet.sequence;
    this.#strangerPackets = continues ? this.#strangerPackets + 1 : 1;
    return this.#strangerPackets >= STRANGER_PACKETS;
  }

  dump(): unknown {
    const matches = ['none', 'stranger', 'signalled host', 'signalled source'];
    return { match: matches[this.#match], port: this.source.port, signalledPort: this.#expected.port };
  }
}
