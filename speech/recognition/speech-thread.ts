import { setFlagsFromString } from 'node:v8';
import { type Transferable, Worker } from 'node:worker_threads';
import { TandemError } from '../../machines/errors.ts';
import type { EnginesDescribed, FromThread, ThreadCall, ThreadCalls, ThreadData, ThreadNotice } from './protocol.ts';

// A thread that loads .ts files runs Node's type stripper, which is WebAssembly. V8 (13.6, Node 24.21) now and then
// crashes the process when a second thread of it compiles its import wrappers anew while another one ends
// (Runtime_TierUpWasmToJSWrapper, then WasmEngine::FreeDeadCode on freed memory). Without a budget they never are.
setFlagsFromString('--wasm-wrapper-tiering-budget=2147483647');

export interface SpeechThreadOptions {
  data: ThreadData;
  onNotice: (notice: ThreadNotice) => void;
}

/** A beat that is not answered by the next one but three is the last: the thread is stuck. Beats are counted, not time. */
const BEAT_MS = 5_000;
const MOST_UNANSWERED_BEATS = 3;

type Settle = PromiseWithResolvers<unknown>;

/** The main thread's end of the speech thread. */
export class SpeechThread {
  readonly #worker: Worker;
  readonly #pending = new Map<number, Settle>();
  readonly #ready = Promise.withResolvers<EnginesDescribed>();
  readonly #ended = Promise.withResolvers<string>();
  readonly #beats: NodeJS.Timeout;
  #unansweredBeats = 0;
  #requests = 0;
  #hasEnded = false;
  #detail = 'the speech thread ended';

  constructor({ data, onNotice }: SpeechThreadOptions) {
    this.#worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: data, execArgv: [] });
    this.#worker.on('message', (message: FromThread) => {
      if (message.type === 'ready') this.#ready.resolve(message);
      else if (message.type === 'done') this.#settle(message.requestId)?.resolve(message.answer);
      else if (message.type === 'failed') {
        const { code, message: text } = message.failure;
        this.#settle(message.requestId)?.reject(new TandemError(code, text));
      } else onNotice(message);
    });
    this.#worker.on('error', (error: unknown) => {
      if (error instanceof Error) this.#detail = `the speech thread threw ${error.name}: ${error.message}`;
    });
    this.#worker.on('exit', () => this.#end());
    this.#beats = setInterval(() => this.#beat(), BEAT_MS).unref();
    this.#ready.promise.catch(() => {});
  }

  /** Resolves when the engines are made. @throws TandemError `INTERNAL` when it dies before */
  get ready(): Promise<EnginesDescribed> {
    return this.#ready.promise;
  }

  /** Resolves with why, once it has ended. */
  get ended(): Promise<string> {
    return this.#ended.promise;
  }

  /** @throws TandemError with the code of the refusal; `INTERNAL` when the thread dies before it answers */
  call<Call extends ThreadCall>(
    type: Call,
    request: ThreadCalls[Call]['request'],
    transfer: readonly Transferable[] = [],
  ): Promise<ThreadCalls[Call]['answer']> {
    if (this.#hasEnded) return Promise.reject(this.#lost());
    const requestId = this.#requests++;
    const settle = Promise.withResolvers<unknown>();
    this.#pending.set(requestId, settle);
    this.#worker.postMessage({ type, requestId, ...request }, transfer);
    // What answers a request is its answer: the one place where the types of the protocol cannot follow.
    return settle.promise as Promise<ThreadCalls[Call]['answer']>;
  }

  /** Lets the recognizers end, then the thread. */
  async close(): Promise<void> {
    await this.ready.then(() => this.call('thread.drain', {})).catch(() => {});
    await this.#worker.terminate();
  }

  #settle(requestId: number): Settle | undefined {
    const settle = this.#pending.get(requestId);
    this.#pending.delete(requestId);
    return settle;
  }

  #beat(): void {
    this.#unansweredBeats += 1;
    if (this.#unansweredBeats > MOST_UNANSWERED_BEATS) {
      this.#detail = 'the speech thread hung';
      void this.#worker.terminate();
      return;
    }
    this.call('thread.ping', {}).then(
      () => {
        this.#unansweredBeats = 0;
      },
      () => {},
    );
  }

  #end(): void {
    clearInterval(this.#beats);
    this.#hasEnded = true;
    const error = this.#lost();
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
    this.#ready.reject(error);
    this.#ended.resolve(this.#detail);
  }

  #lost(): TandemError {
    return new TandemError('INTERNAL', `Speech recognition failed: ${this.#detail}.`);
  }
}
