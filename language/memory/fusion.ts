/** A memory in the ranking of one search. */
export interface RankedMemory {
  memoryId: string;
  /** The unit that the search found. */
  unitId: bigint;
  /** How relevant the memory is, 0 to 1: `evidenceOfCosine` or `evidenceOfCoverage`. */
  evidence: number;
  /** The value shown in the result: cosine, or share of words. */
  shownValue: number;
}

/** Both best first, without duplicate memories. */
export interface Rankings {
  semantic: readonly RankedMemory[];
  keyword: readonly RankedMemory[];
}

export interface FusedMemory {
  memoryId: string;
  /** The unit with the stronger evidence. */
  unitId: bigint;
  /** 0 to 1; never higher than that of a memory before it. */
  score: number;
  /** Null if that search did not find it. */
  scores: { semantic: number | null; keyword: number | null };
  /** 0 if that search did not find it. */
  evidence: { semantic: number; keyword: number };
}

/**
 * Merges two orders by the evidence of both, as if the two searches were independent witnesses. A fusion of scores finds
 * more than one of ranks where both scores have a meaning (Bruch, Gai and Ingber, 2023). Ranks decide between equal
 * scores: many memories may have every word of a short query (Cormack, Clarke and Büttcher, 2009).
 */
export function fuse({ semantic, keyword }: Rankings): FusedMemory[] {
  const candidates = new Map<string, Candidate>();
  semantic.forEach((found, index) => {
    candidates.set(found.memoryId, {
      memoryId: found.memoryId,
      semantic: { ...found, rank: index + 1 },
      keyword: null,
    });
  });
  keyword.forEach((found, index) => {
    const candidate = candidates.get(found.memoryId) ?? { memoryId: found.memoryId, semantic: null, keyword: null };
    candidate.keyword = { ...found, rank: index + 1 };
    candidates.set(found.memoryId, candidate);
  });
  return [...candidates.values()]
    .map((candidate) => ({ ...candidate, score: scoreOf(candidate), rankScore: rankScoreOf(candidate) }))
    .sort((a, b) => b.score - a.score || b.rankScore - a.rankScore || (a.memoryId < b.memoryId ? -1 : 1))
    .map(({ memoryId, semantic, keyword, score }) => ({
      memoryId,
      unitId: (semantic !== null && semantic.evidence > (keyword?.evidence ?? -1) ? semantic : keyword!).unitId,
      score,
      scores: { semantic: semantic?.shownValue ?? null, keyword: keyword?.shownValue ?? null },
      evidence: { semantic: semantic?.evidence ?? 0, keyword: keyword?.evidence ?? 0 },
    }));
}

type Ranked = RankedMemory & { rank: number };

interface Candidate {
  memoryId: string;
  semantic: Ranked | null;
  keyword: Ranked | null;
}

function scoreOf({ semantic, keyword }: Candidate): number {
  return 1 - (1 - (semantic?.evidence ?? 0)) * (1 - (keyword?.evidence ?? 0));
}

/** Keeps the first few of one order from outweighing what both agree on. The value comes from the paper. */
const RANK_CONSTANT = 60;

function rankScoreOf({ semantic, keyword }: Candidate): number {
  return [semantic, keyword].reduce((sum, found) => sum + (found === null ? 0 : 1 / (RANK_CONSTANT + found.rank)), 0);
}

/**
 * How much a share of the words of a query means, 0 to 1. The square: most texts share a word or two with a question by
 * chance, and a text that has nearly all of its words is hardly ever a chance.
 */
export function evidenceOfCoverage(coverage: number): number {
  return coverage * coverage;
}

/**
 * How much a cosine means, 0 to 1: 0 for one that is average for the query, 1 for the same direction. An average of few
 * points is unreliable, so `PRIOR_POINTS` more count at `typicalCosine`, that of unrelated texts with this embedder.
 */
export function evidenceOfCosine(
  cosine: number,
  { compared, sumOfCosines, typicalCosine }: { compared: number; sumOfCosines: number; typicalCosine: number },
): number {
  const background = (sumOfCosines + PRIOR_POINTS * typicalCosine) / (compared + PRIOR_POINTS);
  return Math.min(1, Math.max(0, (cosine - background) / (1 - Math.min(0.99, background))));
}

const PRIOR_POINTS = 20;
