/**
 * Decides which UDP source may speak for a leg. A peer behind NAT sends from another address than its SDP names, so
 * we latch onto what we hear (symmetric RTP, RFC 4961, "comedia"); anybody who finds the port could then take the
 * call over, so we latch as narrowly as we can:
 *
 * - The address and port of the SDP beat the same host with another port, which beats a stranger.
 * - A stranger must send several packets of one stream in sequence, and only within a window after `expect`.
 * - Within the window a better match replaces a worse one. After it the latch is shut.
 * - A shut latch opens again through `expect`, or when its source fell silent and the signalled host speaks.
 */

/** Milliseconds after `expect` in which a source may be chosen or replaced by a better match. */
export const LATCH_WINDOW_MS = 5000;
/** Silence of the latched source after which the signalled host may take its place. */
export const RELATCH_AFTER_SILENCE_MS = 3000;
/** Consecutive packets that a source other than the signalled host must send. */
export const STRANGER_PACKETS = 4;

type LatchVerdict = 'accepted' | 'latched' | 'refused';

const UNLATCHED = 0;
const STRANGER = 1;
const SIGNALLED_HOST = 2;
const SIGNALLED_SOURCE = 3;

/** What a packet shows of itself to the latch. */
interface LatchPacket {
  ssrc: number;
  sequence: number;
}

export class SourceLatch {
  /** The source that is accepted; an empty address before there is one. */
  address = '';
  port = 0;
  #match = UNLATCHED;
  #expectedAddress = '';
  #expectedPort = 0;
  #windowEndsAtMs = 0;
  #lastHeardAtMs = 0;
  #strangerAddress = '';
  #strangerPort = 0;
  #strangerSsrc = 0;
  #strangerSequence = 0;
  #strangerPackets = 0;

  /** Sets whom the SDP names and opens the window. A source that was latched for the same SDP address stays. */
  expect(address: string, port: number, nowMs: number): void {
    const isSame = address === this.#expectedAddress && port === this.#expectedPort;
    this.#expectedAddress = address;
    this.#expectedPort = port;
    this.#windowEndsAtMs = nowMs + LATCH_WINDOW_MS;
    this.#strangerPackets = 0;
    if (isSame) return;
    this.#match = UNLATCHED;
    this.address = '';
    this.port = 0;
  }

  get isLatched(): boolean {
    return this.#match !== UNLATCHED;
  }

  judge(address: string, port: number, packet: LatchPacket, nowMs: number): LatchVerdict {
    if (port === this.port && address === this.address) {
      this.#lastHeardAtMs = nowMs;
      return 'accepted';
    }
    // Port 0 is a spoof that nothing could be sent to.
    const match = port === 0 ? UNLATCHED : this.#matchOf(address, port);
    const isWindowOpen = this.#match === UNLATCHED || nowMs < this.#windowEndsAtMs;
    const isForsaken = nowMs - this.#lastHeardAtMs >= RELATCH_AFTER_SILENCE_MS && match >= SIGNALLED_HOST;
    if (!(isWindowOpen && match > this.#match) && !isForsaken) return 'refused';
    if (match === STRANGER) {
      if (nowMs >= this.#windowEndsAtMs) return 'refused';
      if (!this.#isStrangerTrusted(address, port, packet)) return 'refused';
    }
    this.address = address;
    this.port = port;
    this.#match = match;
    this.#lastHeardAtMs = nowMs;
    return 'latched';
  }

  #matchOf(address: string, port: number): number {
    if (this.#expectedAddress === '') return UNLATCHED;
    if (address !== this.#expectedAddress) return STRANGER;
    return port === this.#expectedPort ? SIGNALLED_SOURCE : SIGNALLED_HOST;
  }

  #isStrangerTrusted(address: string, port: number, packet: LatchPacket): boolean {
    const continues =
      address === this.#strangerAddress &&
      port === this.#strangerPort &&
      packet.ssrc === this.#strangerSsrc &&
      packet.sequence === ((this.#strangerSequence + 1) & 0xffff);
    this.#strangerAddress = address;
    this.#strangerPort = port;
    this.#strangerSsrc = packet.ssrc;
    this.#strangerSequence = packet.sequence;
    this.#strangerPackets = continues ? this.#strangerPackets + 1 : 1;
    return this.#strangerPackets >= STRANGER_PACKETS;
  }

  dump(): unknown {
    const matches = ['none', 'stranger', 'signalled host', 'signalled source'];
    return { match: matches[this.#match], port: this.port, signalledPort: this.#expectedPort };
  }
}
