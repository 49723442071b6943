/**
 * Even/odd UDP port pairs of a range (RFC 3550 §11), handed out in turn: a pair that was given back comes last, so
 * that late packets of an ended call do not meet a new one.
 */
export class PortPairs {
  /** Even ports, the one that was free longest first. */
  readonly #free: number[] = [];
  /** Pairs in the whole range. */
  readonly size: number;

  /** @throws RangeError unless the range holds the two pairs that one session needs. */
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

  /** The even port of a pair; null when all are in use. */
  take(): number | null {
    return this.#free.shift() ?? null;
  }

  giveBack(rtpPort: number): void {
    this.#free.push(rtpPort);
  }
}
