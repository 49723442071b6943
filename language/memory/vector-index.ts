import { SupervisedThread, THREAD_LOST, ThreadError } from '../../runtime/supervised-thread.ts';
import { raceAbort } from '../../runtime/waiting.ts';
import { BYTES_BESIDE_A_POINT, type Nearness } from './point-collection.ts';
import type { PointChanges, VectorThread } from './vector-protocol.ts';

/** Storage of one embedder's points, which the index copies. */
export interface PointSource {
  /** Points added between two revisions, ordered by revision and id. One page, after `afterUnitId`. */
  added(span: PointSpan & { afterUnitId: bigint; limit: number }): Promise<StoredPoint[]>;
  /** Units removed between two revisions; null if no longer known. */
  removed(span: PointSpan): Promise<bigint[] | null>;
}

export interface PointSpan {
  collectionId: string;
  after: bigint;
  until: bigint;
}

export interface StoredPoint {
  unitId: bigint;
  memoryId: string;
  bytes: Uint8Array;
  revision: bigint;
}

/** A collection with the committed revision that a search must include. */
export interface CollectionRevision {
  id: string;
  revision: bigint;
  /** Upper bound of its points. */
  units: number;
}

export interface VectorSearch {
  collections: readonly CollectionRevision[];
  query: Uint8Array;
  limit: number;
  /** Units to search; null: all. */
  among: readonly bigint[] | null;
  signal: AbortSignal;
}

export interface VectorFound extends Nearness {
  /** Some collections did not fit into memory and were skipped. */
  isPartial: boolean;
}

/** Finds the points nearest to a query. */
export interface VectorIndex {
  /** Includes every change up to the given revisions. @throws the source's error, the signal's reason */
  search(search: VectorSearch): Promise<VectorFound>;
  close(): Promise<void>;
}

export interface VectorIndexOptions {
  source: PointSource;
  /** Memory limit for copies in the thread. Default 1 GiB. */
  maxBytes?: number;
  /** Starts `vector-worker.ts`. Tests replace it to stop the thread. */
  startThread?: () => SupervisedThread<VectorThread>;
  logger: { warn(fields: object, message: string): void };
}

/**
 * Compares a query with every point, in a thread that keeps copies of recently searched collections. Changes are sent
 * to it before each search. If the thread dies, a new one starts empty.
 */
export function createVectorIndex(options: VectorIndexOptions): VectorIndex {
  const { source, maxBytes = 2 ** 30, startThread = startVectorThread, logger } = options;
  let copies: ThreadCopies | null = null;
  let isClosed = false;

  return {
    async search(search) {
      for (let attempt = 1; ; attempt++) {
        search.signal.throwIfAborted();
        if (isClosed) throw new Error('the vector index is closed');
        copies ??= start();
        const used = copies;
        try {
          return await used.search(search);
        } catch (error) {
          if (!(error instanceof ThreadError && error.code === THREAD_LOST)) throw error;
          if (copies === used) copies = null;
          if (attempt === MOST_ATTEMPTS) throw error;
        }
      }
    },
    async close() {
      isClosed = true;
      await copies?.thread.terminate();
    },
  };

  function start(): ThreadCopies {
    const thread = startThread();
    void thread.ended.then((error) => {
      if (!isClosed) logger.warn({ err: error }, 'vector thread died');
    });
    return new ThreadCopies({ source, maxBytes, thread });
  }
}

export function startVectorThread(): SupervisedThread<VectorThread> {
  return new SupervisedThread({
    entry: new URL('./vector-worker.ts', import.meta.url),
    data: null,
    name: 'the thread that compares points',
    keepsProcess: 'while-busy',
  });
}

const MOST_ATTEMPTS = 3;
/** Size of a page: unpacked within milliseconds. */
const PAGE_BYTES = 384_000;
/** Fixed cost of a row, however few dimensions. */
const BYTES_OF_A_ROW = 768;

/** The thread's copy of one collection. */
interface Copy {
  revision: bigint;
  bytes: number;
  lastUsed: number;
  /** Searches that currently read it. */
  readers: number;
  /** Serializes updates. */
  updating: Promise<void>;
}

interface ThreadCopiesOptions {
  source: PointSource;
  maxBytes: number;
  thread: SupervisedThread<VectorThread>;
}

class ThreadCopies {
  readonly thread: SupervisedThread<VectorThread>;
  readonly #source: PointSource;
  readonly #maxBytes: number;
  readonly #copies = new Map<string, Copy>();
  #uses = 0;

  constructor({ source, maxBytes, thread }: ThreadCopiesOptions) {
    this.#source = source;
    this.#maxBytes = maxBytes;
    this.thread = thread;
  }

  async search({ collections, query, limit, among, signal }: VectorSearch): Promise<VectorFound> {
    const fitting = this.#fitting(collections, query.length);
    const reading: Copy[] = [];
    try {
      for (const collection of fitting) {
        const copy = this.#copyOf(collection.id);
        copy.readers += 1;
        reading.push(copy);
        await raceAbort(this.#bringUpToDate(collection, copy, query.length), signal);
      }
      this.#makeRoom();
      const nearness = await this.thread.call('search', {
        collectionIds: fitting.map(({ id }) => id),
        query,
        limit,
        among: among && Float64Array.from(among, Number),
      });
      return { ...nearness, isPartial: fitting.length < collections.length };
    } finally {
      for (const copy of reading) copy.readers -= 1;
    }
  }

  /** As many collections as fit, smallest first. */
  #fitting(collections: readonly CollectionRevision[], dimensions: number): CollectionRevision[] {
    let bytes = 0;
    return collections
      .toSorted((a, b) => a.units - b.units)
      .filter(({ units }) => {
        bytes += units * (dimensions + BYTES_BESIDE_A_POINT);
        return bytes <= this.#maxBytes;
      });
  }

  #copyOf(collectionId: string): Copy {
    const copy = this.#copies.get(collectionId) ?? {
      revision: NOTHING,
      bytes: 0,
      lastUsed: 0,
      readers: 0,
      updating: Promise.resolve(),
    };
    this.#uses += 1;
    copy.lastUsed = this.#uses;
    this.#copies.set(collectionId, copy);
    return copy;
  }

  /** An update continues after the search gave up, for the next search. */
  async #bringUpToDate({ id, revision }: CollectionRevision, copy: Copy, dimensions: number): Promise<void> {
    // The previous update may already suffice. Its own waiters see its failure.
    const updated = copy.updating.then(async () => {
      if (copy.revision < revision) await this.#update(id, { copy, dimensions, until: revision });
    });
    copy.updating = updated.catch(() => {});
    await updated;
  }

  async #update(collectionId: string, update: { copy: Copy; dimensions: number; until: bigint }): Promise<void> {
    const { copy, dimensions, until } = update;
    const span = { collectionId, after: copy.revision, until };
    const removed = copy.revision === NOTHING ? null : await this.#source.removed(span);
    const isDraft = removed === null;
    if (isDraft) this.thread.post({ kind: 'begin', collectionId, dimensions });
    // If this fails midway, the next update repeats the changes, which is idempotent.
    else
      this.thread.post({
        ...changes(collectionId, dimensions, []),
        isDraft,
        removed: Float64Array.from(removed, Number),
      });
    const limit = Math.max(1, Math.floor(PAGE_BYTES / Math.max(BYTES_OF_A_ROW, dimensions)));
    let after = isDraft ? NOTHING : copy.revision;
    for (let afterUnitId = LAST_OF_REVISION; ; ) {
      const page = await this.#source.added({ ...span, after, afterUnitId, limit });
      this.thread.post({ ...changes(collectionId, dimensions, page), isDraft });
      const last = page.at(-1);
      if (last === undefined || page.length < limit) break;
      after = last.revision;
      afterUnitId = last.unitId;
    }
    copy.bytes = await this.thread.call('publish', { collectionId });
    copy.revision = until;
  }

  /** Drops the least recently used collections until the others fit. */
  #makeRoom(): void {
    let total = 0;
    for (const copy of this.#copies.values()) total += copy.bytes;
    const idle = [...this.#copies]
      .filter(([, copy]) => copy.readers === 0)
      .sort(([, a], [, b]) => a.lastUsed - b.lastUsed);
    for (const [id, copy] of idle) {
      if (total <= this.#maxBytes) return;
      this.#copies.delete(id);
      this.thread.post({ kind: 'drop', collectionId: id });
      total -= copy.bytes;
    }
  }
}

/** Below every revision: collections begin with 0, and their first change is 1. */
const NOTHING = -1n;
const LAST_OF_REVISION = 2n ** 63n - 1n;

function changes(collectionId: string, dimensions: number, points: readonly StoredPoint[]): PointChanges {
  // Points with other dimensions cannot be compared with the query.
  const fitting = points.filter(({ bytes }) => bytes.length === dimensions);
  const bytes = new Uint8Array(fitting.length * dimensions);
  for (const [index, point] of fitting.entries()) bytes.set(point.bytes, index * dimensions);
  return {
    kind: 'change',
    collectionId,
    isDraft: false,
    dimensions,
    removed: new Float64Array(),
    unitIds: Float64Array.from(fitting, ({ unitId }) => Number(unitId)),
    memoryIds: fitting.map(({ memoryId }) => memoryId),
    bytes,
  };
}
