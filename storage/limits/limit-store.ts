/**
 * Where counts and leases are kept: in this process, or in a Redis that several processes share. One conformance
 * suite runs on every driver. Time is the store's: no process's clock decides when a window or a lease is over.
 */
export interface LimitStore {
  /** Counts one in the window of the key, which opens with the first count and is over `windowS` seconds later. */
  count(key: string, windowS: number): Promise<WindowCount>;
  /** The window of the key without counting; null when none is open. */
  read(key: string, windowS: number): Promise<WindowCount | null>;
  /** Takes one count back, if a window of the key is open. */
  uncount(key: string, windowS: number): Promise<void>;
  /** Closes the window of the key: the next count opens another. */
  forget(key: string, windowS: number): Promise<void>;
  /** Takes one of `limit` leases of the key, all or nothing; false when all are out. */
  takeLease(lease: Lease, options: { limit: number; leaseMs: number }): Promise<boolean>;
  /** From now on each is good for `leaseMs`, also one that was forgotten in the meantime: its holder still works. */
  renewLeases(leases: readonly Lease[], leaseMs: number): Promise<void>;
  /** Gives it back at once. Idempotent. */
  releaseLease(lease: Lease): Promise<void>;
  close(): Promise<void>;
}

export interface WindowCount {
  used: number;
  /** Until the window is over. */
  msLeft: number;
}

export interface Lease {
  key: string;
  leaseId: string;
}
