import { evidenceOfCoverage, type FusedMemory } from './fusion.ts';

/** Lowest relevant share of the best score. */
const LEAST_OF_BEST = 0.5;
/** A smaller share of the query's words is coincidence. */
const LEAST_COVERAGE = 0.1;

/**
 * Keeps the relevant memories, in order. The best one sets the scale, because weak matches distract beside a good one.
 * If nothing matches well, the embedder's `leastEvidence` drops memories that are merely less distant than others.
 */
export function relevantAmong(
  fused: readonly FusedMemory[],
  { leastEvidence }: { leastEvidence: number },
): FusedMemory[] {
  const least = LEAST_OF_BEST * (fused[0]?.score ?? 0);
  return fused.filter(
    ({ score, evidence }) =>
      score >= least && (evidence.semantic >= leastEvidence || evidence.keyword >= evidenceOfCoverage(LEAST_COVERAGE)),
  );
}
