/**
 * Pool of even/odd UDP port pairs (RFC 3550 §11). A returned pair is reused last, so that late packets of an ended call
 * do not reach a new one.
 */
export class PortPairs {
  /** Even ports, the longest free one first. */
  readonly #free: number[] = [];
  readonly size: number;

  /** @throws RangeError unless the range holds the two pairs of a session. */
  constructor(range: { min: number; max: number }) {
    const first = range.min + (range.min & 1);
    for (let port = first; port + 1 <= range.max; port += 2) this.#free.push(port);
    this.size = this.#free.length;
    const isInvalid =
      !Number.isInteger(range.min) || !Number.isInteger(range.max) || range.min < 1 || range.max > 65535;
    if (isInvalid || this.size < 2) throw new RangeError('the RTP port range must hold at least two even/odd pairs');
  }

  get freeCount(): number {
    return this.#free.length;
  }

  /** The even port of a pair; null if all are in use. */
  take(): number | null {
    return this.#free.shift() ?? null;
  }

  /** Returns a pair to the pool, by its even port. */
  release(rtpPort: number): void {
    this.#free.push(rtpPort);
  }
}
