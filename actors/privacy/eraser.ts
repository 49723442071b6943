/** Deletes in the background: the data about phone numbers, and the objects of deleted recordings. */
export interface Eraser {
  /** One round over everything that was requested. Concurrent calls share a round, and a second one after it. */
  work(): Promise<void>;
}
