/**
 * What crosses between the main thread and a thread that has engines: calls, each answered once with `done` or `failed`,
 * and notices, which come whenever something happens.
 */

/** What may be asked, by name: an interface whose members are `{ request; answer }`. */
export type CallTable<Calls> = { [Call in keyof Calls]: { request: object; answer: unknown } };

/** What every thread answers. */
export interface CommonCalls {
  /** Shows that the thread is not stuck. */
  'thread.ping': { request: object; answer: null };
  /** Closes all that it has; the thread can then be terminated. */
  'thread.drain': { request: object; answer: null };
}

export interface ToThread {
  requestId: number;
  call: string;
  request: object;
}

export type FromThread<Ready, Notice> =
  | { type: 'ready'; ready: Ready }
  | { type: 'notice'; notice: Notice }
  | { type: 'done'; requestId: number; answer: unknown }
  | { type: 'failed'; requestId: number; failure: ThreadFailure };

/** Errors lose their class on the way between threads, so they cross as this. */
export interface ThreadFailure {
  /** Null: not one that was meant for the other side. */
  code: string | null;
  message: string;
}
