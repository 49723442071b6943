/**
 * Limits the processed packets of a party to twenty times the rate of a call, against loops and floods. It grows with
 * the clock, so packets that waited for a late thread are not a flood.
 */

/** One second of packets per 50 ms. */
const PACKETS_PER_MS = 1;
/** More than the default socket queue on Linux. */
const MOST_PACKETS_AT_ONCE = 300;

/** Adds the packets of a time to `packets`; unchanged if the clock did not advance. */
export function grownAllowance(packets: number, elapsedMs: number): number {
  return elapsedMs > 0 ? Math.min(MOST_PACKETS_AT_ONCE, packets + elapsedMs * PACKETS_PER_MS) : packets;
}

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
    this.#packets = grownAllowance(this.#packets, nowMs - this.#grownAtMs);
    this.#grownAtMs = Math.max(this.#grownAtMs, nowMs);
    if (this.#packets < 1) return false;
    this.#packets -= 1;
    return true;
  }
}
