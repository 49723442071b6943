import type { Nearness } from './point-collection.ts';

/** The thread of a `VectorIndex`. It processes notices and calls in order. */
export interface VectorThread {
  data: null;
  ready: null;
  calls: {
    /** Replaces the published points by the draft. Returns the collection's bytes. */
    publish: { request: { collectionId: string }; answer: number };
    search: {
      request: {
        collectionIds: string[];
        query: Uint8Array;
        limit: number;
        /** Units to search; null: all. */
        among: Float64Array | null;
      };
      answer: Nearness;
    };
  };
  reports: never;
  notices: VectorNotice;
}

export type VectorNotice =
  /** Begins a draft of a collection. Searches use the published points until the draft is published. */
  { kind: 'begin'; collectionId: string; dimensions: number } | PointChanges | { kind: 'drop'; collectionId: string };

/** Removals are applied first. */
export interface PointChanges {
  kind: 'change';
  collectionId: string;
  isDraft: boolean;
  dimensions: number;
  removed: Float64Array;
  unitIds: Float64Array;
  memoryIds: string[];
  /** Concatenated, each of length `dimensions`. */
  bytes: Uint8Array;
}
