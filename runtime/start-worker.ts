import { setFlagsFromString } from 'node:v8';
import { Worker, type WorkerOptions } from 'node:worker_threads';

// A thread that loads .ts files runs Node's type stripper, which is WebAssembly. V8 (13.6, Node 24.21) sometimes
// crashes the process when one thread compiles its import wrappers while another one ends
// (Runtime_TierUpWasmToJSWrapper, then WasmEngine::FreeDeadCode on freed memory). This budget prevents that
// compilation.
setFlagsFromString('--wasm-wrapper-tiering-budget=2147483647');

/** Starts a worker thread without our own flags, such as a test runner's loader or the inspector. */
export function startWorker(entry: URL, options: WorkerOptions = {}): Worker {
  return new Worker(entry, { ...options, execArgv: [] });
}
