import { Worker } from 'node:worker_threads';
import type { MediaEvent } from '../machines/events.ts';
import type { FromWorker, ToWorker, WorkerCall, WorkerCalls, WorkerFailure } from './worker-protocol.ts';

/** A request to a worker that failed; `failure.kind` says how. */
export class WorkerCallError extends Error {
  override readonly name = 'WorkerCallError';
  readonly failure: WorkerFailure;

  constructor(failure: WorkerFailure) {
    super(failure.detail);
    this.failure = failure;
  }

  get code(): WorkerFailure['kind'] {
    return this.failure.kind;
  }
}

export interface WorkerThreadOptions {
  file: URL;
  onEvent: (sessionKey: number, event: MediaEvent) => void;
  /** The thread ended without being asked to. Pending requests have been rejected by then. */
  onLost: (detail: string) => void;
}

interface PendingCall {
  resolve: (answer: unknown) => void;
  reject: (error: WorkerCallError) => void;
  timer: NodeJS.Timeout;
}

/** A worker that does not answer this long is taken for hung, and ended. Every answer takes milliseconds. */
const ANSWER_TIMEOUT_MS = 15_000;

/** The main thread's end of one media worker: requests with answers, events, and its death. */
export class WorkerThread {
  readonly #worker: Worker;
  readonly #pending = new Map<number, PendingCall>();
  readonly #onLost: (detail: string) => void;
  #nextRequestId = 1;
  #isEnded = false;
  #detail = 'the media worker ended';

  constructor(options: WorkerThreadOptions) {
    this.#onLost = options.onLost;
    // Flags of the parent (a test runner's loader, the inspector) are not for this thread.
    this.#worker = new Worker(options.file, { execArgv: [] });
    this.#worker.on('message', (message: FromWorker) => {
      if (message.type === 'event') options.onEvent(message.sessionKey, message.event);
      else this.#settle(message);
    });
    this.#worker.on('error', (error: unknown) => {
      this.#detail = error instanceof Error ? `the media worker threw ${error.name}: ${error.message}` : this.#detail;
    });
    this.#worker.on('exit', () => this.#end());
  }

  get isAlive(): boolean {
    return !this.#isEnded;
  }

  get threadId(): number {
    return this.#worker.threadId;
  }

  /** @throws WorkerCallError */
  call<Call extends WorkerCall>(
    type: Call,
    request: WorkerCalls[Call]['request'],
  ): Promise<WorkerCalls[Call]['answer']> {
    if (this.#isEnded) return Promise.reject(new WorkerCallError({ kind: 'worker-lost', detail: this.#detail }));
    const requestId = this.#nextRequestId++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#detail = 'the media worker hung';
        void this.#worker.terminate();
      }, ANSWER_TIMEOUT_MS);
      // What answers request X is X's answer: the one place where the types of the protocol cannot follow.
      const resolveAny = resolve as (answer: unknown) => void;
      this.#pending.set(requestId, { resolve: resolveAny, reject, timer });
      this.#worker.postMessage({ type, requestId, ...request } as unknown as ToWorker);
    });
  }

  /** Ends the thread at once; `onLost` is not called. */
  async terminate(): Promise<void> {
    this.#isEnded = true;
    this.#rejectPending();
    await this.#worker.terminate();
  }

  #settle(message: FromWorker): void {
    if (message.type !== 'done' && message.type !== 'failed') return;
    const pending = this.#pending.get(message.requestId);
    if (pending === undefined) return;
    this.#pending.delete(message.requestId);
    clearTimeout(pending.timer);
    if (message.type === 'done') pending.resolve(message.answer);
    else pending.reject(new WorkerCallError(message.failure));
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#rejectPending();
    this.#onLost(this.#detail);
  }

  #rejectPending(): void {
    for (const { reject, timer } of this.#pending.values()) {
      clearTimeout(timer);
      reject(new WorkerCallError({ kind: 'worker-lost', detail: this.#detail }));
    }
    this.#pending.clear();
  }
}
