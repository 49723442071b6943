import type { PriceBook } from '../../storage/price-book.ts';
import type { AudioIntake } from './audio-intake.ts';

/** What the ports of a live session share: whose it is, its audio, and the signal that everything it opened hangs on. */
export interface LiveEntry {
  readonly id: string;
  readonly workspaceId: string;
  readonly userId: number;
  readonly apiKeyId: number | null;
  readonly intake: AudioIntake;
  readonly abort: AbortController;
  /** As they were when it was first billed: they hold for the session. */
  prices: PriceBook | null;
  /** Tells its machine that the process is going down. */
  shutDown(): void;
}

/** The live sessions of this process, one root actor each. */
export interface LiveSessions {
  add(entry: LiveEntry): void;
  /** @throws Error when it is not there: a defect. */
  get(sessionId: string): LiveEntry;
  list(): LiveEntry[];
  /** Ends its life here: aborts its signal and forgets it. Idempotent. */
  remove(sessionId: string): void;
  /** Resolves once none is left. */
  idle(): Promise<void>;
}

export function createLiveSessions(): LiveSessions {
  const entries = new Map<string, LiveEntry>();
  let waiting: (() => void)[] = [];
  return {
    add: (entry) => void entries.set(entry.id, entry),
    get(sessionId) {
      const entry = entries.get(sessionId);
      if (entry === undefined) throw new Error('a session without a registry entry has no ports');
      return entry;
    },
    list: () => [...entries.values()],
    remove(sessionId) {
      const entry = entries.get(sessionId);
      if (entry === undefined) return;
      entries.delete(sessionId);
      entry.abort.abort();
      if (entries.size > 0) return;
      for (const resolve of waiting) resolve();
      waiting = [];
    },
    async idle() {
      if (entries.size > 0) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}
