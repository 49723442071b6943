import { evidenceOfCoverage, type FusedMemory } from './fusion.ts';

/** A memory counts as relevant down to this share of the best score. */
const LEAST_OF_BEST = 0.5;
/** A smaller share of the words of a query is a coincidence. */
const LEAST_COVERAGE = 0.1;

/**
 * The memories that have something to do with the query, in their order. The best one sets the scale: beside a good match
 * weak ones only distract. Where nothing matches well, the least evidence keeps out the memories that are only less far
 * away than others. `leastEvidence` is that of the embedder.
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
