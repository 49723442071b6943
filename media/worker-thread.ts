import { setFlagsFromString } from 'node:v8';
import { type Transferable, Worker } from 'node:worker_threads';
import type { CallTable, MessageFromWorker, WorkerFailure } from './worker-messages.ts';

// A thread that loads .ts files runs Node's type stripper, which is WebAssembly. V8 (13.6, Node 24.21) now and then
// crashes the process when a second thread of it compiles its import wrappers anew while another one ends
// (Runtime_TierUpWasmToJSWrapper, then WasmEngine::FreeDeadCode on freed memory). Without a budget they never are.
setFlagsFromString('--wasm-wrapper-tiering-budget=2147483647');

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

interface WorkerThreadOptions<Event> {
  file: URL;
  /** What logs and errors call it, such as `media worker`. */
  name: string;
  onEvent: (sessionKey: number, event: Event) => void;
  /** The thread ended without being asked to. Pending requests have been rejected by then. */
  onLost: (detail: string) => void;
}

interface PendingCall {
  resolve: (answer: unknown) => void;
  reject: (error: WorkerCallError) => void;
}

/**
 * Calls have no time limit of their own, since a disk or a resolver may be slow without harm to other calls. A thread
 * that does not answer pings is stuck, and ended; it is beats that are counted, not time, so that a blocked main thread
 * does not take its workers for dead.
 */
const HEARTBEAT_MS = 5000;
const MOST_MISSED_BEATS = 3;

/** The main thread's end of one worker: requests with answers, notices without, events, and its death. */
export class WorkerThread<Calls extends CallTable<Calls>, Event, Notice extends object = never> {
  readonly #worker: Worker;
  readonly #pending = new Map<number, PendingCall>();
  readonly #onLost: (detail: string) => void;
  #nextRequestId = 1;
  #isEnded = false;
  #detail: string;
  readonly #name: string;
  #missedBeats = 0;
  readonly #heartbeat: NodeJS.Timeout;

  constructor(options: WorkerThreadOptions<Event>) {
    this.#name = options.name;
    this.#detail = `the ${this.#name} ended`;
    this.#onLost = options.onLost;
    // Flags of the parent (a test runner's loader, the inspector) are not for this thread.
    this.#worker = new Worker(options.file, { execArgv: [] });
    this.#worker.on('message', (message: MessageFromWorker<Calls, Event>) => {
      if (message.type === 'event') options.onEvent(message.sessionKey, message.event);
      else this.#settle(message);
    });
    this.#worker.on('error', (error: unknown) => {
      this.#detail = error instanceof Error ? `the ${this.#name} threw ${error.name}: ${error.message}` : this.#detail;
    });
    this.#worker.on('exit', () => this.#end());
    this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT_MS).unref();
  }

  get isAlive(): boolean {
    return !this.#isEnded;
  }

  get threadId(): number {
    return this.#worker.threadId;
  }

  /** Hands over what is to be transferred. @throws WorkerCallError */
  call<Call extends keyof Calls & string>(
    type: Call,
    request: Calls[Call]['request'],
    transfer: readonly Transferable[] = [],
  ): Promise<Calls[Call]['answer']> {
    return this.#ask(type, request, transfer) as Promise<Calls[Call]['answer']>;
  }

  /** Tells without an answer. A dead thread is told nothing. */
  post(notice: Notice, transfer: readonly Transferable[]): void {
    if (!this.#isEnded) this.#worker.postMessage(notice, transfer);
  }

  /** Ends the thread at once; `onLost` is not called. */
  async terminate(): Promise<void> {
    this.#isEnded = true;
    this.#rejectPending();
    await this.#worker.terminate();
  }

  #beat(): void {
    this.#missedBeats += 1;
    if (this.#missedBeats > MOST_MISSED_BEATS) {
      this.#detail = `the ${this.#name} hung`;
      void this.#worker.terminate();
      return;
    }
    const answered = (): void => {
      this.#missedBeats = 0;
    };
    // A thread that ended rejects; its exit tells the rest.
    this.#ask('worker.ping', {}).then(answered, () => {});
  }

  #ask(type: string, request: object, transfer: readonly Transferable[] = []): Promise<unknown> {
    if (this.#isEnded) return Promise.reject(new WorkerCallError({ kind: 'worker-lost', detail: this.#detail }));
    const requestId = this.#nextRequestId++;
    return new Promise((resolve, reject) => {
      this.#pending.set(requestId, { resolve, reject });
      this.#worker.postMessage({ type, requestId, ...request }, transfer);
    });
  }

  #settle(message: MessageFromWorker<Calls, Event>): void {
    if (message.type !== 'done' && message.type !== 'failed') return;
    const pending = this.#pending.get(message.requestId);
    if (pending === undefined) return;
    this.#pending.delete(message.requestId);
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
    clearInterval(this.#heartbeat);
    for (const { reject } of this.#pending.values()) {
      reject(new WorkerCallError({ kind: 'worker-lost', detail: this.#detail }));
    }
    this.#pending.clear();
  }
}
