import { networkOf } from '../../../runtime/network-address.ts';

export interface SourceLimitOptions {
  /** Sustained messages per second of one source. */
  perSecond: number;
  /** Burst after a pause. */
  burst: number;
  /** Monotonic time; tests replace it. */
  nowMs?: () => number;
}

export type Verdict = 'accepted' | 'expected-only' | 'rejected';

/**
 * A token bucket per source address, /64 for IPv6. With an empty bucket, only messages of known calls pass. These cost
 * a twentieth, because a carrier sends about five messages for each call of ours. At ten times the bucket, messages are
 * not even parsed.
 */
export class SourceLimits {
  /** Ordered by last use. */
  readonly #buckets = new Map<string, { tokens: number; atMs: number }>();
  readonly #dropped = new Map<string, number>();
  #droppedInAll = 0;
  readonly #options: Required<SourceLimitOptions>;

  constructor(options: SourceLimitOptions) {
    this.#options = { nowMs: () => performance.now(), ...options };
  }

  get size(): number {
    return this.#buckets.size;
  }

  take(host: string): Verdict {
    const { perSecond, burst, nowMs } = this.#options;
    const source = networkOf(host);
    const now = nowMs();
    const bucket = this.#buckets.get(source) ?? { tokens: burst, atMs: now };
    const refilled = Math.min(burst, bucket.tokens + ((now - bucket.atMs) / 1000) * perSecond);
    // The bucket may be negative, so that expected messages count too.
    bucket.tokens = Math.max(refilled - 1, -READ_AT_MOST * burst);
    bucket.atMs = now;
    this.#buckets.delete(source);
    this.#buckets.set(source, bucket);
    this.#forgetOldest();
    if (bucket.tokens >= 0) return 'accepted';
    return bucket.tokens > -READ_AT_MOST * burst ? 'expected-only' : 'rejected';
  }

  /** Call if the last counted message belongs to a known call. */
  refund(host: string): void {
    const bucket = this.#buckets.get(networkOf(host));
    if (bucket !== undefined) bucket.tokens = Math.min(this.#options.burst, bucket.tokens + EXPECTED_REFUND);
  }

  drop(host: string): void {
    this.#droppedInAll++;
    const source = networkOf(host);
    const count = this.#dropped.get(source) ?? 0;
    if (count > 0 || this.#dropped.size < MAX_SOURCES) this.#dropped.set(source, count + 1);
  }

  takeDropped(): DroppedMessages {
    const most = [...this.#dropped].sort(([, one], [, other]) => other - one).slice(0, SHOWN_SOURCES);
    const taken = { total: this.#droppedInAll, sources: most.map(([host, dropped]) => ({ host, dropped })) };
    this.#droppedInAll = 0;
    this.#dropped.clear();
    return taken;
  }

  /** A forgotten source starts with a full bucket, so forged sources cannot lock others out. */
  #forgetOldest(): void {
    if (this.#buckets.size <= MAX_SOURCES) return;
    const oldest = this.#buckets.keys().next().value;
    if (oldest !== undefined) this.#buckets.delete(oldest);
  }
}

export interface DroppedMessages {
  total: number;
  /** The most affected sources, at most five. */
  sources: { host: string; dropped: number }[];
}

const READ_AT_MOST = 10;
const EXPECTED_REFUND = 0.95;
const MAX_SOURCES = 20_000;
const SHOWN_SOURCES = 5;
