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
  onRecall: () => void;
  signal: AbortSignal;
}

/** Waits in a pool's queue for a recognizer. */
export interface Claim<Lease> extends ClaimOptions {
  readonly order: number;
  grant(lease: Lease): void;
  refuse(error: unknown): void;
}

const RANK: Record<Urgency, number> = { due: 0, spoken: 1, batch: 2 };

export function isMoreUrgent(a: Urgency, b: Urgency): boolean {
  return RANK[a] < RANK[b];
}

/** The order in which claims are served: by urgency; then whose stream had one longest ago; then who came first. */
export function inOrder<Lease>(
  claims: Iterable<Claim<Lease>>,
  lastGrantTo: (streamKey: number) => number,
): Claim<Lease>[] {
  return [...claims]
    .map((claim) => ({ claim, rank: RANK[claim.urgency()], lastGrant: lastGrantTo(claim.streamKey) }))
    .sort((a, b) => a.rank - b.rank || a.lastGrant - b.lastGrant || a.claim.order - b.claim.order)
    .map(({ claim }) => claim);
}
