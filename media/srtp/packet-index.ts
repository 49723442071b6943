/**
 * Packet indexes of one SSRC under one key: 48 bits for RTP, rollover counter and sequence number (RFC 3711 §3.3.1), 31
 * bits for RTCP. The receiver drops replays (§3.3.2); the sender never uses an index twice.
 */

/** RFC 3711 requires 64; mobile networks reorder more widely. */
const WINDOW = 128;
const SEQUENCES = 0x1_0000;
const HALF = 0x8000;

export class PacketIndexes {
  /** -1 before the first. */
  #highest = -1;
  /** Bit `index % WINDOW` is set if that index within the window was seen. */
  readonly #seen = new Int32Array(WINDOW / 32);

  /**
   * Extends a sequence number to the index nearest to the highest one seen (RFC 3711 Appendix A); before that, to the
   * first round. Negative if it is older than the first round.
   */
  extend(sequence: number): number {
    if (this.#highest < 0) return sequence;
    const highest = this.#highest % SEQUENCES;
    const round = this.#highest - highest;
    if (highest < HALF) return sequence - highest > HALF ? round - SEQUENCES + sequence : round + sequence;
    return highest - HALF > sequence ? round + SEQUENCES + sequence : round + sequence;
  }

  /** False for an index that was seen or is older than the window. */
  isNew(index: number): boolean {
    if (index > this.#highest) return true;
    if (index < 0 || this.#highest - index >= WINDOW) return false;
    const bit = index % WINDOW;
    return ((this.#seen[bit >>> 5]! >>> (bit & 31)) & 1) === 0;
  }

  /** Records an index that `isNew`. */
  note(index: number): void {
    if (index > this.#highest) {
      if (index - this.#highest >= WINDOW) this.#seen.fill(0);
      else for (let skipped = this.#highest + 1; skipped < index; skipped++) this.#clear(skipped % WINDOW);
      this.#highest = index;
    }
    const bit = index % WINDOW;
    this.#seen[bit >>> 5]! |= 1 << (bit & 31);
  }

  #clear(bit: number): void {
    this.#seen[bit >>> 5]! &= ~(1 << (bit & 31));
  }
}
