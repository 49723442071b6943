import { StandingThread } from '../runtime/standing-thread.ts';
import type { SupervisedThread } from '../runtime/supervised-thread.ts';
import type { ThreadProtocol } from '../runtime/thread-protocol.ts';

/** Protocol of a thread that owns sessions, which its owner identifies by key. */
export interface SessionProtocol extends ThreadProtocol {
  ready: null;
  reports: { sessionKey: number; event: unknown };
}

/** Result of a thread's `dump`. Other fields describe the thread. */
export interface ThreadDump {
  sessions: { sessionKey: number; session: unknown }[];
  [field: string]: unknown;
}

/** The owner's end of a session. */
export interface ThreadSession<Event> {
  readonly sessionId: string | null;
  deliver: (event: Event) => void;
  lose: (detail: string) => void;
  close: () => Promise<void>;
}

interface SessionThreadsOptions<Data> {
  threads: number;
  /** Data for a thread and its replacements. */
  dataOf: () => Data;
  /**
   * Load of a thread with this number of sessions. The least loaded thread takes the next session. `Infinity`: it takes
   * none.
   */
  loadOf: (data: Data, sessions: number) => number;
  entry: URL;
  /** Such as `the media worker`. */
  name: string;
  /** Called when a thread died, before its sessions are notified. */
  onLost: (fields: { detail: string; sessions: number }) => void;
}

/** A thread and its replacements. */
interface Slot<P extends SessionProtocol> {
  data: P['data'];
  standing: StandingThread<P>;
  sessions: Map<number, ThreadSession<P['reports']['event']>>;
  /** Sessions that are opening count as load. */
  opening: number;
}

/** A reserved slot for a session: a thread and a unique key. */
export interface Place<P extends SessionProtocol> {
  readonly sessionKey: number;
  readonly thread: SupervisedThread<P>;
  fill(session: ThreadSession<P['reports']['event']>): void;
  /** Idempotent. */
  leave(): void;
}

/** Distributes sessions over threads. Each session goes to the least loaded thread and is lost with it. */
export class SessionThreads<P extends SessionProtocol> {
  readonly #slots: readonly Slot<P>[];
  readonly #loadOf: (data: P['data'], sessions: number) => number;
  #nextSessionKey = 1;

  constructor(options: SessionThreadsOptions<P['data']>) {
    this.#loadOf = options.loadOf;
    this.#slots = Array.from({ length: options.threads }, () => this.#newSlot(options));
  }

  get sessions(): number {
    return this.#slots.reduce((sum, slot) => sum + slot.sessions.size, 0);
  }

  /** Whether there is no session, not even one that is opening. */
  get isIdle(): boolean {
    return this.#slots.every(({ sessions, opening }) => sessions.size + opening === 0);
  }

  get alive(): number {
    return this.#slots.filter(({ standing }) => standing.current !== null).length;
  }

  get data(): readonly P['data'][] {
    return this.#slots.map(({ data }) => data);
  }

  /** Load of the least loaded thread; `Infinity` if none takes another session. */
  get leastLoad(): number {
    return this.#leastLoaded()?.load ?? Number.POSITIVE_INFINITY;
  }

  /** Reserves a place on the least loaded thread; null if no thread runs or takes another session. */
  take(): Place<P> | null {
    const least = this.#leastLoaded();
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

  async close(): Promise<void> {
    await Promise.all(
      this.#slots.map(async ({ standing, sessions }) => {
        await Promise.all([...sessions.values()].map((session) => session.close().catch(() => {})));
        await standing.close();
      }),
    );
  }

  #leastLoaded(): { slot: Slot<P>; thread: SupervisedThread<P>; load: number } | null {
    let least: { slot: Slot<P>; thread: SupervisedThread<P>; load: number } | null = null;
    for (const slot of this.#slots) {
      const thread = slot.standing.current;
      if (thread === null) continue;
      const load = this.#loadOf(slot.data, slot.sessions.size + slot.opening);
      if (load < (least?.load ?? Number.POSITIVE_INFINITY)) least = { slot, thread, load };
    }
    return least;
  }

  #newSlot({ entry, name, dataOf, onLost }: SessionThreadsOptions<P['data']>): Slot<P> {
    const sessions: Slot<P>['sessions'] = new Map();
    const data = dataOf();
    const standing = new StandingThread<P>({
      entry,
      name,
      data,
      onReport: ({ sessionKey, event }) => sessions.get(sessionKey)?.deliver(event),
      onLost: (detail) => {
        const lost = [...sessions.values()];
        onLost({ detail, sessions: lost.length });
        for (const session of lost) session.lose(detail);
      },
    });
    return { data, standing, sessions, opening: 0 };
  }
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
