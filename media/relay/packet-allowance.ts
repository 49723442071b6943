/**
 * Limits the processed packets of a party to twenty times the rate of a call, against loops and floods. It grows with
 * the clock, so packets that waited for a late thread are not a flood.
 */

/** One second of packets per 50 ms. */
const PACKETS_PER_MS = 1;
/** More than the default socket queue on Linux. */
const MOST_AT_ONCE = 300;

export class PacketAllowance {
  #packets = MOST_AT_ONCE;
  #grownAtMs = 0;

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
