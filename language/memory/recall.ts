import { TandemError } from '../../machines/errors.ts';
import type { Embedder } from './embedder.ts';
import { evidenceOfCosine, evidenceOfCoverage, type FusedMemory, fuse, type RankedMemory } from './fusion.ts';
import { pointOf } from './point.ts';
import { relevantAmong } from './relevance.ts';
import type { CollectionRevision, VectorIndex } from './vector-index.ts';

/** Storage that recall reads, restricted to what a viewer may see. */
export interface RecallStore<Viewer, Condition, Found extends FoundText> {
  /** Collections that the viewer may see, filtered by type and ids. */
  collections(viewer: Viewer, among: CollectionChoice): Promise<CollectionRevision[]>;
  /** The best units by the words of the query, best first. */
  byWords(scope: RecallScope<Condition>, question: WordQuestion): Promise<WordHit[]>;
  /** Ids of units that meet the conditions; null if more than `limit`. */
  unitsMeeting(scope: RecallScope<Condition>, limits: { limit: number }): Promise<bigint[] | null>;
  /** The units that still meet the conditions, contain the query's phrases and none of its exclusions. */
  stillMeeting(
    question: Omit<WordQuestion, 'limit'>,
    units: { unitIds: bigint[]; conditions: readonly Condition[] },
  ): Promise<bigint[]>;
  /** Contents of the units that the viewer may see. */
  found(viewer: Viewer, unitIds: bigint[]): Promise<Found[]>;
}

export interface CollectionChoice {
  ids?: readonly string[] | undefined;
  type?: string | undefined;
}

export interface RecallScope<Condition> {
  collectionIds: readonly string[];
  conditions: readonly Condition[];
}

export interface WordQuestion {
  query: string;
  /** Quotes and minus have no meaning. */
  isPlain: boolean;
  limit: number;
  timeoutMs: number;
}

export interface WordHit {
  unitId: bigint;
  memoryId: string;
  /** Share of the query's words that the unit has, 0 to 1. */
  coverage: number;
}

export interface FoundText {
  unitId: bigint;
}

export interface RecallRequest<Viewer, Condition> {
  viewer: Viewer;
  query: string;
  /** Default: all that the viewer may see. */
  collectionIds?: readonly string[] | undefined;
  type?: string | undefined;
  /** On metadata. */
  conditions: readonly Condition[];
  /** 1 to 100. */
  limit: number;
  /** Lowest score. */
  threshold?: number | undefined;
  /** Natural language instead of search syntax: quotes and minus have no meaning. */
  isPlain?: boolean | undefined;
  /** Drops hardly relevant memories, however few remain (`relevantAmong`). */
  isRelevantOnly?: boolean | undefined;
  signal: AbortSignal;
}

export type Recalled<Found> = Found & Pick<FusedMemory, 'score' | 'scores'>;

export interface Recollection<Found> {
  /** Best first, one per memory. */
  results: Recalled<Found>[];
  /** Memories found in total. Each search finds some hundred at most. */
  total: number;
  /** One of the two searches failed or was incomplete. */
  degraded: boolean;
  timingMs: number;
}

export type Recall<Viewer, Condition, Found> = (
  request: RecallRequest<Viewer, Condition>,
) => Promise<Recollection<Found>>;

export interface RecallOptions<Viewer, Condition, Found extends FoundText> {
  store: RecallStore<Viewer, Condition, Found>;
  embedder: Embedder;
  index: VectorIndex;
  /** Timeout of each of the two searches. Default 3 000 ms. */
  timeoutMs?: number;
  logger: { warn(fields: object, message: string): void };
}

/**
 * Creates recall, which searches by words and by meaning in parallel. If one search fails, the other answers alone.
 * @throws TandemError `COLLECTION_NOT_FOUND` if the viewer cannot see a named collection; `MEMORY_UNREACHABLE` if both
 * searches fail; the signal's reason
 */
export function createRecall<Viewer, Condition, Found extends FoundText>(
  options: RecallOptions<Viewer, Condition, Found>,
): Recall<Viewer, Condition, Found> {
  const { store, embedder, index, timeoutMs = 3_000, logger } = options;

  return async (request) => {
    const startedMs = performance.now();
    for (let attempt = 1; ; attempt++) {
      const { isOvertaken, ...recollection } = await recallOnce(request, startedMs);
      if (!isOvertaken || attempt === MOST_ATTEMPTS) return recollection;
    }
  };

  async function recallOnce(
    request: RecallRequest<Viewer, Condition>,
    startedMs: number,
  ): Promise<Recollection<Found> & { isOvertaken: boolean }> {
    const { viewer, limit, threshold = 0, signal } = request;
    const collections = await visibleCollections(request);
    const scope = { collectionIds: collections.map(({ id }) => id), conditions: request.conditions };
    const question = { query: request.query, isPlain: request.isPlain ?? false, limit: MOST_CANDIDATES, timeoutMs };
    const [words, meaning] = await Promise.allSettled([
      collections.length === 0 ? [] : store.byWords(scope, question),
      byMeaning(collections, scope, { question, signal }),
    ]);
    signal.throwIfAborted();
    if (words.status === 'rejected' && meaning.status === 'rejected') throw unreachable(words.reason);
    for (const search of [words, meaning]) {
      if (search.status === 'rejected') logger.warn({ err: search.reason }, 'one kind of recall failed');
    }
    const keyword = words.status === 'fulfilled' ? bestOfEachMemory(words.value) : [];
    const near = meaning.status === 'fulfilled' ? meaning.value : NO_MEANING;
    const found = fuse({ semantic: near.ranked, keyword }).filter(({ score }) => score > 0 && score >= threshold);
    const fused = request.isRelevantOnly ? relevantAmong(found, embedder) : found;
    const { results, isOvertaken } = await shown(viewer, fused, limit);
    return {
      results,
      isOvertaken,
      // Excludes memories deleted since the search.
      total: fused.length <= limit ? results.length : fused.length,
      degraded: words.status === 'rejected' || meaning.status === 'rejected' || near.isPartial,
      timingMs: performance.now() - startedMs,
    };
  }

  async function visibleCollections(request: RecallRequest<Viewer, Condition>): Promise<CollectionRevision[]> {
    const { viewer, collectionIds, type } = request;
    const collections = await store.collections(viewer, { ids: collectionIds, type });
    const seen = new Set(collections.map(({ id }) => id));
    // A collection of another type exists but has no results.
    if (type === undefined && collectionIds?.some((id) => !seen.has(id.toLowerCase()))) {
      throw new TandemError('COLLECTION_NOT_FOUND', 'No collection that you can access has this id.');
    }
    return collections;
  }

  async function byMeaning(
    collections: CollectionRevision[],
    scope: RecallScope<Condition>,
    { question, signal }: { question: WordQuestion; signal: AbortSignal },
  ): Promise<Meaning> {
    const text = question.query.slice(0, LONGEST_EMBEDDED);
    if (collections.length === 0 || !/[\p{L}\p{N}]/u.test(text)) return NO_MEANING;
    const within = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const [embedded, among] = await Promise.all([
      embedder.embed([text], within),
      scope.conditions.length === 0 ? null : store.unitsMeeting(scope, { limit: MOST_UNITS_AMONG }),
    ]);
    if (among?.length === 0) return NO_MEANING;
    const limit = MOST_CANDIDATES;
    const found = await index.search({ collections, query: pointOf(embedded[0]!), limit, among, signal: within });
    const { typicalCosine } = embedder;
    const ranked = found.nearest.map(({ unitId, memoryId, cosine }) => ({
      memoryId,
      unitId: BigInt(unitId),
      evidence: evidenceOfCosine(cosine, { ...found, typicalCosine }),
      shownValue: Math.min(1, Math.max(0, cosine)),
    }));
    // No nearer than average does not count as found.
    const near = ranked.filter(({ evidence }) => evidence > 0);
    const units = { unitIds: near.map(({ unitId }) => unitId), conditions: scope.conditions };
    const meeting = new Set(await store.stillMeeting(question, units));
    return { ranked: near.filter(({ unitId }) => meeting.has(unitId)), isPartial: found.isPartial };
  }

  /**
   * Loads the best `limit` that still exist. A missing unit was deleted since the search, or its memory was processed
   * again and has new units.
   */
  async function shown(
    viewer: Viewer,
    fused: readonly FusedMemory[],
    limit: number,
  ): Promise<{ results: Recalled<Found>[]; isOvertaken: boolean }> {
    const results: Recalled<Found>[] = [];
    let isOvertaken = false;
    for (let start = 0; start < fused.length && results.length < limit; start += limit) {
      const page = fused.slice(start, start + limit);
      const found = await store.found(
        viewer,
        page.map(({ unitId }) => unitId),
      );
      const texts = new Map(found.map((text) => [text.unitId, text]));
      for (const { unitId, score, scores } of page) {
        const text = texts.get(unitId);
        if (text === undefined) isOvertaken = true;
        else if (results.length < limit) results.push({ ...text, score, scores });
      }
    }
    return { results, isOvertaken };
  }
}

/** Retries of a search whose units changed meanwhile. */
const MOST_ATTEMPTS = 3;
const MOST_CANDIDATES = 200;
/** If more units meet the conditions, the conditions are checked after the search. */
const MOST_UNITS_AMONG = 20_000;
const LONGEST_EMBEDDED = 4_000;

interface Meaning {
  ranked: RankedMemory[];
  isPartial: boolean;
}

const NO_MEANING: Meaning = { ranked: [], isPartial: false };

function bestOfEachMemory(hits: readonly WordHit[]): RankedMemory[] {
  const best = new Map<string, RankedMemory>();
  for (const { unitId, memoryId, coverage } of hits) {
    if (best.has(memoryId)) continue;
    best.set(memoryId, { memoryId, unitId, evidence: evidenceOfCoverage(coverage), shownValue: coverage });
  }
  return [...best.values()];
}

function unreachable(cause: unknown): TandemError {
  if (cause instanceof TandemError) return cause;
  return new TandemError('MEMORY_UNREACHABLE', 'Memory search is temporarily unavailable. Retry.', {
    cause,
    retryAfterS: 10,
  });
}
