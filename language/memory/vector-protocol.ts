import type { Nearness } from './point-collection.ts';

/** What the index tells its thread, which works on it in that order. */
export type ToVectorThread =
  /** A collection is read from the beginning; searches see what was there before until it is published. */
  | { kind: 'begin'; collectionId: string; dimensions: number }
  | PointChanges
  | { kind: 'publish'; question: number; collectionId: string }
  | { kind: 'drop'; collectionId: string }
  | {
      kind: 'search';
      question: number;
      collectionIds: string[];
      query: Uint8Array;
      /** Most memories. */
      limit: number;
      /** Units among which to look; null: all. */
      among: Float64Array | null;
    };

/** Removals come first. */
export interface PointChanges {
  kind: 'change';
  collectionId: string;
  /** Whether it is part of what is not published yet. */
  isDraft: boolean;
  dimensions: number;
  removed: Float64Array;
  unitIds: Float64Array;
  memoryIds: string[];
  /** One after the other, each of `dimensions`. */
  bytes: Uint8Array;
}

export type FromVectorThread =
  | { kind: 'found'; question: number; nearness: Nearness }
  | { kind: 'published'; question: number; bytes: number };
