import { StandingThread } from '../runtime/standing-thread.ts';
import type { SupervisedThread } from '../runtime/supervised-thread.ts';
import type { ThreadProtocol } from '../runtime/thread-protocol.ts';

/** A thread that owns sessions, which its owner names by key. */
export interface SessionProtocol extends ThreadProtocol {
  ready: null;
  reports: { sessionKey: number; event: unknown };
}

/** What such a thread's `dump` returns. Other fields are about the thread. */
export interface ThreadDump {
  sessions: { sessionKey: number; session: unknown }[];
  [field: string]: unknown;
}

/** The owner's end of a session. */
export interface ThreadSession<Event> {
  readonly sessionId: string | null;
  deliver: (event: Event) => void;
  /** The thread died. */
  lose: (detail: string) => void;
  close: () => Promise<void>;
}

interface SessionThreadsOptions<Data> {
  threads: number;
  /** For a thread and those that replace it. */
  dataOf: () => Data;
  entry: URL;
  /** Such as `the media worker`. */
  name: string;
  /** A thread died; called before its sessions are. */
  onLost: (fields: { detail: string; sessions: number }) => void;
}

/** One of the threads, and the ones that replace it when it dies. */
interface Slot<P extends SessionProtocol> {
  standing: StandingThread<P>;
  /** By key. */
  sessions: Map<number, ThreadSession<P['reports']['event']>>;
  /** Sessions being opened count as load. */
  opening: number;
}

/** The place of a session: on one thread, under a key that is used once. */
export interface Place<P extends SessionProtocol> {
  readonly sessionKey: number;
  readonly thread: SupervisedThread<P>;
  /** From now on `session` receives the events of the key. */
  fill(session: ThreadSession<P['reports']['event']>): void;
  /** Idempotent. */
  leave(): void;
}

/** Sessions spread over threads: each goes to the thread with the fewest, and is lost with it. */
export class SessionThreads<P extends SessionProtocol> {
  readonly #slots: readonly Slot<P>[];
  #nextSessionKey = 1;

  constructor(options: SessionThreadsOptions<P['data']>) {
    this.#slots = Array.from({ length: options.threads }, () => this.#newSlot(options));
  }

  get sessions(): number {
    return this.#slots.reduce((sum, slot) => sum + slot.sessions.size, 0);
  }

  get alive(): number {
    return this.#slots.filter(({ standing }) => standing.current !== null).length;
  }

  /** A place on the thread with the fewest sessions; null when no thread runs. */
  take(): Place<P> | null {
    let least: { slot: Slot<P>; thread: SupervisedThread<P> } | null = null;
    for (const slot of this.#slots) {
      const thread = slot.standing.current;
      if (thread !== null && (least === null || loadOf(slot) < loadOf(least.slot))) least = { slot, thread };
    }
    if (least === null) return null;
    const { slot, thread } = least;
    const sessionKey = this.#nextSessionKey++;
    let isOpening = true;
    const opened = (): void => {
      if (isOpening) slot.opening -= 1;
      isOpening = false;
    };
    slot.opening += 1;
    return {
      sessionKey,
      thread,
      fill(session) {
        opened();
        slot.sessions.set(sessionKey, session);
      },
      leave() {
        opened();
        slot.sessions.delete(sessionKey);
      },
    };
  }

  async dump(): Promise<unknown[]> {
    return Promise.all(this.#slots.map((slot) => dumpOf(slot)));
  }

  /** Closes the sessions, then the threads. */
  async close(): Promise<void> {
    await Promise.all(
      this.#slots.map(async ({ standing, sessions }) => {
        await Promise.all([...sessions.values()].map((session) => session.close().catch(() => {})));
        await standing.close();
      }),
    );
  }

  #newSlot({ entry, name, dataOf, onLost }: SessionThreadsOptions<P['data']>): Slot<P> {
    const sessions: Slot<P>['sessions'] = new Map();
    const standing = new StandingThread<P>({
      entry,
      name,
      data: dataOf(),
      onReport: ({ sessionKey, event }) => sessions.get(sessionKey)?.deliver(event),
      onLost: (detail) => {
        const lost = [...sessions.values()];
        onLost({ detail, sessions: lost.length });
        for (const session of lost) session.lose(detail);
      },
    });
    return { standing, sessions, opening: 0 };
  }
}

function loadOf<P extends SessionProtocol>({ sessions, opening }: Slot<P>): number {
  return sessions.size + opening;
}

async function dumpOf<P extends SessionProtocol>({ standing, sessions: open }: Slot<P>): Promise<unknown> {
  const { current: thread, restarts } = standing;
  if (thread === null) return { state: 'restarting', restarts, sessions: [] };
  try {
    const { sessions, ...rest } = (await thread.dump()) as ThreadDump;
    const described = sessions.map(({ sessionKey, session }) => ({
      sessionId: open.get(sessionKey)?.sessionId ?? null,
      ...(session as object),
    }));
    return { state: 'running', threadId: thread.threadId, restarts, ...rest, sessions: described };
  } catch (error) {
    return { state: 'lost', restarts, detail: error instanceof Error ? error.message : String(error), sessions: [] };
  }
}
