import { ByteRows } from './dot-products.ts';
import { lengthOf } from './point.ts';

/** A vector to add to a collection. */
export interface PointAddition {
  unitId: number;
  memoryId: string;
  bytes: Uint8Array;
}

export interface NearUnit {
  unitId: number;
  memoryId: string;
  /** -1 to 1. */
  cosine: number;
}

/** The result of a search, with statistics over all points. */
export interface Nearness {
  nearest: NearUnit[];
  /** How many points were compared, and the sum of their cosines. Gives the average for this query. */
  compared: number;
  sumOfCosines: number;
}

/** The points of one collection. A search compares all of them: exact, and 100,000 take about 20 ms. */
export class PointCollection {
  readonly #rows: ByteRows;
  readonly #rowOf = new Map<number, number>();
  readonly #unitIds: number[] = [];
  readonly #memories: number[] = [];
  readonly #lengths: number[] = [];
  readonly #places = new Map<string, number>();
  readonly #memoryIds: string[] = [];

  constructor(dimensions: number) {
    this.#rows = new ByteRows(dimensions);
  }

  get size(): number {
    return this.#rows.count;
  }

  get bytes(): number {
    return this.#rows.bytes + this.#rows.count * BYTES_BESIDE_A_POINT;
  }

  /** Ignores points with other dimensions or of length 0, which cannot be compared. */
  add({ unitId, memoryId, bytes }: PointAddition): void {
    this.remove(unitId);
    const length = lengthOf(bytes);
    if (bytes.length !== this.#rows.dimensions || length === 0) return;
    this.#rowOf.set(unitId, this.#rows.count);
    this.#unitIds.push(unitId);
    this.#memories.push(this.#placeOf(memoryId));
    this.#lengths.push(length);
    this.#rows.push(bytes);
  }

  remove(unitId: number): void {
    const row = this.#rowOf.get(unitId);
    if (row === undefined) return;
    this.#rowOf.delete(unitId);
    this.#rows.remove(row);
    for (const column of [this.#unitIds, this.#memories, this.#lengths]) {
      const last = column.pop()!;
      if (row < column.length) column[row] = last;
    }
    if (row < this.#unitIds.length) this.#rowOf.set(this.#unitIds[row]!, row);
    if (this.#memoryIds.length > 2 * this.size + FORGOTTEN_MEMORIES) this.#forgetMemories();
  }

  /** Finds the nearest unit of each of the `limit` nearest memories, nearest first, optionally only in `among`. */
  nearestTo(query: Uint8Array, { limit, among }: { limit: number; among: ReadonlySet<number> | null }): Nearness {
    const queryLength = lengthOf(query);
    const count = this.#rows.count;
    if (query.length !== this.#rows.dimensions || queryLength === 0 || count === 0) return NOTHING_NEAR;
    const dots = this.#rows.dotsWith(query);
    const best = new Float32Array(this.#memoryIds.length).fill(FARTHER_THAN_ANY);
    const bestRow = new Int32Array(this.#memoryIds.length);
    let sumOfCosines = 0;
    for (let row = 0; row < count; row++) {
      const cosine = dots[row]! / (queryLength * this.#lengths[row]!);
      sumOfCosines += cosine;
      if (cosine <= best[this.#memories[row]!]!) continue;
      if (among !== null && !among.has(this.#unitIds[row]!)) continue;
      best[this.#memories[row]!] = cosine;
      bestRow[this.#memories[row]!] = row;
    }
    const nearest = placesOfHighest(best, limit).map((place) => ({
      unitId: this.#unitIds[bestRow[place]!]!,
      memoryId: this.#memoryIds[place]!,
      cosine: best[place]!,
    }));
    return { nearest, compared: count, sumOfCosines };
  }

  /** Drops memories without units. */
  #forgetMemories(): void {
    const ids = this.#memories.map((place) => this.#memoryIds[place]!);
    this.#places.clear();
    this.#memoryIds.length = 0;
    ids.forEach((id, row) => {
      this.#memories[row] = this.#placeOf(id);
    });
  }

  #placeOf(memoryId: string): number {
    const known = this.#places.get(memoryId);
    if (known !== undefined) return known;
    this.#places.set(memoryId, this.#memoryIds.length);
    return this.#memoryIds.push(memoryId) - 1;
  }
}

const NOTHING_NEAR: Nearness = { nearest: [], compared: 0, sumOfCosines: 0 };
const FARTHER_THAN_ANY = -2;
const FORGOTTEN_MEMORIES = 1_000;
/** Estimate for ids, lengths and maps. */
export const BYTES_BESIDE_A_POINT = 200;

/** Highest first. A min-heap of `limit` places. */
function placesOfHighest(values: Float32Array, limit: number): number[] {
  const heap: number[] = [];
  const below = (a: number, b: number) => values[a]! < values[b]! || (values[a]! === values[b]! && a > b);
  for (let place = 0; place < values.length; place++) {
    if (values[place] === FARTHER_THAN_ANY) continue;
    if (heap.length < limit) {
      heap.push(place);
      for (let at = heap.length - 1; at > 0; ) {
        const parent = (at - 1) >> 1;
        if (!below(heap[at]!, heap[parent]!)) break;
        [heap[at], heap[parent]] = [heap[parent]!, heap[at]!];
        at = parent;
      }
    } else if (limit > 0 && below(heap[0]!, place)) {
      heap[0] = place;
      for (let at = 0; ; ) {
        const [left, right] = [2 * at + 1, 2 * at + 2];
        let lowest = at;
        if (left < heap.length && below(heap[left]!, heap[lowest]!)) lowest = left;
        if (right < heap.length && below(heap[right]!, heap[lowest]!)) lowest = right;
        if (lowest === at) break;
        [heap[at], heap[lowest]] = [heap[lowest]!, heap[at]!];
        at = lowest;
      }
    }
  }
  return heap.sort((a, b) => (below(a, b) ? 1 : -1));
}
