import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import type { SipTimers } from './sip-timers.ts';
import type { TransportName } from './transport/remote.ts';
import type { FromWorker, ToWorker, WorkerData } from './worker-protocol.ts';

// A thread that loads .ts files runs Node's type stripper, which is WebAssembly. V8 (13.6, Node 24.21) now and then
// crashes the process when a second thread of it compiles its import wrappers anew while another one ends
// (Runtime_TierUpWasmToJSWrapper, then WasmEngine::FreeDeadCode on freed memory). Without a budget they never are.
setFlagsFromString('--wasm-wrapper-tiering-budget=2147483647');

export interface EmbeddedSipServerOptions {
  /** Address the SIP sockets are bound to. */
  sipHost: string;
  /** 0 for any; UDP and TCP get the same. */
  sipPort: number;
  transports: readonly TransportName[];
  /** Address written into Via and Contact; defaults to `sipHost`, or to the first outer address of a wildcard. */
  advertisedHost?: string;
  /** What a drachtio client must present on the control port. Use a random one. */
  secret: string;
  /** Aborting is the same as `close()`. */
  signal?: AbortSignal;
  /** The server's thread has ended: null after `close()`, an error when it died. */
  onExit?: (error: Error | null) => void;
  /** One message made the server throw. It was dropped and the server runs on; worth a log entry and a bug report. */
  onFault?: (error: Error) => void;
  /** For tests; the defaults are those of RFC 3261. */
  timers?: Partial<SipTimers>;
}

export interface EmbeddedSipServer {
  readonly controlHost: '127.0.0.1';
  readonly controlPort: number;
  readonly sipHost: string;
  readonly sipPort: number;
  /** Hangs up what is left, closes all sockets and ends the thread. Idempotent. */
  close(): Promise<void>;
  /** Counts of transactions, dialogs, connections, dropped messages; null once the thread has ended. */
  dump(): Promise<unknown>;
}

/**
 * Starts a SIP server (RFC 3261 over UDP and TCP) in a thread of its own, which a stock drachtio-srf drives over
 * `controlHost:controlPort`. It dies with the process.
 *
 * @throws Error with the `code` of a failed bind, such as `EADDRINUSE`; the abort reason when `signal` is aborted.
 */
export async function startEmbeddedSipServer(options: EmbeddedSipServerOptions): Promise<EmbeddedSipServer> {
  const { signal, onExit, onFault, ...workerData } = options;
  signal?.throwIfAborted();
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: workerData satisfies WorkerData });
  const dumps = new Map<number, (state: unknown) => void>();
  let lastDumpId = 0;
  let isClosing = false;
  let hasExited = false;
  let failure: Error | null = null;
  const post = (message: ToWorker): void => worker.postMessage(message);

  const exited = new Promise<void>((resolve) => {
    worker.on('error', (error) => {
      failure ??= error instanceof Error ? error : new Error(String(error));
    });
    worker.on('exit', (code) => {
      hasExited = true;
      signal?.removeEventListener('abort', abort);
      for (const answer of dumps.values()) answer(null);
      if (!isClosing) failure ??= new Error(`The SIP server's thread ended with code ${code}`);
      resolve();
    });
  });

  const close = async (): Promise<void> => {
    if (!isClosing) {
      isClosing = true;
      post({ type: 'close' });
      const timer = setTimeout(() => void worker.terminate(), CLOSE_WITHIN_MS);
      await exited;
      clearTimeout(timer);
    }
    await exited;
  };
  const abort = (): void => void close();
  signal?.addEventListener('abort', abort);

  const ready = await new Promise<Extract<FromWorker, { type: 'ready' }>>((resolve, reject) => {
    worker.on('message', (message: FromWorker) => {
      if (message.type === 'ready') resolve(message);
      else if (message.type === 'failed') {
        failure = Object.assign(new Error(message.message), { code: message.code });
        reject(failure);
      } else if (message.type === 'fault') onFault?.(message.error);
      else {
        dumps.get(message.id)?.(message.state);
        dumps.delete(message.id);
      }
    });
    void exited.then(() => reject(signal?.aborted ? signal.reason : (failure ?? new Error('The SIP server closed'))));
  });
  void exited.then(() => onExit?.(isClosing ? null : failure));

  return {
    controlHost: '127.0.0.1',
    controlPort: ready.controlPort,
    sipHost: options.sipHost,
    sipPort: ready.sipPort,
    close,
    dump() {
      if (hasExited) return Promise.resolve(null);
      const id = ++lastDumpId;
      return new Promise((resolve) => {
        dumps.set(id, resolve);
        post({ type: 'dump', id });
      });
    },
  };
}

const CLOSE_WITHIN_MS = 3000;
