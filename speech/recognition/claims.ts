import type { Granted } from '../../runtime/lease-pool.ts';
import type { Capability } from './router.ts';

/**
 * Priority of an utterance, highest first: `due` is live and complete, or far behind; `spoken` is live and still being
 * spoken; `batch` is from a file.
 */
export type Urgency = 'due' | 'spoken' | 'batch';

export interface ClaimOptions {
  streamKey: number;
  model: Capability;
  /** Called repeatedly, because an utterance may become due while it waits. */
  urgency: () => Urgency;
  /** Whether a more urgent claim may recall the recognizer; the utterance then restarts. */
  isRecallable: boolean;
  /** Whether the process must not be shared, because a shared one broke and either utterance may be the cause. */
  isAlone: boolean;
  onRecall: () => void;
  signal: AbortSignal;
}

/** After this time a restart would lose too much, unless the utterance is from a file. */
const RECALLABLE_FOR_MS = 10_000;

const RANK: Record<Urgency, number> = { due: 0, spoken: 1, batch: 2 };

/** Sorts claims by urgency, then by the stream's last lease (oldest first), then by arrival. */
export function inOrder<Claim extends ClaimOptions>(
  claims: readonly Claim[],
  lastLeaseTo: (streamKey: number) => number,
): Claim[] {
  return claims
    .map((claim) => ({ claim, rank: RANK[claim.urgency()], lastLease: lastLeaseTo(claim.streamKey) }))
    .sort((a, b) => a.rank - b.rank || a.lastLease - b.lastLease)
    .map(({ claim }) => claim);
}

/**
 * Chooses the lease to recall for a more urgent claim: the least urgent one and, among these, the one that loses least.
 */
export function leaseToRecall<Claim extends ClaimOptions>(
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
