import { setFlagsFromString } from 'node:v8';
import { type Transferable, Worker } from 'node:worker_threads';
import type { CallTable, CommonCalls, FromThread, ThreadFailure, ToThread } from './protocol.ts';

// A thread that loads .ts files runs Node's type stripper, which is WebAssembly. V8 (13.6, Node 24.21) now and then
// crashes the process when a second thread of it compiles its import wrappers anew while another one ends
// (Runtime_TierUpWasmToJSWrapper, then WasmEngine::FreeDeadCode on freed memory). Without a budget they never are.
setFlagsFromString('--wasm-wrapper-tiering-budget=2147483647');

export interface EngineThreadOptions<Notice> {
  /** A module that calls `answerCalls`. */
  entry: URL;
  data: object;
  /** For people, such as `the speech thread`. */
  name: string;
  onNotice: (notice: Notice) => void;
  /** What callers are told of a call that failed there. */
  toError: (failure: ThreadFailure) => Error;
  /** What they are told when the thread is gone; `detail` says how. */
  toLoss: (detail: string) => Error;
}

/** A beat that is not answered by the next one but three is the last: the thread is stuck. Beats are counted, not time. */
const BEAT_MS = 5_000;
const MOST_UNANSWERED_BEATS = 3;
/** While it loads its modules a thread answers nothing: on a machine that is overloaded for longer than anybody waits. */
const MOST_BEATS_TO_START = 36;

type Settle = PromiseWithResolvers<unknown>;

/** The main thread's end of a thread that has engines. */
export class EngineThread<Calls extends CallTable<Calls>, Ready, Notice> {
  readonly #options: EngineThreadOptions<Notice>;
  readonly #worker: Worker;
  readonly #pending = new Map<number, Settle>();
  readonly #ready = Promise.withResolvers<Ready>();
  readonly #ended = Promise.withResolvers<string>();
  readonly #beats: NodeJS.Timeout;
  #isReady = false;
  #beatsToStart = 0;
  #unansweredBeats = 0;
  #requests = 0;
  #hasEnded = false;
  #detail: string;

  constructor(options: EngineThreadOptions<Notice>) {
    this.#options = options;
    this.#detail = `${options.name} ended`;
    this.#worker = new Worker(options.entry, { workerData: options.data, execArgv: [] });
    this.#worker.on('message', (message: FromThread<Ready, Notice>) => this.#take(message));
    this.#worker.on('error', (error: unknown) => {
      if (error instanceof Error) this.#detail = `${options.name} threw ${error.name}: ${error.message}`;
    });
    this.#worker.on('exit', () => this.#end());
    this.#beats = setInterval(() => this.#beat(), BEAT_MS).unref();
    this.#ready.promise.catch(() => {});
  }

  /** Resolves when the engines are made. @throws what `toLoss` makes, when it dies before */
  get ready(): Promise<Ready> {
    return this.#ready.promise;
  }

  /** Resolves with why, once it has ended. */
  get ended(): Promise<string> {
    return this.#ended.promise;
  }

  /** @throws what `toError` makes of the refusal; what `toLoss` makes when the thread dies before it answers */
  call<Call extends keyof Calls & string>(
    call: Call,
    request: Calls[Call]['request'],
    transfer: readonly Transferable[] = [],
  ): Promise<Calls[Call]['answer']> {
    return this.#ask(call, request, transfer);
  }

  /** Lets the engines end, then the thread. One that is still starting has nothing to end. */
  async close(): Promise<void> {
    if (this.#isReady) await this.#common('thread.drain').catch(() => {});
    await this.#worker.terminate();
  }

  #common(call: keyof CommonCalls): Promise<unknown> {
    return this.#ask(call, {}, []);
  }

  #ask<Answer>(call: string, request: object, transfer: readonly Transferable[]): Promise<Answer> {
    if (this.#hasEnded) return Promise.reject(this.#options.toLoss(this.#detail));
    const requestId = this.#requests++;
    const settle = Promise.withResolvers<unknown>();
    this.#pending.set(requestId, settle);
    this.#worker.postMessage({ requestId, call, request } satisfies ToThread, transfer);
    // What answers a request is its answer: the one place where the types of the protocol cannot follow.
    return settle.promise as Promise<Answer>;
  }

  #take(message: FromThread<Ready, Notice>): void {
    if (message.type === 'ready') {
      this.#isReady = true;
      this.#ready.resolve(message.ready);
    } else if (message.type === 'notice') this.#options.onNotice(message.notice);
    else if (message.type === 'done') this.#settle(message.requestId)?.resolve(message.answer);
    else this.#settle(message.requestId)?.reject(this.#options.toError(message.failure));
  }

  #settle(requestId: number): Settle | undefined {
    const settle = this.#pending.get(requestId);
    this.#pending.delete(requestId);
    return settle;
  }

  #beat(): void {
    if (!this.#isReady) {
      this.#beatsToStart += 1;
      if (this.#beatsToStart > MOST_BEATS_TO_START) this.#giveUp('did not start');
      return;
    }
    this.#unansweredBeats += 1;
    if (this.#unansweredBeats > MOST_UNANSWERED_BEATS) {
      this.#giveUp('hung');
      return;
    }
    this.#common('thread.ping').then(
      () => {
        this.#unansweredBeats = 0;
      },
      () => {},
    );
  }

  #giveUp(why: string): void {
    clearInterval(this.#beats);
    this.#detail = `${this.#options.name} ${why}`;
    void this.#worker.terminate();
  }

  #end(): void {
    clearInterval(this.#beats);
    this.#hasEnded = true;
    for (const { reject } of this.#pending.values()) reject(this.#options.toLoss(this.#detail));
    this.#pending.clear();
    this.#ready.reject(this.#options.toLoss(this.#detail));
    this.#ended.resolve(this.#detail);
  }
}
