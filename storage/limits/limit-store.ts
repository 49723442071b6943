/**
 * Stores counts and leases, in this process or in a shared Redis. One conformance suite runs on every driver. Windows
 * and leases expire by the store's clock, not the processes'.
 */
export interface LimitStore {
  /** Counts one in the key's window. A window opens with its first count and ends `windowS` seconds later. */
  count(key: string, windowS: number): Promise<WindowCount>;
  /** Returns the key's window without counting; null if none is open. */
  read(key: string, windowS: number): Promise<WindowCount | null>;
  /** Takes one count back if the key's window is open. */
  uncount(key: string, windowS: number): Promise<void>;
  /** Closes the key's window, so that the next count opens a new one. */
  forget(key: string, windowS: number): Promise<void>;
  /** Takes one of the key's `limit` leases. False if all are taken. */
  takeLease(lease: Lease, options: { limit: number; leaseMs: number }): Promise<boolean>;
  /** Extends each lease by `leaseMs` from now, even one that has expired, because its holder still works. */
  renewLeases(leases: readonly Lease[], leaseMs: number): Promise<void>;
  releaseLease(lease: Lease): Promise<void>;
  close(): Promise<void>;
}

export interface WindowCount {
  used: number;
  /** Until the window ends. */
  msLeft: number;
}

export interface Lease {
  key: string;
  leaseId: string;
}
