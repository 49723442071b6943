import { TandemError } from '../../machines/errors.ts';
import type { Embedder } from './embedder.ts';
import { evidenceOfCosine, evidenceOfCoverage, type FusedMemory, fuse, type RankedMemory } from './fusion.ts';
import { pointOf } from './point.ts';
import { relevantAmong } from './relevance.ts';
import type { CollectionRevision, VectorIndex } from './vector-index.ts';

/** What recall asks of whoever keeps memories, on behalf of somebody who sees some of them. */
export interface RecallStore<Viewer, Condition, Found extends FoundText> {
  /** Those the viewer may see, of the type and among the ids that are given. */
  collections(viewer: Viewer, among: CollectionChoice): Promise<CollectionRevision[]>;
  /** The best units by the words of the query, best first. */
  byWords(scope: RecallScope<Condition>, question: WordQuestion): Promise<WordHit[]>;
  /** Ids of units that meet the conditions; null when there are more than `limit`. */
  unitsMeeting(scope: RecallScope<Condition>, limits: { limit: number }): Promise<bigint[] | null>;
  /** Those of the units that meet the conditions and have the phrases of the query, and nothing that it excludes. */
  stillMeeting(
    question: Omit<WordQuestion, 'limit'>,
    units: { unitIds: bigint[]; conditions: readonly Condition[] },
  ): Promise<bigint[]>;
  /** What units say, of those that the viewer may see. */
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
  /** Neither quotes nor a minus mean anything. */
  isPlain: boolean;
  limit: number;
  timeoutMs: number;
}

export interface WordHit {
  unitId: bigint;
  memoryId: string;
  /** The share of the query that it has, 0 to 1. */
  coverage: number;
}

export interface FoundText {
  unitId: bigint;
}

export interface RecallRequest<Viewer, Condition> {
  viewer: Viewer;
  query: string;
  /** Without these, all that the viewer may see. */
  collectionIds?: readonly string[] | undefined;
  type?: string | undefined;
  /** On metadata. */
  conditions: readonly Condition[];
  /** 1 to 100. */
  limit: number;
  /** The least score. */
  threshold?: number | undefined;
  /** As people talk, rather than as they search: neither quotes nor a minus mean anything. */
  isPlain?: boolean | undefined;
  /** Leaves out memories that hardly have to do with the query, however few remain (`relevantAmong`). */
  isRelevantOnly?: boolean | undefined;
  signal: AbortSignal;
}

export type Recalled<Found> = Found & Pick<FusedMemory, 'score' | 'scores'>;

export interface Recollection<Found> {
  /** Best first, one for each memory. */
  results: Recalled<Found>[];
  /** Memories that were found, whether or not they are among the results: of each kind of search at most some hundred. */
  total: number;
  /** One of the two searches did not take part, or not in full. */
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
  /** How long each of the two searches may take. Default 3 000 ms. */
  timeoutMs?: number;
  logger: { warn(fields: object, message: string): void };
}

/**
 * Finds what was remembered, by words and by meaning at the same time. When one of the two cannot answer, the other does
 * alone.
 * @throws TandemError `COLLECTION_NOT_FOUND` when one is named that the viewer does not see; `MEMORY_UNREACHABLE` when
 * neither search answers; the signal's reason
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
      // Those that are gone since they were found are not counted.
      total: fused.length <= limit ? results.length : fused.length,
      degraded: words.status === 'rejected' || meaning.status === 'rejected' || near.isPartial,
      timingMs: performance.now() - startedMs,
    };
  }

  async function visibleCollections(request: RecallRequest<Viewer, Condition>): Promise<CollectionRevision[]> {
    const { viewer, collectionIds, type } = request;
    const collections = await store.collections(viewer, { ids: collectionIds, type });
    const seen = new Set(collections.map(({ id }) => id));
    // What is of another type is there, and has nothing to say.
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
      told: Math.min(1, Math.max(0, cosine)),
    }));
    // What is no nearer than anything is was not found.
    const near = ranked.filter(({ evidence }) => evidence > 0);
    const units = { unitIds: near.map(({ unitId }) => unitId), conditions: scope.conditions };
    const meeting = new Set(await store.stillMeeting(question, units));
    return { ranked: near.filter(({ unitId }) => meeting.has(unitId)), isPartial: found.isPartial };
  }

  /**
   * The best `limit` of those that are still there. A unit that is not was deleted since it was found, or its memory was
   * processed meanwhile and has others now.
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

/** Of searches that what was written meanwhile has overtaken. */
const MOST_ATTEMPTS = 3;
/** Of each kind of search. */
const MOST_CANDIDATES = 200;
/** Of conditions that more units meet, the nearest are asked afterwards. */
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
    best.set(memoryId, { memoryId, unitId, evidence: evidenceOfCoverage(coverage), told: coverage });
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
