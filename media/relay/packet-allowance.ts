/**
 * Limits the processed packets of a party to twenty times the rate of a call, against loops and floods. It grows with
 * the clock, so packets that waited for a late thread are not a flood.
 */

/** One second of packets per 50 ms. */
const PACKETS_PER_MS = 1;
/** More than the default socket queue on Linux. */
export const MOST_PACKETS_AT_ONCE = 300;

export class PacketAllowance {
  #packets = MOST_PACKETS_AT_ONCE;
  #grownAtMs = 0;

  /** Packets that may be taken at the time of the last one. */
  get packets(): number {
    return this.#packets;
  }

  /** Continues from what `packets` was at a time. */
  restore(packets: number, atMs: number): void {
    this.#packets = packets;
    this.#grownAtMs = atMs;
  }

  take(nowMs: number): boolean {
    if (nowMs > this.#grownAtMs) {
      this.#packets = Math.min(MOST_PACKETS_AT_ONCE, this.#packets + (nowMs - this.#grownAtMs) * PACKETS_PER_MS);
      this.#grownAtMs = nowMs;
    }
    if (this.#packets < 1) return false;
    this.#packets -= 1;
    return true;
  }
}
