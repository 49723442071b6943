import type { Granted } from '../../runtime/lease-pool.ts';
import type { Capability } from './router.ts';

/**
 * What an utterance needs a recognizer for, most urgent first: `due` is a live one that was said to its end and is
 * waited for, or one that is far behind; `spoken` a live one that goes on; `batch` one of a file.
 */
export type Urgency = 'due' | 'spoken' | 'batch';

export interface ClaimOptions {
  streamKey: number;
  model: Capability;
  /** Asked again and again: an utterance becomes due while it waits. */
  urgency: () => Urgency;
  /** Whether the recognizer may be asked for again by who is more urgent; the utterance then starts anew. */
  isRecallable: boolean;
  /** Whether no other utterance may be in the same process: what it shared one with broke, and either may be why. */
  isAlone: boolean;
  onRecall: () => void;
  signal: AbortSignal;
}

/** Whoever has had a recognizer for longer loses too much by starting again, unless nobody waits but a file. */
const RECALLABLE_FOR_MS = 10_000;

const RANK: Record<Urgency, number> = { due: 0, spoken: 1, batch: 2 };

/** The order in which claims are served: by urgency; then whose stream had one longest ago; then who came first. */
export function inOrder<Claim extends ClaimOptions>(
  claims: readonly Claim[],
  lastLeaseTo: (streamKey: number) => number,
): Claim[] {
  return claims
    .map((claim) => ({ claim, rank: RANK[claim.urgency()], lastLease: lastLeaseTo(claim.streamKey) }))
    .sort((a, b) => a.rank - b.rank || a.lastLease - b.lastLease)
    .map(({ claim }) => claim);
}

/** Whose recognizer goes to a claim that is more urgent: that of the least urgent, and among these of who loses least. */
export function whomToRecall<Claim extends ClaimOptions>(
  claim: Claim,
  leases: readonly Granted<Claim>[],
): Granted<Claim> | null {
  const rank = RANK[claim.urgency()];
  const latestMs = performance.now() - RECALLABLE_FOR_MS;
  const [first] = leases
    .filter(({ request, isRecalled }) => request.isRecallable && !isRecalled)
    .map((lease) => ({ lease, rank: RANK[lease.request.urgency()] }))
    .filter((other) => other.rank > rank && (other.lease.atMs > latestMs || other.rank === RANK.batch))
    .sort((a, b) => b.rank - a.rank || b.lease.atMs - a.lease.atMs);
  return first?.lease ?? null;
}
