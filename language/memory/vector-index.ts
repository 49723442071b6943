import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { BYTES_BESIDE_A_POINT, type Nearness } from './point-collection.ts';
import type { FromVectorThread, PointChanges, ToVectorThread } from './vector-protocol.ts';

// A thread that loads .ts files runs Node's type stripper, which is WebAssembly. V8 (13.6, Node 24.21) now and then
// crashes the process when a second thread of it compiles its import wrappers anew while another one ends
// (Runtime_TierUpWasmToJSWrapper, then WasmEngine::FreeDeadCode on freed memory). Without a budget they never are.
setFlagsFromString('--wasm-wrapper-tiering-budget=2147483647');

/** Where the points are kept that the index has copies of: those of one embedder. */
export interface PointSource {
  /** Points that were added after one revision and up to another, by revision and id, a page after `afterUnitId`. */
  added(span: PointSpan & { afterUnitId: bigint; limit: number }): Promise<StoredPoint[]>;
  /** Units that were removed in that span; null when that is not known any more. */
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

/** A collection with the revision that a search has to see, which has committed. */
export interface CollectionRevision {
  id: string;
  revision: bigint;
  /** How many points it has at most. */
  units: number;
}

export interface VectorSearch {
  collections: readonly CollectionRevision[];
  query: Uint8Array;
  /** Most memories. */
  limit: number;
  /** Units among which to look; null: all. */
  among: readonly bigint[] | null;
  signal: AbortSignal;
}

export interface VectorFound extends Nearness {
  /** Collections were left out, as their points do not fit into the memory that there is. */
  isPartial: boolean;
}

/** Finds the points that are nearest to a query. */
export interface VectorIndex {
  /** Sees every change up to the revisions. @throws what the source throws, the signal's reason */
  search(search: VectorSearch): Promise<VectorFound>;
  close(): Promise<void>;
}

export interface VectorIndexOptions {
  source: PointSource;
  /** What copies of points may take in the thread. Default 1 GiB. */
  maxBytes?: number;
  /** Starts `vector-worker.ts`; tests keep what it returns, and end it. */
  startWorker?: () => Worker;
  logger: { warn(fields: object, message: string): void };
}

/**
 * Compares a query with every point, in a thread that keeps copies of the collections that were searched last. Before
 * each search it is told what changed since. When it dies, another begins with nothing.
 */
export function createVectorIndex(options: VectorIndexOptions): VectorIndex {
  const { source, maxBytes = 2 ** 30, startWorker = startVectorWorker, logger } = options;
  let thread: VectorThread | null = null;
  let isClosed = false;

  return {
    async search(search) {
      for (let attempt = 1; ; attempt++) {
        search.signal.throwIfAborted();
        if (isClosed) throw new Error('the vector index is closed');
        thread ??= startThread();
        const used = thread;
        try {
          return await used.search(search);
        } catch (error) {
          if (!(error instanceof ThreadDied)) throw error;
          if (thread === used) thread = null;
          if (attempt === MOST_ATTEMPTS) throw error;
        }
      }
    },
    async close() {
      isClosed = true;
      await thread?.close();
    },
  };

  function startThread(): VectorThread {
    const onDeath = (error: Error) => logger.warn({ err: error }, 'a vector thread died');
    return new VectorThread({ source, maxBytes, worker: startWorker(), onDeath });
  }
}

function startVectorWorker(): Worker {
  return new Worker(new URL('./vector-worker.ts', import.meta.url), { execArgv: [] });
}

const MOST_ATTEMPTS = 3;
/** Of points that are read at once: what is unpacked within some milliseconds. */
const PAGE_BYTES = 384_000;
/** A point of few dimensions is still a row. */
const BYTES_OF_A_ROW = 768;

class ThreadDied extends Error {
  override readonly name = 'ThreadDied';
}

/** What the thread has of one collection. */
interface Copy {
  revision: bigint;
  bytes: number;
  lastUsed: number;
  /** Searches that read it now. */
  readers: number;
  /** One after the other brings it up to date. */
  updating: Promise<void>;
}

interface VectorThreadOptions {
  source: PointSource;
  maxBytes: number;
  worker: Worker;
  onDeath: (error: Error) => void;
}

class VectorThread {
  readonly #worker: Worker;
  readonly #source: PointSource;
  readonly #maxBytes: number;
  readonly #copies = new Map<string, Copy>();
  readonly #questions = new Map<number, PromiseWithResolvers<FromVectorThread>>();
  #death: ThreadDied | null = null;
  #isClosing = false;
  #questionCount = 0;
  #uses = 0;

  constructor({ source, maxBytes, worker, onDeath }: VectorThreadOptions) {
    this.#source = source;
    this.#maxBytes = maxBytes;
    this.#worker = worker;
    this.#worker.unref();
    const die = (cause: unknown) => {
      if (this.#death !== null) return;
      this.#death = new ThreadDied('the thread that compares points ended', { cause });
      for (const { reject } of this.#questions.values()) reject(this.#death);
      this.#questions.clear();
      if (!this.#isClosing) onDeath(this.#death);
    };
    this.#worker.on('error', die);
    this.#worker.on('exit', (code) => die(new Error(`exit code ${code}`)));
    this.#worker.on('message', (message: FromVectorThread) => {
      this.#questions.get(message.question)?.resolve(message);
      this.#questions.delete(message.question);
    });
  }

  async search({ collections, query, limit, among, signal }: VectorSearch): Promise<VectorFound> {
    const fitting = this.#fitting(collections, query.length);
    const reading: Copy[] = [];
    try {
      for (const collection of fitting) {
        const copy = this.#copyOf(collection.id);
        copy.readers += 1;
        reading.push(copy);
        await beforeAbort(this.#bringUpToDate(collection, copy, query.length), signal);
      }
      this.#makeRoom();
      const answer = await this.#ask((question) => ({
        kind: 'search',
        question,
        collectionIds: fitting.map(({ id }) => id),
        query,
        limit,
        among: among && Float64Array.from(among, Number),
      }));
      if (answer.kind !== 'found') throw new Error('the thread answered another question');
      return { ...answer.nearness, isPartial: fitting.length < collections.length };
    } finally {
      for (const copy of reading) copy.readers -= 1;
    }
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#worker.terminate();
  }

  /** The smallest first, as many as there is room for. */
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

  /** Nobody stops it: what a search that gave up began, the next one needs. */
  async #bringUpToDate({ id, revision }: CollectionRevision, copy: Copy, dimensions: number): Promise<void> {
    // Whoever began before may have done what is needed; that it failed is its own affair.
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
    if (isDraft) this.#tell({ kind: 'begin', collectionId, dimensions });
    // Should it break off here, the same changes are told once more, which changes nothing.
    else this.#tell({ ...changes(collectionId, dimensions, []), isDraft, removed: Float64Array.from(removed, Number) });
    const limit = Math.max(1, Math.floor(PAGE_BYTES / Math.max(BYTES_OF_A_ROW, dimensions)));
    let after = isDraft ? NOTHING : copy.revision;
    for (let afterUnitId = LAST_OF_REVISION; ; ) {
      const page = await this.#source.added({ ...span, after, afterUnitId, limit });
      this.#tell({ ...changes(collectionId, dimensions, page), isDraft });
      const last = page.at(-1);
      if (last === undefined || page.length < limit) break;
      after = last.revision;
      afterUnitId = last.unitId;
    }
    const size = await this.#ask((question) => ({ kind: 'publish', question, collectionId }));
    copy.bytes = size.kind === 'published' ? size.bytes : 0;
    copy.revision = until;
  }

  /** Forgets the collections that nobody asked for the longest, until the others fit. */
  #makeRoom(): void {
    let total = 0;
    for (const copy of this.#copies.values()) total += copy.bytes;
    const idle = [...this.#copies]
      .filter(([, copy]) => copy.readers === 0)
      .sort(([, a], [, b]) => a.lastUsed - b.lastUsed);
    for (const [id, copy] of idle) {
      if (total <= this.#maxBytes) return;
      this.#copies.delete(id);
      this.#tell({ kind: 'drop', collectionId: id });
      total -= copy.bytes;
    }
  }

  #tell(message: ToVectorThread): void {
    if (this.#death !== null) throw this.#death;
    this.#worker.postMessage(message);
  }

  async #ask(question: (id: number) => ToVectorThread): Promise<FromVectorThread> {
    this.#questionCount += 1;
    const id = this.#questionCount;
    const answer = Promise.withResolvers<FromVectorThread>();
    this.#questions.set(id, answer);
    try {
      this.#tell(question(id));
    } catch (error) {
      this.#questions.delete(id);
      throw error;
    }
    // A thread that is working keeps the process; one that waits does not.
    this.#worker.ref();
    try {
      return await answer.promise;
    } finally {
      if (this.#questions.size === 0) this.#worker.unref();
    }
  }
}

/** No collection has had it: they begin with 0, and their first change is 1. */
const NOTHING = -1n;
const LAST_OF_REVISION = 2n ** 63n - 1n;

function changes(collectionId: string, dimensions: number, points: readonly StoredPoint[]): PointChanges {
  // Points of other dimensions cannot be compared with the query.
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

/** The signal's reason when that comes first. */
export async function beforeAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    if (signal.aborted) abort();
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
