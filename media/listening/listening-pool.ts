import type { MessagePort } from 'node:worker_threads';
import { TandemError } from '../../machines/errors.ts';
import type { ListeningEvent } from '../../machines/utterances.ts';
import type {
  FileHeard,
  ListeningPlane,
  ListeningSession,
  ListenOptions,
  ListenToFileOptions,
} from '../listening-plane.ts';
import { leastLoaded, WorkerSlot } from '../worker-slot.ts';
import { FileSession, PooledListening, type PoolMember, toTandemError } from './pooled-listening.ts';
import type { ListeningCalls, ListeningNotice, ListeningReport } from './worker-protocol.ts';

export interface ListeningPlaneOptions {
  /** Threads; 1 or more. */
  workers: number;
  logger?: ListeningLogger;
  /** Another entry for the threads, for tests that need one that fails. Default `worker.ts`. */
  workerFile?: URL;
}

/** The part of a pino logger that is used here. */
interface ListeningLogger {
  warn(fields: object, message: string): void;
}

/**
 * Its threads start when somebody is to be heard, or is about to be: they take a while to load what they hear with.
 * @throws RangeError for a bad number of workers
 */
export function createListeningPlane(options: ListeningPlaneOptions): WarmableListeningPlane {
  if (!Number.isInteger(options.workers) || options.workers < 1) throw new RangeError('at least one listening worker');
  return new ListeningPool(options);
}

export interface WarmableListeningPlane extends ListeningPlane {
  /** Starts the threads now, so that the first session need not wait. Idempotent. */
  warmUp(): void;
}

type ListeningSlot = WorkerSlot<ListeningCalls, ListeningReport, PoolMember, ListeningNotice>;

class ListeningPool implements WarmableListeningPlane {
  readonly #options: ListeningPlaneOptions;
  #slots: readonly ListeningSlot[] = [];
  readonly #members = new Map<number, PoolMember>();
  #nextSessionKey = 1;
  #closing: Promise<void> | null = null;

  constructor(options: ListeningPlaneOptions) {
    this.#options = options;
  }

  warmUp(): void {
    if (this.#closing !== null || this.#slots.length > 0) return;
    this.#slots = Array.from({ length: this.#options.workers }, () => this.#newSlot());
  }

  async open(options: ListenOptions): Promise<ListeningSession> {
    options.signal.throwIfAborted();
    const { format, utteranceEndMs, enhancement, utterances, inlet = null } = options;
    const settings = { format, utteranceEndMs, enhancement };
    const { slot, thread } = this.#freeThread();
    const sessionKey = this.#nextSessionKey++;
    const session = new PooledListening({
      sessionId: options.sessionId,
      sessionKey,
      thread,
      signal: options.signal,
      onEvent: (event) => this.#tell(options, event),
      onHeard: options.onHeard,
      onClosed: () => this.#forget(sessionKey, slot, session),
    });
    this.#remember(sessionKey, slot, session);
    const ports: MessagePort[] = inlet === null ? [utterances] : [utterances, inlet];
    try {
      await thread.call('session.open', { sessionKey, settings, utterances, inlet }, ports);
    } catch (error) {
      session.abandon();
      throw toTandemError(error);
    }
    options.signal.throwIfAborted();
    return session;
  }

  async listenToFile(options: ListenToFileOptions): Promise<FileHeard> {
    const { signal, ...request } = options;
    signal.throwIfAborted();
    const { slot, thread } = this.#freeThread();
    const sessionKey = this.#nextSessionKey++;
    const file = new FileSession({ sessionKey, thread, signal });
    this.#remember(sessionKey, slot, file);
    try {
      return await file.listen(request);
    } finally {
      this.#forget(sessionKey, slot, file);
    }
  }

  capacity(): { sessions: number; workers: number } {
    return { sessions: this.#members.size, workers: this.#slots.filter((slot) => slot.isAlive).length };
  }

  async dump(): Promise<unknown> {
    const workers = await Promise.all(this.#slots.map((slot) => this.#dumpSlot(slot)));
    return { ...this.capacity(), workers };
  }

  close(): Promise<void> {
    this.#closing ??= Promise.all(this.#slots.map((slot) => slot.close())).then(() => {});
    return this.#closing;
  }

  #newSlot(): ListeningSlot {
    return new WorkerSlot({
      file: this.#options.workerFile ?? new URL('./worker.ts', import.meta.url),
      name: 'listening worker',
      onEvent: (sessionKey, event) => this.#members.get(sessionKey)?.deliver(event),
      onLost: (detail, sessions) => this.#options.logger?.warn({ detail, sessions }, 'listening worker lost'),
    });
  }

  #freeThread(): { slot: ListeningSlot; thread: NonNullable<ListeningSlot['thread']> } {
    if (this.#closing !== null) throw new TandemError('SHUTTING_DOWN', 'The listening plane is shutting down.');
    this.warmUp();
    const slot = leastLoaded(this.#slots);
    if (slot === null || slot.thread === null) throw new TandemError('INTERNAL', 'No listening worker is running.');
    return { slot, thread: slot.thread };
  }

  #remember(sessionKey: number, slot: ListeningSlot, member: PoolMember): void {
    this.#members.set(sessionKey, member);
    slot.sessions.add(member);
  }

  #forget(sessionKey: number, slot: ListeningSlot, member: PoolMember): void {
    this.#members.delete(sessionKey);
    slot.sessions.delete(member);
  }

  /** An owner that throws must not take the other sessions' events with it. */
  #tell(options: ListenOptions, event: ListeningEvent): void {
    try {
      options.onEvent(event);
    } catch (error) {
      this.#options.logger?.warn({ err: error, sessionId: options.sessionId }, 'listening event listener threw');
    }
  }

  async #dumpSlot({ thread, restarts }: ListeningSlot): Promise<unknown> {
    if (thread === null) return { state: 'restarting', restarts, sessions: [] };
    try {
      const { sessions, ...problems } = await thread.call('worker.dump', {});
      return {
        state: 'running',
        threadId: thread.threadId,
        restarts,
        ...problems,
        sessions: sessions.map(({ sessionKey, session }) => ({
          sessionId: this.#members.get(sessionKey)?.sessionId ?? null,
          ...(session as object),
        })),
      };
    } catch (error) {
      return { state: 'lost', restarts, detail: error instanceof Error ? error.message : String(error), sessions: [] };
    }
  }
}
