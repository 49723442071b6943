/** The frame of what crosses between the main thread and a worker; `worker-protocol.ts` and its like fill it. */

/** What the main thread may ask a worker, and what the answer holds. Every request is answered once. */
export type CallTable<Calls> = {
  [Call in keyof Calls]: { request: object; answer: unknown };
} & {
  /** Shows that the thread is not stuck. */
  'worker.ping': { request: object; answer: null };
  /** Closes every session; the thread can then be terminated without loss. */
  'worker.drain': { request: object; answer: null };
};

export type CallToWorker<Calls extends CallTable<Calls>> = {
  [Call in keyof Calls]: { type: Call; requestId: number } & Calls[Call]['request'];
}[keyof Calls];

export type MessageFromWorker<Calls extends CallTable<Calls>, Event> =
  /** The thread has loaded and listens. */
  | { type: 'ready' }
  | { type: 'event'; sessionKey: number; event: Event }
  | { type: 'done'; requestId: number; answer: Calls[keyof Calls]['answer'] }
  | { type: 'failed'; requestId: number; failure: WorkerFailure };

/** Why a request failed. Errors lose their class on the way between threads, so they cross as this. */
export type WorkerFailure =
  /** The pair that starts at `rtpPort` is somebody else's. */
  | { kind: 'port-taken'; rtpPort: number; detail: string }
  /** The remote address cannot be used. */
  | { kind: 'remote-address'; detail: string }
  /** A file cannot be read or written. */
  | { kind: 'storage'; detail: string }
  /** The session is not there any more, or not in a state for this. */
  | { kind: 'state'; detail: string }
  /** The thread died or did not answer. Made by the main thread. */
  | { kind: 'worker-lost'; detail: string }
  | { kind: 'unexpected'; detail: string };

/** The system's error code without its message, which would tell paths. */
export function systemCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'UNKNOWN';
}
