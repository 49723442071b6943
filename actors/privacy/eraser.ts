/** Deletes data about phone numbers, and objects of deleted recordings, in the background. */
export interface Eraser {
  /** Processes all requested erasures. Concurrent calls share a round, and one more after it. */
  work(): Promise<void>;
}
