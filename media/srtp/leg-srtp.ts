import type { KeyObject } from 'node:crypto';
import type { SrtpKeys, SrtpSuite } from '../../machines/events.ts';
import { noDrops, type SrtpDrops, SrtpReceiver } from './srtp-receiver.ts';
import { SrtpSender } from './srtp-sender.ts';

/**
 * SRTP of one leg across key changes. An unchanged key keeps its context, with rollover counters and replay windows; a
 * changed one creates a context. Until the first packet with the new key arrives, the peer's last key still opens
 * packets in transit. A key that returns (forked early media) finds its context again.
 */

/** Contexts kept per direction: more than one for each forked answer to each line of an offer. */
const MOST_CONTEXTS = 8;
/** After this number of drops in a tick, only known sources are processed. */
const MOST_DROPS_PER_TICK = 250;

const OPEN_RTP = (receiver: SrtpReceiver, datagram: Buffer): number => receiver.openRtp(datagram);
const OPEN_RTCP = (receiver: SrtpReceiver, datagram: Buffer): number => receiver.openRtcp(datagram);

interface Keyed<Context> {
  suite: SrtpSuite;
  master: KeyObject;
  context: Context;
}

export class LegSrtp {
  readonly #ssrc: number;
  /** The current one first. */
  readonly #senders: Keyed<SrtpSender>[] = [];
  readonly #receivers: Keyed<SrtpReceiver>[] = [];
  #dropsThisTick = 0;
  #flooded = 0;

  /** @param ssrc of everything we send. @throws RangeError if a key does not fit its suite. */
  constructor(keys: SrtpKeys, ssrc: number) {
    this.#ssrc = ssrc;
    this.rekey(keys);
  }

  get suite(): SrtpSuite {
    return this.#senders[0]!.suite;
  }

  /** Applies newly negotiated keys. @throws RangeError if a key does not fit its suite. */
  rekey({ suite, local, remote }: SrtpKeys): void {
    const ssrc = this.#ssrc;
    use(this.#senders, suite, local as KeyObject, (master) => new SrtpSender({ suite, master, ssrc }));
    use(this.#receivers, suite, remote as KeyObject, (master) => new SrtpReceiver({ suite, master }));
  }

  get rtpTagBytes(): number {
    return this.#senders[0]!.context.suite.rtpTagBytes;
  }

  /** As `SrtpSender.protectRtp`. */
  protectRtp(packet: Buffer, bytes: number): number {
    return this.#senders[0]!.context.protectRtp(packet, bytes);
  }

  protectRtcp(packet: Buffer, bytes: number): number {
    return this.#senders[0]!.context.protectRtcp(packet, bytes);
  }

  /** As `SrtpReceiver.openRtp`. @param isKnownSource from the latched source or the SDP address. */
  openRtp(datagram: Buffer, isKnownSource: boolean): number {
    if (!isKnownSource && this.#dropsThisTick >= MOST_DROPS_PER_TICK) {
      this.#flooded += 1;
      return -1;
    }
    const bytes = this.#open(OPEN_RTP, datagram);
    if (bytes < 0) this.#dropsThisTick += 1;
    return bytes;
  }

  /** As `SrtpReceiver.openRtcp`, for a known source. */
  openRtcp(datagram: Buffer): number {
    return this.#open(OPEN_RTCP, datagram);
  }

  /** Call several times a second. */
  tick(): void {
    this.#dropsThisTick = 0;
  }

  dump(): unknown {
    const drops: SrtpDrops = noDrops();
    let opened = 0;
    let sealed = 0;
    let refused = 0;
    for (const { context } of this.#receivers) {
      opened += context.opened;
      for (const why of Object.keys(drops) as (keyof SrtpDrops)[]) drops[why] += context.drops[why];
    }
    for (const { context } of this.#senders) {
      sealed += context.counters.protected;
      refused += context.counters.refused;
    }
    const { sources } = this.#receivers[0]!.context;
    return { suite: this.suite, opened, sources, drops: { ...drops, flooded: this.#flooded }, sealed, refused };
  }

  /** Opens with the current key, and also with the last one until the peer has used the current one. */
  #open(open: typeof OPEN_RTP, datagram: Buffer): number {
    const present = this.#receivers[0]!.context;
    const last = this.#receivers[1]?.context;
    if (last === undefined || present.opened > 0) return open(present, datagram);
    const before = present.drops.unauthentic;
    const bytes = open(present, datagram);
    if (present.drops.unauthentic === before) return bytes;
    // The result of the last key counts: the packet may have been in transit when the keys changed.
    present.drops.unauthentic = before;
    return open(last, datagram);
  }
}

/** Moves the context of a key to the front, and creates it if necessary. */
function use<Context>(
  kept: Keyed<Context>[],
  suite: SrtpSuite,
  master: KeyObject,
  make: (master: KeyObject) => Context,
): void {
  const at = kept.findIndex((known) => known.suite === suite && known.master.equals(master));
  const keyed = at < 0 ? { suite, master, context: make(master) } : kept.splice(at, 1)[0]!;
  kept.unshift(keyed);
  kept.length = Math.min(kept.length, MOST_CONTEXTS);
}
