/**
 * Reception statistics of one RTP stream: extended sequence numbers, loss and jitter (RFC 3550 §6.4.1, appendices A.1,
 * A.3 and A.8). Totals continue across SSRC changes.
 */

const MAX_DROPOUT = 3000;
const MAX_MISORDER = 100;

/** Signed distance from `b` to `a` modulo 16 bits, -32768..32767. */
export function sequenceDelta(a: number, b: number): number {
  return ((a - b) << 16) >> 16;
}

/** Signed distance from `b` to `a` modulo 32 bits. */
export function timestampDelta(a: number, b: number): number {
  return (a - b) | 0;
}

/** The extended number nearest to `reference` whose low 16 bits are `sequence`. */
export function extendSequence(sequence: number, reference: number): number {
  return reference + sequenceDelta(sequence, reference & 0xffff);
}

/** Arrival minus timestamp, modulo 32 bits, in timestamp units. */
export function transitOf(timestamp: number, arrivalMs: number, clockPerMs: number): number {
  return (Math.floor(arrivalMs * clockPerMs) - timestamp) | 0;
}

/** Interarrival jitter after a packet (A.8), in timestamp units. */
export function nextJitter(jitter: number, transit: number, lastTransit: number, clockPerMs: number): number {
  const difference = Math.abs(timestampDelta(transit, lastTransit));
  // A jump of seconds is a new timestamp base (hold, transfer), not jitter.
  return difference < 2000 * clockPerMs ? jitter + (difference - jitter) / 16 : jitter;
}

export class ReceiverStatistics {
  /** SSRC of the current source, -1 before the first packet. */
  ssrc = -1;
  packetsReceived = 0;
  /** Reordered, duplicate and stray packets. */
  packetsLate = 0;
  /** Times the source changed its SSRC or restarted its numbering. */
  restarts = 0;
  #baseSequence = 0;
  #highestSequence = 0;
  /** After a stray packet, the next number of a source that has restarted (A.1); -1 without one. */
  #afterStray = -1;
  #receivedOfSource = 0;
  #lostOfFormerSources = 0;
  #expectedOfFormerSources = 0;
  #reportedExpected = 0;
  #reportedReceived = 0;
  /** Timestamp units. */
  #clockPerMs = 8;
  #jitter = 0;
  #lastTransit = 0;
  #hasTransit = false;

  /**
   * Counts a packet.
   * @param isAudio false excludes it from the jitter, because event timestamps do not follow time (RFC 4733 §2.5.1.2)
   */
  count(ssrc: number, sequence: number, timestamp: number, arrivalMs: number, isAudio: boolean): void {
    this.packetsReceived += 1;
    const extended = extendSequence(sequence, this.#highestSequence);
    const delta = extended - this.#highestSequence;
    const isStray =
      ssrc === this.ssrc && delta < -MAX_MISORDER && delta >= -MAX_DROPOUT && sequence !== this.#afterStray;
    this.#afterStray = isStray ? (sequence + 1) & 0xffff : -1;
    if (isStray) this.packetsLate += 1;
    else if (ssrc !== this.ssrc || delta > MAX_DROPOUT || delta < -MAX_MISORDER) this.#restart(ssrc, sequence);
    else if (delta > 0) this.#highestSequence = extended;
    else this.packetsLate += 1;
    this.#receivedOfSource += 1;
    if (isAudio) this.#measureJitter(timestamp, arrivalMs);
  }

  /** Whether a packet is the newest of this source, with an 8 kHz clock, so that the next ones may be `addInOrder`. */
  isAt({ ssrc, sequence }: { ssrc: number; sequence: number }): boolean {
    const isNewest = ssrc === this.ssrc && sequence === (this.#highestSequence & 0xffff);
    return isNewest && this.#hasTransit && this.#clockPerMs === 8;
  }

  /** Arrival minus timestamp of the last audio packet, in timestamp units. */
  get transit(): number {
    return this.#lastTransit;
  }

  /** Interarrival jitter in timestamp units, not rounded. */
  get jitter(): number {
    return this.#jitter;
  }

  /** Counts audio packets that followed each other, with the transit and jitter after them. */
  addInOrder(packets: number, transit: number, jitter: number): void {
    this.packetsReceived += packets;
    this.#receivedOfSource += packets;
    this.#highestSequence += packets;
    this.#lastTransit = transit;
    this.#jitter = jitter;
  }

  setClock(clockHz: number): void {
    const clockPerMs = clockHz / 1000;
    if (clockPerMs === this.#clockPerMs) return;
    this.#jitter *= clockPerMs / this.#clockPerMs;
    this.#clockPerMs = clockPerMs;
    this.#hasTransit = false;
  }

  /** Never negative, although duplicates can exceed the expected number. */
  get packetsLost(): number {
    return this.#lostOfFormerSources + Math.max(0, this.#expectedOfSource() - this.#receivedOfSource);
  }

  get packetsExpected(): number {
    return this.#expectedOfFormerSources + this.#expectedOfSource();
  }

  get jitterMs(): number {
    return this.#jitter / this.#clockPerMs;
  }

  /** Interarrival jitter in timestamp units, for a report block. */
  get jitterTimestampUnits(): number {
    return Math.min(0xffffffff, Math.floor(this.#jitter));
  }

  /** Cycles in the upper 16 bits, for a report block. */
  get extendedHighestSequence(): number {
    return this.#highestSequence >>> 0;
  }

  /** Loss since the last call, in 1/256 (A.3). */
  takeFractionLost(): number {
    const expected = this.#expectedOfSource();
    const expectedInterval = expected - this.#reportedExpected;
    const lostInterval = expectedInterval - (this.#receivedOfSource - this.#reportedReceived);
    this.#reportedExpected = expected;
    this.#reportedReceived = this.#receivedOfSource;
    if (expectedInterval <= 0 || lostInterval <= 0) return 0;
    return Math.min(255, Math.floor((lostInterval * 256) / expectedInterval));
  }

  #expectedOfSource(): number {
    return this.ssrc === -1 ? 0 : this.#highestSequence - this.#baseSequence + 1;
  }

  #restart(ssrc: number, sequence: number): void {
    if (this.ssrc !== -1) {
      this.#lostOfFormerSources = this.packetsLost;
      this.#expectedOfFormerSources = this.packetsExpected;
      this.restarts += 1;
    }
    this.ssrc = ssrc;
    this.#baseSequence = sequence;
    this.#highestSequence = sequence;
    this.#receivedOfSource = 0;
    this.#reportedExpected = 0;
    this.#reportedReceived = 0;
    this.#hasTransit = false;
  }

  #measureJitter(timestamp: number, arrivalMs: number): void {
    const transit = transitOf(timestamp, arrivalMs, this.#clockPerMs);
    if (this.#hasTransit) this.#jitter = nextJitter(this.#jitter, transit, this.#lastTransit, this.#clockPerMs);
    this.#lastTransit = transit;
    this.#hasTransit = true;
  }
}
