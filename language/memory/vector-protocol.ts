import type { Nearness } from './point-collection.ts';

/** The thread of a `VectorIndex`. It works on notices and calls in their order. */
export interface VectorThread {
  data: null;
  ready: null;
  calls: {
    /** Searches see the draft from now on. Answers the bytes of the collection. */
    publish: { request: { collectionId: string }; answer: number };
    search: {
      request: {
        collectionIds: string[];
        query: Uint8Array;
        /** Most memories. */
        limit: number;
        /** Units among which to look; null: all. */
        among: Float64Array | null;
      };
      answer: Nearness;
    };
  };
  reports: never;
  notices: VectorNotice;
}

export type VectorNotice =
  /** Begins a draft of a collection; searches see the published points until it is published. */
  { kind: 'begin'; collectionId: string; dimensions: number } | PointChanges | { kind: 'drop'; collectionId: string };

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
