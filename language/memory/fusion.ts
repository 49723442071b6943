/** One memory in the order of one kind of search. */
export interface RankedMemory {
  memoryId: string;
  /** Which of its units was found. */
  unitId: bigint;
  /** How much it has to do with the query, 0 to 1. */
  evidence: number;
  /** As it is told: the cosine, or the share of words. */
  told: number;
}

/** Both best first, with each memory once. */
export interface Rankings {
  semantic: readonly RankedMemory[];
  keyword: readonly RankedMemory[];
}

export interface FusedMemory {
  memoryId: string;
  /** The unit by which the search that ranks it higher found it. */
  unitId: bigint;
  /** 0 to 1; never higher than that of a memory before it. */
  score: number;
  /** Null: that search did not find it. */
  scores: { semantic: number | null; keyword: number | null };
}

/**
 * One order of two, by reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009): 1 / (60 + rank), summed, what is
 * hardly near counting less. That says which is best and not how good it is, so the score is made of evidence: of both searches together, as if they were
 * independent witnesses, and then evened out where it would contradict the order (isotonic regression).
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
  const ordered = [...candidates.values()]
    .map((candidate) => ({ ...candidate, rankScore: rankScoreOf(candidate), evidence: evidenceOf(candidate) }))
    .sort((a, b) => b.rankScore - a.rankScore || b.evidence - a.evidence || (a.memoryId < b.memoryId ? -1 : 1));
  const scores = neverRising(ordered.map(({ evidence }) => evidence));
  return ordered.map(({ memoryId, semantic, keyword }, index) => ({
    memoryId,
    unitId: (semantic !== null && (keyword === null || semantic.rank < keyword.rank) ? semantic : keyword!).unitId,
    score: scores[index]!,
    scores: { semantic: semantic?.told ?? null, keyword: keyword?.told ?? null },
  }));
}

type Ranked = RankedMemory & { rank: number };

interface Candidate {
  memoryId: string;
  semantic: Ranked | null;
  keyword: Ranked | null;
}

/** Of the paper: it keeps the first few of one order from outweighing what both agree on. */
const RANK_CONSTANT = 60;

function rankScoreOf({ semantic, keyword }: Candidate): number {
  const byMeaning = semantic === null ? 0 : Math.min(1, semantic.evidence / SOUND) / (RANK_CONSTANT + semantic.rank);
  const byWords = keyword === null ? 0 : 1 / (RANK_CONSTANT + keyword.rank);
  return byMeaning + byWords;
}

/** Evidence of nearness from which its rank counts in full: the nearest of what is all far away is near by chance. */
const SOUND = 0.05;

function evidenceOf({ semantic, keyword }: Candidate): number {
  return 1 - (1 - (semantic?.evidence ?? 0)) * (1 - (keyword?.evidence ?? 0));
}

/** The nearest numbers, in the sense of least squares, of which none is higher than the one before. */
function neverRising(values: readonly number[]): number[] {
  const blocks: { sum: number; count: number }[] = [];
  for (const value of values) {
    let block = { sum: value, count: 1 };
    for (let before = blocks.at(-1); before !== undefined; before = blocks.at(-1)) {
      if (before.sum / before.count >= block.sum / block.count) break;
      block = { sum: before.sum + block.sum, count: before.count + block.count };
      blocks.pop();
    }
    blocks.push(block);
  }
  return blocks.flatMap(({ sum, count }) => Array.from({ length: count }, () => Math.min(1, Math.max(0, sum / count))));
}

/**
 * How much a cosine says: 0 for no nearer than anything is to the query, 1 for the same. Of few points the average is
 * not worth much; it counts as if there were `PRIOR_POINTS` more at `PRIOR_COSINE`.
 */
export function evidenceOfCosine(
  cosine: number,
  { compared, sumOfCosines }: { compared: number; sumOfCosines: number },
): number {
  const background = (sumOfCosines + PRIOR_POINTS * PRIOR_COSINE) / (compared + PRIOR_POINTS);
  return Math.min(1, Math.max(0, (cosine - background) / (1 - Math.min(0.99, background))));
}

const PRIOR_POINTS = 20;
const PRIOR_COSINE = 0.1;
