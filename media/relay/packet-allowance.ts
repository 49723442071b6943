/**
 * How many packets of a party are worked on: twenty times what a call needs, and an end to loops and floods. It grows
 * with the clock, so that packets which waited while this thread was late are not taken for a flood.
 */

/** A second of packets for each 50 ms. */
const PACKETS_PER_MS = 1;
/** More than a socket queues by default on Linux. */
const MOST_AT_ONCE = 300;

export class PacketAllowance {
  #packets = MOST_AT_ONCE;
  #grownAtMs = 0;

  /** Whether another packet may be worked on. */
  take(nowMs: number): boolean {
    if (nowMs > this.#grownAtMs) {
      this.#packets = Math.min(MOST_AT_ONCE, this.#packets + (nowMs - this.#grownAtMs) * PACKETS_PER_MS);
      this.#grownAtMs = nowMs;
    }
    if (this.#packets < 1) return false;
    this.#packets -= 1;
    return true;
  }
}
