import type { MessagePort } from 'node:worker_threads';
import { TandemError } from '../machines/errors.ts';
import type { ListeningEvent } from '../machines/utterances.ts';
import { FileSession, PooledListening, toTandemError } from './listening/pooled-listening.ts';
import type { ListeningThread } from './listening/worker-protocol.ts';
import type {
  FileAnalysis,
  ListeningPlane,
  ListeningSession,
  ListenOptions,
  ListenToFileOptions,
} from './listening-plane.ts';
import { type Place, SessionThreads } from './session-threads.ts';

const IDLE_MS = 15 * 60_000;

export interface ListeningPlaneOptions {
  /** Number of threads, at least 1. */
  workers: number;
  logger?: ListeningLogger;
  /** Thread entry, replaced in tests that need a failing one. Default `worker.ts`. */
  workerFile?: URL;
  /** Time without a session after which the threads end. Default 15 minutes. */
  idleMs?: number;
}

/** Subset of a pino logger. */
interface ListeningLogger {
  warn(fields: object, message: string): void;
}

/**
 * Creates the plane. Its threads start on first use or by `warmUp`, because loading their models takes a while, and end
 * when idle, because each takes some 40 MB.
 * @throws RangeError for an invalid number of workers
 */
export function createListeningPlane(options: ListeningPlaneOptions): ListeningPlane {
  if (!Number.isInteger(options.workers) || options.workers < 1) throw new RangeError('at least one listening worker');
  return new ListeningPool(options);
}

class ListeningPool implements ListeningPlane {
  readonly #options: ListeningPlaneOptions;
  #threads: SessionThreads<ListeningThread> | null = null;
  #idleTimer: NodeJS.Timeout | null = null;
  /** Ends of threads that were idle. */
  #ending: Promise<void> | null = null;
  #closing: Promise<void> | null = null;

  constructor(options: ListeningPlaneOptions) {
    this.#options = options;
  }

  warmUp(): void {
    if (this.#closing !== null) return;
    this.#threads ??= this.#start();
    this.#endWhenIdle();
  }

  async open(options: ListenOptions): Promise<ListeningSession> {
    options.signal.throwIfAborted();
    const { format, utteranceEndMs, enhancement, utterances, inlet = null } = options;
    const settings = { format, utteranceEndMs, enhancement };
    const place = this.#takePlace();
    const { sessionKey, thread } = place;
    const session = new PooledListening({
      sessionId: options.sessionId,
      sessionKey,
      thread,
      signal: options.signal,
      onEvent: (event) => this.#notify(options, event),
      onAnalysed: options.onAnalysed,
      onClosed: () => place.leave(),
    });
    place.fill(session);
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

  async listenToFile(options: ListenToFileOptions): Promise<FileAnalysis> {
    const { signal, ...request } = options;
    signal.throwIfAborted();
    const place = this.#takePlace();
    const file = new FileSession({ sessionKey: place.sessionKey, thread: place.thread, signal });
    place.fill(file);
    try {
      return await file.listen(request);
    } finally {
      place.leave();
    }
  }

  capacity(): { sessions: number; workers: number } {
    return { sessions: this.#threads?.sessions ?? 0, workers: this.#threads?.alive ?? 0 };
  }

  async dump(): Promise<unknown> {
    const workers = (await this.#threads?.dump()) ?? [];
    return { ...this.capacity(), workers };
  }

  close(): Promise<void> {
    this.#stopIdleTimer();
    this.#closing ??= Promise.all([this.#threads?.close(), this.#ending]).then(() => {});
    return this.#closing;
  }

  #start(): SessionThreads<ListeningThread> {
    return new SessionThreads({
      threads: this.#options.workers,
      entry: this.#options.workerFile ?? new URL('./listening/worker.ts', import.meta.url),
      name: 'the listening worker',
      dataOf: () => null,
      loadOf: (_data, sessions) => sessions,
      onLost: (fields) => this.#options.logger?.warn(fields, 'listening worker lost'),
    });
  }

  #takePlace(): Place<ListeningThread> {
    if (this.#closing !== null) throw new TandemError('SHUTTING_DOWN', 'The listening plane is shutting down.');
    this.#threads ??= this.#start();
    const place = this.#threads.take();
    if (place === null) throw new TandemError('INTERNAL', 'No listening worker is running.');
    this.#stopIdleTimer();
    return {
      ...place,
      leave: () => {
        place.leave();
        this.#endWhenIdle();
      },
    };
  }

  #endWhenIdle(): void {
    this.#stopIdleTimer();
    if (this.#threads?.isIdle !== true || this.#closing !== null) return;
    const end = () => {
      this.#ending = Promise.all([this.#threads?.close(), this.#ending]).then(() => {});
      this.#threads = null;
    };
    this.#idleTimer = setTimeout(end, this.#options.idleMs ?? IDLE_MS).unref();
  }

  #stopIdleTimer(): void {
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
  }

  /** A listener that throws must not stop the events of other sessions. */
  #notify(options: ListenOptions, event: ListeningEvent): void {
    try {
      options.onEvent(event);
    } catch (error) {
      this.#options.logger?.warn({ err: error, sessionId: options.sessionId }, 'listening event listener threw');
    }
  }
}
