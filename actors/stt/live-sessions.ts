import type { PriceBook } from '../../storage/price-book.ts';
import type { AudioIntake } from './audio-intake.ts';

/** State shared by the ports of a live session: owner, audio, and the signal that everything it opened depends on. */
export interface LiveEntry {
  readonly id: string;
  readonly workspaceId: string;
  readonly userId: number;
  readonly apiKeyId: number | null;
  readonly intake: AudioIntake;
  readonly abort: AbortController;
  /** Prices of the first charge; they apply to the whole session. */
  prices: PriceBook | null;
  shutDown(): void;
}

export interface LiveSessions {
  add(entry: LiveEntry): void;
  /** @throws Error if the session does not exist: a defect */
  get(sessionId: string): LiveEntry;
  list(): LiveEntry[];
  /** Aborts the session's signal and removes it. Idempotent. */
  remove(sessionId: string): void;
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
