import type { Transferable, Worker } from 'node:worker_threads';
import { startWorker } from './start-worker.ts';
import {
  type AnswerOf,
  type CallName,
  DRAIN,
  DUMP,
  type FromThread,
  PING,
  type RequestOf,
  type ThreadProtocol,
  type ToThread,
} from './thread-protocol.ts';
import { within } from './waiting.ts';

export interface ThreadOptions<P extends ThreadProtocol> {
  /** A module that calls `serveThread`. */
  entry: URL;
  data: P['data'];
  /** Used in messages, such as `the speech thread`. */
  name: string;
  onReport?: (report: P['reports']) => void;
  /** Converts a failed call or the loss of the thread to the owner's error. Default: the `ThreadError` itself. */
  toError?: (error: ThreadError) => Error;
  /** `while-busy`: an idle thread does not keep the process alive. Default `always`. */
  keepsProcess?: 'always' | 'while-busy';
  /** Ends a thread that stops answering. Default true; false for one that computes for minutes without a pause. */
  isWatched?: boolean;
  /** Longest wait of `close` for open work. Default: as long as the thread answers pings. */
  drainWithinMs?: number;
  memoryMb?: number;
}

/** Codes of a `ThreadError` that did not come from the thread. */
export const THREAD_LOST = 'thread-lost';
export const THREAD_CLOSED = 'thread-closed';

/** A call failed in the thread, with the `code` of its error, or the thread is gone. */
export class ThreadError extends Error {
  override readonly name = 'ThreadError';
  readonly code: string | null;

  constructor(code: string | null, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The heartbeat counts beats, not time, so that a blocked main thread does not mistake its threads for dead. */
const BEAT_MS = 5_000;
const MOST_SILENT_BEATS = 3;
/** A thread does not answer while it loads its modules, which takes long on an overloaded machine. */
const MOST_BEATS_TO_START = 36;

/** The owner's end of a worker thread: calls with answers, notices, reports, a heartbeat, and the reason of its end. */
export class SupervisedThread<P extends ThreadProtocol> {
  readonly #options: ThreadOptions<P>;
  readonly #worker: Worker;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #ready = Promise.withResolvers<P['ready']>();
  readonly #ended = Promise.withResolvers<ThreadError>();
  readonly #heartbeat: NodeJS.Timeout | null;
  #loss: ThreadError | null = null;
  #reason: { detail: string; cause?: unknown } | null = null;
  #isReady = false;
  #beatsToStart = 0;
  #silentBeats = 0;
  #calls = 0;

  constructor(options: ThreadOptions<P>) {
    this.#options = options;
    const { entry, data, name, memoryMb, isWatched = true } = options;
    const limits = memoryMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: memoryMb } };
    this.#worker = startWorker(entry, { name: name.replace('the ', ''), workerData: data, ...limits });
    this.#worker.on('message', (message: FromThread) => this.#receive(message));
    this.#worker.on('error', (error: unknown) => {
      const detail = error instanceof Error ? `threw ${error.name}: ${error.message}` : 'threw';
      this.#reason ??= { detail, cause: error };
    });
    this.#worker.on('exit', (code) => this.#end(code));
    this.#heartbeat = isWatched ? setInterval(() => this.#beat(), BEAT_MS).unref() : null;
    if (options.keepsProcess === 'while-busy') this.#worker.unref();
    this.#ready.promise.catch(() => {});
  }

  /** Resolves when the thread answers calls. Earlier calls wait. @throws what `toError` returns */
  get ready(): Promise<P['ready']> {
    return this.#ready.promise;
  }

  /** Resolves with the reason when the thread has ended, for whatever reason. */
  get ended(): Promise<ThreadError> {
    return this.#ended.promise;
  }

  get isAlive(): boolean {
    return this.#loss === null;
  }

  get threadId(): number {
    return this.#worker.threadId;
  }

  /** @throws what `toError` returns */
  call<Call extends CallName<P>>(
    call: Call,
    request: RequestOf<P, Call>,
    transfer: readonly Transferable[] = [],
  ): Promise<AnswerOf<P, Call>> {
    // The types of the protocol cannot express that an answer belongs to its call.
    return this.#ask(call, request, transfer) as Promise<AnswerOf<P, Call>>;
  }

  /** Ignored once the thread has ended. */
  post(notice: P['notices'], transfer: readonly Transferable[] = []): void {
    if (this.#loss === null) this.#worker.postMessage({ notice } satisfies ToThread, transfer);
  }

  /** Result of the thread's `dump`. @throws what `toError` returns */
  dump(): Promise<unknown> {
    return this.#ask(DUMP, null);
  }

  /** Waits for open work, then ends the thread. A thread that is still starting has none. */
  async close(): Promise<void> {
    const { drainWithinMs = Infinity } = this.#options;
    if (this.#isReady)
      await within(
        this.#ask(DRAIN, null).catch(() => {}),
        { ms: drainWithinMs },
      );
    await this.terminate();
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate();
  }

  #ask(call: string, request: unknown, transfer: readonly Transferable[] = []): Promise<unknown> {
    if (this.#loss !== null) return Promise.reject(this.#toError(this.#loss));
    const id = this.#calls++;
    const settle = Promise.withResolvers<unknown>();
    // First, because uncloneable data throws.
    this.#worker.postMessage({ id, call, request } satisfies ToThread, transfer);
    this.#pending.set(id, settle);
    if (this.#options.keepsProcess === 'while-busy') this.#worker.ref();
    return settle.promise;
  }

  #receive(message: FromThread): void {
    this.#silentBeats = 0;
    switch (message.type) {
      case 'ready':
        this.#isReady = true;
        this.#ready.resolve(message.ready);
        return;
      case 'report':
        this.#options.onReport?.(message.report);
        return;
      case 'done':
        this.#settle(message.id)?.resolve(message.answer);
        return;
      case 'failed': {
        const { code, message: text } = message.failure;
        this.#settle(message.id)?.reject(this.#toError(new ThreadError(code, text)));
      }
    }
  }

  #settle(id: number): PromiseWithResolvers<unknown> | undefined {
    const settle = this.#pending.get(id);
    this.#pending.delete(id);
    if (this.#pending.size === 0 && this.#options.keepsProcess === 'while-busy') this.#worker.unref();
    return settle;
  }

  #beat(): void {
    if (!this.#isReady) {
      this.#beatsToStart += 1;
      if (this.#beatsToStart > MOST_BEATS_TO_START) this.#giveUp('did not start');
      return;
    }
    this.#silentBeats += 1;
    if (this.#silentBeats > MOST_SILENT_BEATS) this.#giveUp('hung');
    else this.#worker.postMessage({ id: -1, call: PING, request: null } satisfies ToThread);
  }

  #giveUp(detail: string): void {
    this.#stopBeating();
    this.#reason ??= { detail };
    void this.terminate();
  }

  #stopBeating(): void {
    if (this.#heartbeat !== null) clearInterval(this.#heartbeat);
  }

  #end(exitCode: number): void {
    this.#stopBeating();
    const { detail, cause } = this.#reason ?? { detail: `ended (code ${exitCode})` };
    this.#loss = new ThreadError(THREAD_LOST, `${this.#options.name} ${detail}`, { cause });
    const error = this.#toError(this.#loss);
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
    this.#ready.reject(error);
    this.#ended.resolve(this.#loss);
  }

  #toError(error: ThreadError): Error {
    return this.#options.toError?.(error) ?? error;
  }
}
